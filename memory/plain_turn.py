"""A whole turn without the service: recall, one call of the chat model, and the commit of the turn with its update.

Unlike the service's graph it has no tools, no streaming and no custom agent.
"""

from collections.abc import Mapping
from time import perf_counter
from typing import Any

from recollect.memory.memory import Memory
from recollect.memory.options.model_choice import ModelChoice
from recollect.memory.ports.chat_model import ChatMessage, ChatReply, ChatRequest
from recollect.memory.recall.memory_block import MemoryBlock, block_for
from recollect.memory.recall.recall_options import RecallOptions
from recollect.memory.recall.turn_context import Fetched, fetch
from recollect.memory.values.errors import InvalidRequest, ModelUnavailable, Problem
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import RECORDED, UNFINISHED_RESULT, Message, Turn

INSTRUCTIONS = "You are a helpful assistant that remembers the user. Answer the user's message."
Json = dict[str, Any]


async def answer_turn(memory: Memory, message: Message, choice: ModelChoice) -> Turn:
    """Answer the message as a turn of its thread, which the caller holds; return the stored turn if it is finished.

    Raises:
        InvalidRequest: the text or the turn_id cannot be stored, or the provider refuses the `choice`.
        TurnConflict: the turn_id belongs to another thread or message.
        ModelUnavailable, StoreUnavailable: the turn is repeatable with its turn_id.
    """
    started = perf_counter()
    accepted = await memory.accept(message)
    stored = await memory.find_turn(user_id=accepted.user_id, turn_id=accepted.turn_id)
    if stored is not None and stored.reply is not None:
        return stored
    options = RecallOptions.of(memory.config)
    recalled = await fetch(memory.recall, accepted.scope, accepted.content, options, before=accepted.position)
    fetched = perf_counter()
    block = await block_for(accepted.content, recalled.remembered, config=memory.config, today=memory.now().date())
    try:
        reply = await memory.chat.complete(_request(accepted, recalled, block, choice))
    except ModelUnavailable as error:
        raise choice.refused_by(error) or error from error
    if not reply.text:
        raise ModelUnavailable("The model answered with nothing; try again with the same turn_id.")
    ended = perf_counter()
    first = recalled.window[0].user.position if recalled.window else accepted.position
    seconds = {"recall": fetched - started, "agent": ended - fetched, "total": ended - started}
    result = {**_result(recalled, reply, seconds), **_explained(recalled, block, window_from=first)}
    update = memory.owed(accepted, record=recalled.record, window_from=first)
    text = reply.text.encode("utf-8", "replace").decode()
    return await memory.commit(accepted, reply=text, result=result, update=update)


async def complete(
    memory: Memory, scope: Scope, reply: str, *, name: str | None = None, agent_id: str | None = None
) -> Message:
    """Store the reply to the thread's last message, which has none yet, with the update that the turn then owes.

    The caller holds the thread. Return the reply as it is stored. `agent_id`: only to a message with this label.

    Raises:
        InvalidRequest: the thread's last message is not a user's that waits for an answer.
    """
    last = await memory.parts.store.conversations.last_position(scope)
    found = await memory.messages(scope, limit=1, after=last - 1) if last else []
    message = found[0] if found else None
    if message is None or message.role != "user" or agent_id not in (None, message.agent_id):
        problem = "answers a user's message, and the thread's last one is none that waits; store that first"
        raise InvalidRequest("There is nothing to answer.", problems=[Problem("role", problem)])
    record = await memory.recall.thread(scope)
    update = memory.owed(message, record=record, window_from=message.position)
    result = {**UNFINISHED_RESULT, "model": "library"}
    turn = await memory.commit(message, reply=reply, result=result, update=update, name=name)
    assert turn.reply is not None
    return turn.reply


def _request(message: Message, recalled: Fetched, block: MemoryBlock, choice: ModelChoice) -> ChatRequest:
    """Return the call of the model: instructions and memory block, the window, the message."""
    said = [one for exchange in recalled.window for one in exchange.spoken]
    messages: list[ChatMessage] = [
        {"role": "system", "content": "\n\n".join(filter(None, [INSTRUCTIONS, choice.instructions, block.text]))},
        *({"role": one.role, "content": one.content} for one in said),
        {"role": "user", "content": message.content},
    ]
    return ChatRequest(
        messages,
        memory=recalled.remembered.known(),
        parameters=choice.parameters,
        model=choice.model,
        chosen=choice.names,
    )


def _result(recalled: Fetched, reply: ChatReply, seconds: Mapping[str, float]) -> Json:
    return {
        "model": reply.model,
        "memory": recalled.as_json(),
        "usage": {"input_tokens": reply.usage.input_tokens, "output_tokens": reply.usage.output_tokens},
        "timings_ms": {name: round(value * 1_000, 3) for name, value in seconds.items()},
    }


def _explained(recalled: Fetched, block: MemoryBlock, *, window_from: int) -> Json:
    """Return what the turn keeps so that it can explain itself, as a turn of the service does."""
    trace, left_out = recalled.found.recorded() if recalled.found is not None else ([], None)
    record = {"window_from": window_from, "left_out": left_out, "block": block.record()}
    return {"trace": trace, RECORDED: record}
