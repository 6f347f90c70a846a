"""Converts messages from OpenAI's form to LangChain's, and LangChain's answers and chunks to this package's."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call

from recollect.memory.ports.chat_model import ChatMessage, ChatReply, FinishReason, ToolCall, Usage
from recollect.memory.providers.answer_parts import CallPart, Piece, finish_named, parsed_args

RAW_ARGUMENTS = "raw_arguments"
"""Where a message keeps the arguments of its tool calls as they came."""


def to_langchain(messages: Sequence[ChatMessage], *, one_system: bool = False) -> list[BaseMessage]:
    """Return `messages` in LangChain's form.

    With `one_system` all system messages are joined, in their order, to one that comes first: Anthropic and Gemini take
    no other form.
    """
    converted = [_convert(message) for message in messages]
    if not one_system:
        return converted
    system = [message for message in converted if isinstance(message, SystemMessage)]
    others = [message for message in converted if not isinstance(message, SystemMessage)]
    if not system:
        return others
    return [SystemMessage("\n\n".join(str(message.text) for message in system)), *others]


def _convert(message: ChatMessage) -> BaseMessage:
    role, content = message["role"], message.get("content") or ""
    if role == "user":
        return HumanMessage(content)
    if role == "assistant":
        calls = message.get("tool_calls") or ()
        return AIMessage(content, tool_calls=[_call(call) for call in calls])
    if role == "tool":
        return ToolMessage(content, tool_call_id=str(message.get("tool_call_id", "")))
    return SystemMessage(content)


def _call(call: Mapping[str, Any]) -> Any:
    function = call["function"]
    return tool_call(name=function["name"], args=dict(parsed_args(function.get("arguments"))), id=call.get("id"))


def to_reply(message: AIMessage, *, asked: str) -> ChatReply:
    """Return the reply of `message`. `asked` is the model's name where the provider gives none."""
    calls = [*message.tool_calls, *message.invalid_tool_calls]
    raw = cast("Sequence[str]", message.additional_kwargs.get(RAW_ARGUMENTS) or ())
    return ChatReply(
        text=str(message.text) or str(message.additional_kwargs.get("refusal") or ""),
        model=_model_named(message) or asked,
        tool_calls=tuple(
            ToolCall(
                id=call.get("id") or f"call_{number}",
                name=call.get("name") or "",
                args=parsed_args(call["args"]),
                arguments=text,
            )
            for number, (call, text) in enumerate(
                zip(calls, itertools.chain(raw, itertools.repeat(None)), strict=False)
            )
        ),
        usage=_to_usage(message.usage_metadata),
        finish_reason=_finish_of(message) or "stop",
    )


def to_piece(chunk: AIMessageChunk) -> Piece:
    """Return a chunk of a stream as a piece."""
    return Piece(
        text=str(chunk.text) or str(chunk.additional_kwargs.get("refusal") or ""),
        model=_model_named(chunk),
        usage=_to_usage(chunk.usage_metadata) if chunk.usage_metadata else None,
        finish_reason=_finish_of(chunk),
        calls=[
            CallPart(part.get("index"), part.get("id"), part.get("name"), part.get("args"))
            for part in chunk.tool_call_chunks
        ],
    )


def _model_named(message: AIMessage) -> str | None:
    """Return the model's name as the provider gave it, if it did."""
    metadata = _metadata(message)
    name = metadata.get("model_name") or metadata.get("model")
    return str(name) if name else None


def _finish_of(message: AIMessage) -> FinishReason | None:
    """Return why the answer ended; None where the provider has not said so (yet)."""
    metadata = _metadata(message)
    return finish_named(metadata.get("finish_reason") or metadata.get("stop_reason"))


def _metadata(message: AIMessage) -> Mapping[str, Any]:
    """Return the provider's metadata beside its answer."""
    return cast("Mapping[str, Any]", message.response_metadata)  # pyright: ignore[reportUnknownMemberType]


def _to_usage(counted: UsageMetadata | None) -> Usage:
    """Return the counted tokens in this package's form."""
    return Usage(counted["input_tokens"], counted["output_tokens"]) if counted else Usage()
