"""The agent's node: one round of the agent, built in or the user's own, and what came of it."""

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any, cast

from langgraph.runtime import Runtime

from graph.context import Context, Listener, listener_of, services_of
from graph.memory_nodes import recalled_json
from graph.prompts import chat_messages, memory_block
from graph.resources import Services
from graph.state import Json, State
from memory.chat_model import ChatReply, ChatRequest, KnownMemory
from memory.errors import ModelTimeout, ModelUnavailable, RecollectError

logger = logging.getLogger(__name__)


async def agent(state: State, runtime: Runtime[Context]) -> Json:
    """One round: a reply, or tool calls that the tools node answers before the next round."""
    services, listener = await services_of(runtime), listener_of(runtime)
    started = perf_counter()
    timings = state["timings_ms"]
    if state["rounds"] == 0:
        timings = {**timings, "recall": _milliseconds(started - state["started"])}
        listener.recalled(recalled_json(state))
    if services.agent is None:
        answer = await _built_in(state, services, listener)
    else:
        answer = await _custom(state, services, services.agent)
    calls: list[Json] = answer["tool_calls"] if state["tools"] else []
    reply = None if calls else _storable(answer["reply"])
    if not calls and not reply:
        raise ModelUnavailable("The model answered with nothing; send the request again with the same turn_id.")
    return {
        "reply": reply,
        "tool_calls": calls,
        "exchange": [*state["exchange"], _called(answer["reply"], calls)] if calls else state["exchange"],
        "model": answer["model"],
        "usage": {name: count + answer["usage"].get(name, 0) for name, count in state["usage"].items()},
        "timings_ms": {**timings, "agent": timings["agent"] + _milliseconds(perf_counter() - started)},
    }


def next_node(state: State) -> str:
    """Where a round leads: to the tools it called, or to saving the reply."""
    return "tools" if state["tool_calls"] else "save_turn"


async def _built_in(state: State, services: Services, listener: Listener) -> Json:
    memory = services.memory
    block = memory_block(
        facts=state["facts"],
        notes=state["notes"],
        summary=state["summary"],
        hits=state["hits"],
        config=memory.config,
    )
    told = [hit["content"] for hit in state["hits"] if hit["role"] != "assistant"]
    request = ChatRequest(
        messages=chat_messages(
            instructions=services.instructions,
            message=state["message"],
            window=state["window"],
            memory=block,
            exchange=state["exchange"],
        ),
        tools=state["tools"],
        memory=KnownMemory(facts=state["facts"], notes=state["notes"], recalled=told),
    )
    if listener.wants_tokens:
        reply = await _streamed(services, request, listener)
    else:
        reply = await memory.chat.complete(request)
    return {
        "reply": reply.text,
        "tool_calls": [{"id": call.id, "name": call.name, "args": dict(call.args)} for call in reply.tool_calls],
        "model": reply.model,
        "usage": {"input_tokens": reply.usage.input_tokens, "output_tokens": reply.usage.output_tokens},
    }


async def _streamed(services: Services, request: ChatRequest, listener: Listener) -> ChatReply:
    reply: ChatReply | None = None
    async for piece in services.memory.chat.stream(request):
        if isinstance(piece, ChatReply):
            reply = piece
        else:
            listener.token(piece)
    if reply is None:
        raise ModelUnavailable("The model's stream ended early; send the request again with the same turn_id.")
    return reply


async def _custom(state: State, services: Services, node: Any) -> Json:
    """Call the agent that AGENT names, and check its answer: nothing that it returns is taken on trust."""
    given = cast(Json, dict(state))
    try:
        async with asyncio.timeout(services.memory.config.chat_timeout_seconds):
            answer: Any = await (node.ainvoke(given) if hasattr(node, "ainvoke") else node(given))
    except TimeoutError as error:
        raise ModelTimeout from error
    except RecollectError:
        raise
    except Exception as error:
        # Somebody else's code may raise anything; to the caller it is a model that failed.
        logger.exception("the AGENT raised", extra={"action": "agent_failed", "error": type(error).__name__})
        raise ModelUnavailable(
            f"The agent {services.agent_name} raised {type(error).__name__}; the log has the details.", outage=False
        ) from error
    if not isinstance(answer, Mapping):
        raise ModelUnavailable(f"The agent {services.agent_name} returned no dict.", outage=False)
    return _checked(cast(Mapping[str, Any], answer), services.agent_name)


def _checked(answer: Mapping[str, Any], name: str) -> Json:
    reply = answer.get("reply")
    calls = cast(Sequence[Mapping[str, Any]], answer.get("tool_calls") or [])
    usage = cast(Mapping[str, Any], answer.get("usage") or {})
    if reply is not None and not isinstance(reply, str):
        raise ModelUnavailable(f"The agent {name} returned a reply that is no text.", outage=False)
    try:
        checked: list[Json] = [
            {"id": str(call["id"]), "name": str(call["name"]), "args": json.loads(json.dumps(dict(call["args"])))}
            for call in calls
        ]
        tokens = {field: int(usage.get(field) or 0) for field in ("input_tokens", "output_tokens")}
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ModelUnavailable(
            f"The agent {name} returned tool_calls or usage in another form than [{{id, name, args}}] and "
            "{input_tokens, output_tokens}.",
            outage=False,
        ) from error
    return {"reply": reply, "tool_calls": checked, "model": str(answer.get("model") or name), "usage": tokens}


def _called(text: str | None, calls: list[Json]) -> Json:
    """The round as the assistant's message, in OpenAI's form."""
    asked = [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": call["name"], "arguments": json.dumps(call["args"], ensure_ascii=False)},
        }
        for call in calls
    ]
    return {"role": "assistant", "content": text or "", "tool_calls": asked}


def _storable(reply: str | None) -> str:
    """The reply without what no store can hold: lone surrogates become "?"."""
    return (reply or "").encode("utf-8", "replace").decode()


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)
