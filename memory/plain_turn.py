"""A whole turn without the service: recall, one call of the chat model, and the commit of the turn with its update.

Unlike the service's graph it has no tools, no streaming and no custom agent.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from recollect.memory.memory import Memory
from recollect.memory.ports.chat_model import ChatMessage, ChatReply, ChatRequest
from recollect.memory.recall.memory_block import Remembered, block_for
from recollect.memory.recall.recall import KnownFacts
from recollect.memory.recall.recall_options import RecallOptions
from recollect.memory.values.errors import InvalidRequest, ModelUnavailable, Problem, StoreUnavailable
from recollect.memory.values.scope import Scope
from recollect.memory.values.thread_record import ThreadRecord
from recollect.memory.values.turn import UNFINISHED_RESULT, Exchange, Message, Turn

logger = logging.getLogger(__name__)

INSTRUCTIONS = "You are a helpful assistant that remembers the user. Answer the user's message."
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Recalled:
    """The context that the model is given; `degraded` names the parts that could not be loaded."""

    window: Sequence[Exchange] = ()
    facts: KnownFacts = field(default_factory=lambda: KnownFacts({}, ()))
    record: ThreadRecord | None = None
    hits: Sequence[Json] = ()
    degraded: Sequence[str] = ()

    @property
    def remembered(self) -> Remembered:
        """Return what the memory block is made of."""
        summary = self.record.summary if self.record is not None else None
        return Remembered(self.facts.facts, self.facts.notes, summary, self.hits)


async def answer(memory: Memory, message: Message) -> Turn:
    """Answer the message as a turn of its thread, which the caller holds; return the stored turn if it is finished.

    Raises:
        InvalidRequest: the text or the turn_id cannot be stored.
        TurnConflict: the turn_id belongs to another thread or message.
        ModelUnavailable, StoreUnavailable: the turn is repeatable with its turn_id.
    """
    started = perf_counter()
    accepted = await memory.accept(message)
    stored = await memory.find_turn(user_id=accepted.user_id, turn_id=accepted.turn_id)
    if stored is not None and stored.reply is not None:
        return stored
    recalled = await _recall(memory, accepted)
    fetched = perf_counter()
    reply = await memory.chat.complete(await _request(memory, accepted, recalled))
    if not reply.text:
        raise ModelUnavailable("The model answered with nothing; try again with the same turn_id.")
    ended = perf_counter()
    first = recalled.window[0].user.position if recalled.window else accepted.position
    result = _result(recalled, reply, {"recall": fetched - started, "agent": ended - fetched, "total": ended - started})
    update = memory.owed(accepted, record=recalled.record, window_from=first)
    text = reply.text.encode("utf-8", "replace").decode()
    return await memory.commit(accepted, reply=text, result=result, update=update)


async def complete(memory: Memory, scope: Scope, reply: str, *, name: str | None = None) -> Message:
    """Store the reply to the thread's last message, which has none yet, with the update that the turn then owes.

    The caller holds the thread. Return the reply as it is stored.

    Raises:
        InvalidRequest: the thread's last message is not a user's that waits for an answer.
    """
    last = await memory.store.conversations.last_position(scope)
    found = await memory.messages(scope, limit=1, after=last - 1) if last else []
    message = found[0] if found else None
    if message is None or message.role != "user":
        problem = "answers a user's message, and the thread's last one is none that waits; store that first"
        raise InvalidRequest("There is nothing to answer.", problems=[Problem("role", problem)])
    record = await memory.recall.thread(scope)
    update = memory.owed(message, record=record, window_from=message.position)
    result = {**UNFINISHED_RESULT, "model": "library"}
    turn = await memory.commit(message, reply=reply, result=result, update=update, name=name)
    assert turn.reply is not None
    return turn.reply


async def _recall(memory: Memory, message: Message) -> _Recalled:
    """Load the window, the facts, the thread's record and the hits at once; a part that an outage hits stays empty."""
    scope, config = message.scope, memory.config
    options = RecallOptions(window=config.window, top_k=config.top_k)
    found = await asyncio.gather(
        memory.recall.window(scope, options, before=message.position),
        memory.recall.facts(scope, with_global=True),
        memory.recall.thread(scope),
        memory.recall.search(scope, message.content, options, before=message.position),
        return_exceptions=True,
    )
    for error in found:
        if isinstance(error, BaseException) and not isinstance(error, StoreUnavailable | ModelUnavailable):
            raise error
    window, facts, record, search = found
    failed = {
        "load_window": isinstance(window, BaseException),
        "load_facts": isinstance(facts, BaseException) or isinstance(record, BaseException),
        "search_memories": isinstance(search, BaseException),
    }
    return _Recalled(
        () if isinstance(window, BaseException) else window,
        KnownFacts({}, ()) if isinstance(facts, BaseException) else facts,
        None if isinstance(record, BaseException) else record,
        () if isinstance(search, BaseException) else [hit.as_json() for hit in search.hits],
        [name for name, has_failed in failed.items() if has_failed],
    )


async def _request(memory: Memory, message: Message, recalled: _Recalled) -> ChatRequest:
    """Return the call of the model: instructions and memory block, the window, the message."""
    remembered = recalled.remembered
    block = await block_for(message.content, remembered, config=memory.config, today=memory.clock().date())
    said = [one for exchange in recalled.window for one in exchange.messages]
    messages: list[ChatMessage] = [
        {"role": "system", "content": "\n\n".join(filter(None, [INSTRUCTIONS, block.text]))},
        *({"role": one.role, "content": one.content} for one in said),
        {"role": "user", "content": message.content},
    ]
    return ChatRequest(messages, memory=remembered.known())


def _result(recalled: _Recalled, reply: ChatReply, seconds: Mapping[str, float]) -> Json:
    record = recalled.record
    return {
        "model": reply.model,
        "memory": {
            "window": len(recalled.window),
            "facts": dict(recalled.facts.facts),
            "summary": record.summary if record is not None else None,
            "hits": list(recalled.hits),
            "degraded": list(recalled.degraded),
        },
        "usage": {"input_tokens": reply.usage.input_tokens, "output_tokens": reply.usage.output_tokens},
        "timings_ms": {name: round(value * 1_000, 3) for name, value in seconds.items()},
    }
