"""The agent's node: one round of the agent, built in or the user's own, and what came of it."""

import json
from time import perf_counter

from langgraph.runtime import Runtime

from graph.context import Context, Listener, listener_of, services_of
from graph.custom_agent import call_custom
from graph.memory_nodes import recalled_json
from graph.prompts import by_passages, chat_messages, memory_block
from graph.resources import Services
from graph.state import Json, State
from memory.chat_model import ChatReply, ChatRequest, KnownMemory
from memory.errors import ModelUnavailable

SAID_SEPARATOR = "\n\n"


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
        answer = await call_custom(state, services, services.agent)
    answer = _storable(answer)
    calls: list[Json] = answer["tool_calls"] if state["tools"] else []
    reply = None if calls else SAID_SEPARATOR.join([*_said(state), *filter(None, [answer["reply"]])])
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
        hits=by_passages(state["hits"], state["message"], recall_tokens=memory.config.recall_tokens),
        config=memory.config,
        today=memory.clock().date(),
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
        reply = await _streamed(services, request, listener, goes_on=bool(_said(state)))
    else:
        reply = await memory.chat.complete(request)
    return {
        "reply": reply.text,
        "tool_calls": [{"id": call.id, "name": call.name, "args": dict(call.args)} for call in reply.tool_calls],
        "model": reply.model,
        "usage": {"input_tokens": reply.usage.input_tokens, "output_tokens": reply.usage.output_tokens},
    }


async def _streamed(services: Services, request: ChatRequest, listener: Listener, *, goes_on: bool) -> ChatReply:
    """Stream one round; `goes_on` where an earlier round has said something already."""
    reply: ChatReply | None = None
    async for piece in services.memory.chat.stream(request):
        if isinstance(piece, ChatReply):
            reply = piece
            continue
        if goes_on and piece:
            goes_on = False
            listener.token(SAID_SEPARATOR)
        listener.token(_plain(piece))
    if reply is None:
        raise ModelUnavailable("The model's stream ended early; send the request again with the same turn_id.")
    return reply


def _said(state: State) -> list[str]:
    """What the agent said in earlier rounds of this turn, before it called tools: it is part of the reply."""
    return [item["content"] for item in state["exchange"] if item["role"] == "assistant" and item["content"]]


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


def _storable(answer: Json) -> Json:
    """The answer without what no store can hold and no request can carry: lone surrogates become "?"."""
    try:
        text = json.dumps(answer, ensure_ascii=False)
        cleaned: Json = json.loads(_plain(text))
    except RecursionError as error:
        raise ModelUnavailable("The model's answer is nested too deep to be read.", outage=False) from error
    return cleaned


def _plain(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)
