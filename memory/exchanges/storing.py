"""Stores exchanges: each is the newest turn of its thread, and its update begins."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from uuid import uuid4

from recollect.memory.exchanges.given_exchange import GivenExchange, check_exchanges
from recollect.memory.memory import Memory, check_same_turn
from recollect.memory.values.errors import TurnConflict, UserErased
from recollect.memory.values.further_message import FurtherMessage
from recollect.memory.values.scope import Scope
from recollect.memory.values.times import from_ms, to_ms
from recollect.memory.values.turn import UNFINISHED_RESULT, Message, Turn
from recollect.memory.values.update import Step, Update

MODEL = "exchange"
"""The model that such a turn names: whoever answered, it was none of this memory."""
NOT_LEARNED = "not_learned"
"""The reason of a facts step that was skipped because nothing was to be learned."""


async def store_exchange(memory: Memory, scope: Scope, given: GivenExchange, *, agent_id: str | None = None) -> Turn:
    """Store the exchange as the thread's newest turn, and begin its update; a repeated `turn_id` is the stored turn.

    `agent_id`: the caller sees what has this agent's label alone.

    Raises:
        InvalidRequest: a text, a name or the turn_id cannot be stored.
        TurnConflict: the turn_id belongs to another thread or exchange, or to another agent.
        UserErased: the user, or the thread, is being erased.
        ThreadBusy, StoreUnavailable: nothing is stored, or all of it; a repeat with the turn_id tells.
    """
    check_exchanges(memory.config, [("", given)])
    user_id, turn_id = scope.user_id, given.turn_id or str(uuid4())
    async with memory.held(scope):
        fence = await memory.observe(scope)
        stored = await memory.find_turn(user_id=user_id, turn_id=turn_id)
        if stored is not None:
            check_same_exchange(stored, scope, given, agent_id=agent_id)
        if stored is None or stored.reply is None:
            turn = await _turn(memory, scope, given, turn_id)
            async with fence.writing() as writing:
                # Before the write: cancelled in its midst, it may have been done, and has to be taken back too.
                writing.on_erased(lambda: _remove(memory, user_id, turn_id))
                await memory.parts.store.imports.insert([turn])
            stored = await memory.find_turn(user_id=user_id, turn_id=turn_id)
            if stored is None or stored.reply is None:
                raise UserErased
            # Another thread's request may have stored the same turn_id in between.
            check_same_exchange(stored, scope, given, agent_id=agent_id)
            memory.parts.retention.touch(user_id)
            memory.parts.updater.notify(user_id)
    return stored


def check_same_exchange(stored: Turn, scope: Scope, given: GivenExchange, *, agent_id: str | None = None) -> None:
    """Check that a stored turn is this exchange; one without a reply may get it. `agent_id`: see `check_same_turn`.

    Raises:
        TurnConflict: it is another thread's, or says something else.
    """
    check_same_turn(stored.message, thread_id=scope.thread, content=given.user.content, agent_id=agent_id)
    same = _said(stored.message.further) == _said(given.messages)
    if stored.reply is not None:
        reply = None if stored.reply.absent else stored.reply.content
        same = same and reply == (given.assistant.content if given.assistant is not None else None)
    if not same:
        raise TurnConflict(turn_id=stored.message.turn_id)


async def _turn(memory: Memory, scope: Scope, given: GivenExchange, turn_id: str) -> Turn:
    """Return the finished turn, at the thread's next position, with the update that it owes."""
    last = await memory.parts.store.conversations.last_position(scope)
    said, answer = given.user, given.assistant
    at = _in_milliseconds(said.created_at or memory.now())
    message = Message(
        user_id=scope.user_id,
        thread_id=scope.thread,
        turn_id=turn_id,
        role="user",
        content=said.content,
        created_at=at,
        name=said.name,
        metadata=said.metadata,
        position=last + 1 + last % 2,
        further=given.messages,
        agent_id=given.agent_id,
        absent=given.is_unasked,
    )
    reply = replace(
        message,
        role="assistant",
        content=answer.content if answer is not None else "",
        created_at=max(at, _in_milliseconds((answer.created_at if answer is not None else None) or at)),
        name=answer.name if answer is not None else None,
        metadata=answer.metadata if answer is not None else {},
        position=message.position + 1,
        absent=answer is None,
        further=(),
    )
    update = memory.owed(message, record=await memory.recall.thread(scope), window_from=message.position)
    learns = given.learn and not given.is_unasked
    return Turn(message, reply, {**UNFINISHED_RESULT, "model": MODEL}, update if learns else _unlearned(update))


def _unlearned(update: Update) -> Update:
    return replace(update, steps={**update.steps, "facts": Step(status="skipped", reason=NOT_LEARNED)})


def _said(messages: Sequence[FurtherMessage]) -> list[tuple[str, str]]:
    return [(one.role, one.content) for one in messages]


def _in_milliseconds(time: datetime) -> datetime:
    return from_ms(to_ms(time))


async def _remove(memory: Memory, user_id: str, turn_id: str) -> None:
    await memory.parts.store.conversations.remove(user_id=user_id, turn_ids=[turn_id])
