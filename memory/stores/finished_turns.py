"""Takes finished turns apart for a store that inserts them whole."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from recollect.memory.values.turn import Message, Turn
from recollect.memory.values.update import Update


class FinishedTurn(NamedTuple):
    """The parts of a finished turn. `said` is how many of its two messages are not absent.

    `further` is how many further messages of it search may find.
    """

    message: Message
    reply: Message
    result: Mapping[str, Any]
    update: Update
    said: int
    further: int


def finished(turns: Sequence[Turn]) -> list[FinishedTurn]:
    """Return the turns that have a reply, in the order of `turns`.

    Raises:
        ValueError: one of them has a reply without a result or an update.
    """
    return [_finished(turn, turn.reply) for turn in turns if turn.reply is not None]


def _finished(turn: Turn, reply: Message) -> FinishedTurn:
    if turn.result is None or turn.update is None:
        raise ValueError(f"Turn {turn.message.turn_id} has a reply without its result or its update.")
    return FinishedTurn(turn.message, reply, turn.result, turn.update, len(turn.messages), further_of(turn.message))


def further_of(message: Message) -> int:
    """Count the further messages of a user's message that search may find."""
    return len(message.spoken) - 1
