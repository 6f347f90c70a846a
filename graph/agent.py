"""The agent's node: runs one round of the built-in agent, or of the user's own, and checks its answer."""

import json
from collections.abc import Mapping
from time import perf_counter
from typing import Any

import orjson

from recollect.graph.context import LiveContext, Runtime, live_context
from recollect.graph.prompts import prompt_of
from recollect.graph.spoken import Spoken, check_length
from recollect.graph.state import Json, State
from recollect.graph.turn_result import SAID_SEPARATOR, earlier_replies, recalled_json
from recollect.memory.options.model_choice import ModelChoice
from recollect.memory.ports.chat_model import ABOUT_TOOLS, ChatModel, ChatReply, ChatRequest, ToolCall
from recollect.memory.values.errors import ModelUnavailable

_PLAIN = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS


async def agent(state: State, runtime: Runtime) -> Json:
    """Run one round: get a reply, or tool calls that the tools node answers before the next round."""
    live = await live_context(runtime)
    services, listener = live.services, live.listener
    started = perf_counter()
    timings = state["timings_ms"]
    if state["rounds"] == 0:
        timings = {**timings, "recall": _milliseconds(started - state["started"])}
        listener.recalled(recalled_json(state))
    most = services.memory.config.max_reply_characters
    spoken = Spoken(listener, most=most, goes_on=bool(earlier_replies(state)))
    round_of = _built_in if services.agent is None else _own
    answer = _storable(await round_of(state, live, spoken))
    calls: list[Json] = answer["tool_calls"] if state["tools"] else []
    said = [] if live.chat.wants_json else earlier_replies(state)
    reply = None if calls else SAID_SEPARATOR.join([*said, *filter(None, [answer["reply"]])])
    if not calls and not reply:
        raise ModelUnavailable("The model answered with nothing; send the request again with the same turn_id.")
    check_length(len(reply or ""), most)  # several rounds together may exceed it
    return {
        "reply": reply,
        "tool_calls": calls,
        "tool_uses": answer.get("tool_uses", state["tool_uses"]),
        "exchange": [*state["exchange"], _called(answer["reply"], calls)] if calls else state["exchange"],
        "model": answer["model"],
        "finish_reason": answer.get("finish_reason") or "stop",
        "block": answer.get("block"),
        "usage": {name: count + answer["usage"].get(name, 0) for name, count in state["usage"].items()},
        "timings_ms": {**timings, "agent": timings["agent"] + _milliseconds(perf_counter() - started)},
    }


async def next_node(state: State) -> str:
    """Return the node that follows a round: "tools" for calls of the agent's own tools, else "save_turn".

    Calls of a client's tools alone end the turn too, because the client answers them. It is asynchronous because
    LangGraph hands a plain function to a thread.
    """
    return "tools" if any(call["name"] not in state["client_tools"] for call in state["tool_calls"]) else "save_turn"


async def _built_in(state: State, live: LiveContext, spoken: Spoken) -> Json:
    chat, model, choice = live.chat, live.services.memory.chat, ModelChoice(**state["choice"])
    prompt = await prompt_of(state, live.services, chat)
    request = ChatRequest(
        messages=prompt.messages,
        tools=state["tools"],
        memory=prompt.remembered.known(is_kept=not state["stateless"]),
        parameters=_allowed({**chat.parameters, **choice.parameters}, with_tools=bool(state["tools"])),
        model=chat.model or choice.model,
        api_key=chat.api_key,
        needs_tools=bool(chat.tools),
        chosen=choice.names,
    )
    try:
        with live.resting():
            reply = await (_streamed(model, request, spoken) if live.listener.wants_tokens else model.complete(request))
    except ModelUnavailable as error:
        raise choice.refused_by(error) or error from error
    return {
        "reply": reply.text,
        "tool_calls": [_as_json(call, state) for call in reply.tool_calls],
        "model": reply.model,
        "finish_reason": reply.finish_reason,
        "block": prompt.block,
        "usage": {"input_tokens": reply.usage.input_tokens, "output_tokens": reply.usage.output_tokens},
    }


async def _own(state: State, live: LiveContext, spoken: Spoken) -> Json:
    # Imported here, because it needs LangGraph; loading the AGENT has imported it before.
    from recollect.graph.own_agent.calling import call_own

    with live.resting():
        return await call_own(state, live, spoken)


def _allowed(parameters: Mapping[str, Any], *, with_tools: bool) -> Mapping[str, Any]:
    """Return `parameters`, without those about tools where no tools are offered."""
    if with_tools:
        return parameters
    return {name: value for name, value in parameters.items() if name not in ABOUT_TOOLS}


def _as_json(call: ToolCall, state: State) -> Json:
    """Return the call as JSON; a call of a client's tool keeps its `arguments` unparsed, for the client to read."""
    shown = {"id": call.id, "name": call.name, "args": dict(call.args)}
    return {**shown, "arguments": call.arguments} if call.name in state["client_tools"] else shown


async def _streamed(model: ChatModel, request: ChatRequest, spoken: Spoken) -> ChatReply:
    reply: ChatReply | None = None
    async for piece in model.stream(request):
        if isinstance(piece, ChatReply):
            reply = piece
        else:
            spoken.say(piece)
    if reply is None:
        raise ModelUnavailable("The model's stream ended early; send the request again with the same turn_id.")
    return reply


def _called(text: str | None, calls: list[Json]) -> Json:
    """Return the round as an assistant message in OpenAI's form."""
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
    """Return the answer with lone surrogates replaced by "?": no store can hold them and no request can carry them."""
    try:
        orjson.dumps(answer, option=_PLAIN)  # a thirtieth of the time; it refuses surrogates, and what JSON lacks
    except orjson.JSONEncodeError:
        return _cleaned(answer)
    return answer


def _cleaned(answer: Json) -> Json:
    try:
        text = json.dumps(answer, ensure_ascii=False)
        cleaned: Json = json.loads(text.encode("utf-8", "replace").decode())
    except RecursionError as error:
        raise ModelUnavailable("The model's answer is nested too deep to be read.", outage=False) from error
    return cleaned


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)
