"""Speaks the protocol's plain JSON: a ChatRequest as the body of a call, the body of an answer as a ChatReply."""

import json
from collections.abc import Mapping
from typing import Any, cast

from recollect.memory.ports.chat_model import ChatMessage, ChatReply, ChatRequest, ToolCall, Usage
from recollect.memory.providers.answer_parts import CallPart, Piece, finish_named, parsed_args

_NOTHING: Mapping[str, Any] = {}
_ROLES = frozenset({"user", "assistant", "tool"})


class BrokenOff(Exception):
    """The server sent an error in the middle of a stream; the argument is that error, as it came."""


def chat_body(request: ChatRequest, *, model: str, streams: bool = False) -> dict[str, Any]:
    """Return the body of a call whose answer `streams`, or comes whole.

    The request's parameters come last, as a caller means them.
    """
    body: dict[str, Any] = {
        "model": request.model or model,
        "stream": streams,
        "messages": [_message(message) for message in request.messages],
    }
    if streams:
        body["stream_options"] = {"include_usage": True}
    if request.tools:
        body["tools"] = list(request.tools)
    if request.tools and request.tool_choice:
        body["tool_choice"] = {"type": "function", "function": {"name": request.tool_choice}}
    if request.json_mode:
        body["response_format"] = {"type": "json_object"}
    return {**body, **request.parameters}


def read_reply(body: Any, *, asked: str) -> ChatReply:
    """Return the reply in an answer's `body`; `asked` is the model's name where the provider gives none.

    Raises:
        ValueError: the body holds an error, whose code is read as a status.
        Exception: the body has another form.
    """
    if body.get("error"):
        raise ValueError(body["error"])
    choice = body["choices"][0]
    message: Mapping[str, Any] = choice["message"]
    return ChatReply(
        text=_said(message),
        model=str(body.get("model") or asked),
        tool_calls=tuple(
            _called(call, number) for number, call in enumerate(message.get("tool_calls") or ()) if "function" in call
        ),
        usage=_counted(body.get("usage") or _NOTHING),
        finish_reason=finish_named(choice.get("finish_reason")) or "stop",
    )


def read_piece(chunk: Any) -> Piece:
    """Return the piece in a `chunk` of a stream; the last one may count the tokens and say nothing.

    Raises:
        BrokenOff: the chunk holds an error, whose code is read as a status.
        Exception: the chunk has another form.
    """
    if chunk.get("error"):
        raise BrokenOff(chunk["error"])
    choice: Mapping[str, Any] = next(iter(chunk.get("choices") or ()), _NOTHING)
    delta: Mapping[str, Any] = choice.get("delta") or _NOTHING
    usage: Mapping[str, Any] | None = chunk.get("usage")
    return Piece(
        text=_said(delta),
        model=str(chunk["model"]) if chunk.get("model") else None,
        usage=_counted(usage) if usage else None,
        finish_reason=finish_named(choice.get("finish_reason")),
        calls=[_part(call) for call in delta.get("tool_calls") or ()],
    )


def _message(message: ChatMessage) -> dict[str, Any]:
    """Return a message with the fields that every server knows."""
    role, content = message["role"], message.get("content") or ""
    plain: dict[str, Any] = {"role": role if role in _ROLES else "system", "content": content}
    if role == "tool":
        plain["tool_call_id"] = str(message.get("tool_call_id", ""))
    elif role == "assistant" and message.get("tool_calls"):
        plain["content"] = content or None
        plain["tool_calls"] = [_call(call) for call in message["tool_calls"]]
    return plain


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    # Arguments that are no JSON object are sent as none: servers refuse the whole request for them.
    arguments = json.dumps(dict(parsed_args(function.get("arguments"))), ensure_ascii=False)
    return {"type": "function", "id": call.get("id"), "function": {"name": function["name"], "arguments": arguments}}


def _called(call: Mapping[str, Any], number: int) -> ToolCall:
    function: Mapping[str, Any] = call["function"]
    arguments: object = function.get("arguments")
    text = arguments if isinstance(arguments, str) else None
    return ToolCall(call.get("id") or f"call_{number}", function.get("name") or "", parsed_args(arguments), text)


def _part(call: Mapping[str, Any]) -> CallPart:
    function: Mapping[str, Any] = call.get("function") or _NOTHING
    return CallPart(call.get("index"), call.get("id"), function.get("name"), function.get("arguments"))


def _counted(usage: Mapping[str, Any]) -> Usage:
    return Usage(int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0))


def _said(message: Mapping[str, Any]) -> str:
    """Return the text of a message, or of a piece of one; a refusal is a text too."""
    return _text(message.get("content")) or str(message.get("refusal") or "")


def _text(content: object) -> str:
    """Return the text of a message's content: a text, or parts of which some are texts."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise TypeError("The content of the answer is neither a text nor a list of parts.")
    parts = cast("list[Any]", content)
    return "".join(part if isinstance(part, str) else str(part.get("text") or "") for part in parts)
