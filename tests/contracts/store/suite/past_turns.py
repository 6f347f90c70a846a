"""Turns as an importer brings them: finished, with ids of their own, some of them with one message alone."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from recollect.memory.ports.store import Store
from recollect.memory.values.turn import Message, Turn
from recollect.memory.values.update import Step, Update
from tests.contracts.store.samples import NOW, SECOND

MINUTE = timedelta(minutes=1)
SETTLED = Update(steps={"facts": Step(status="skipped", reason="imported"), "index": Step(status="done")})


def past(
    number: int, *, user_id: str = "ada", thread_id: str = "t1", name: str | None = None, update: Update | None = None
) -> Turn:
    """Return the turn `turn<number>`, so many minutes after NOW, its reply a second later; imported ids `u…` and `a…`.

    Search may find it, and nothing is pending, unless `update` says otherwise.
    """
    message = Message(
        user_id,
        thread_id,
        f"turn{number}",
        "user",
        f"Message {number}.",
        NOW + number * MINUTE,
        name=name,
        imported_id=f"u{number}",
    )
    reply = replace(
        message,
        role="assistant",
        content=f"Reply {number}.",
        name=None,
        created_at=message.created_at + SECOND,
        imported_id=f"a{number}",
    )
    return Turn(message, reply, {"model": None}, update or SETTLED)


def without_reply(turn: Turn) -> Turn:
    """Return the same turn, of which only the user's message is known."""
    assert turn.reply is not None
    return replace(turn, reply=_left_out(turn.reply))


def without_message(turn: Turn) -> Turn:
    """Return the same turn, of which only the reply is known."""
    return replace(turn, message=_left_out(turn.message))


def _left_out(message: Message) -> Message:
    return replace(message, content="", imported_id=None, absent=True)


def placed(turn: Turn, position: int) -> Turn:
    """Return the turn with its user's message at `position` and its reply behind it."""
    assert turn.reply is not None
    message, reply = replace(turn.message, position=position), replace(turn.reply, position=position + 1)
    return replace(turn, message=message, reply=reply)


def in_a_row(turns: Sequence[Turn]) -> list[Turn]:
    """Return the turns as the only ones of their thread, in this order."""
    return [placed(turn, 2 * number + 1) for number, turn in enumerate(turns)]


def said(turns: Sequence[Turn]) -> list[Message]:
    """Return the messages of these turns, in their order."""
    return [message for turn in turns for message in turn.messages]


async def stored(store: Store, turn_id: str, *, user_id: str = "ada") -> Turn:
    turn = await store.conversations.turn(user_id=user_id, turn_id=turn_id)
    assert turn is not None
    return turn
