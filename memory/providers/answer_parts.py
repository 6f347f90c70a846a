"""Reads the parts of models' answers: pieces of a stream, arguments of tool calls, and why an answer ended."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from recollect.memory.ports.chat_model import ChatReply, FinishReason, ToolCall, Usage
from recollect.memory.values.frozen import frozen

_FINISHES: Mapping[str, FinishReason] = {
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "refusal": "content_filter",
}
"""The providers' names, in lower case, for ends that are not the usual one."""


def parsed_args(arguments: object) -> Mapping[str, Any]:
    """Return a tool call's arguments as a dict; {} where they are no JSON object."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments, strict=False)
        except (ValueError, RecursionError):
            return {}
    return cast("Mapping[str, Any]", arguments) if isinstance(arguments, Mapping) else {}


def finish_named(reason: object) -> FinishReason | None:
    """Return the end that a provider calls `reason`; None without a reason."""
    return _FINISHES.get(str(reason).lower(), "stop") if reason else None


@frozen
class CallPart:
    """Part of a tool call in a stream; `index` and `id` say of which one."""

    index: int | str | None
    id: str | None
    name: str | None
    arguments: str | None


@frozen
class Piece:
    """One chunk of a stream. What it does not say is None, or empty."""

    text: str = ""
    model: str | None = None
    usage: Usage | None = None
    finish_reason: FinishReason | None = None
    calls: Sequence[CallPart] = ()


@dataclass(slots=True)
class _StreamedCall:
    index: int | str | None
    id: str | None
    name: str
    arguments: list[str] = field(default_factory=list[str])

    def called(self, number: int) -> ToolCall:
        """Return the whole call; `number` makes an id where none came."""
        arguments = "".join(self.arguments) or "{}"
        return ToolCall(self.id or f"call_{number}", self.name, parsed_args(arguments), arguments)


@dataclass(slots=True)
class StreamedReply:
    """Collects pieces. `sums_usage` where each piece counts only its own tokens; else the last count is the whole."""

    asked: str
    sums_usage: bool = False
    model: str | None = None
    usage: Usage = field(default_factory=Usage)
    finish_reason: FinishReason = "stop"
    _text: list[str] = field(default_factory=list[str])
    _calls: list[_StreamedCall] = field(default_factory=list[_StreamedCall])

    def add(self, piece: Piece) -> None:
        """Add one piece."""
        if piece.usage is not None:
            self.usage = self.usage + piece.usage if self.sums_usage else piece.usage
        for part in piece.calls:
            self._add_call(part)
        self.model = self.model or piece.model
        self.finish_reason = piece.finish_reason or self.finish_reason
        if piece.text:
            self._text.append(piece.text)

    def reply(self) -> ChatReply:
        """Return the whole reply so far."""
        return ChatReply(
            text="".join(self._text),
            model=self.model or self.asked,
            tool_calls=tuple(call.called(number) for number, call in enumerate(self._calls)),
            usage=self.usage,
            finish_reason=self.finish_reason,
        )

    def _add_call(self, part: CallPart) -> None:
        """Append the part to the call of its index, unless its id is another (some servers number every call 0)."""
        same = [call for call in self._calls if call.index == part.index and part.id in {None, "", call.id}]
        if not same:
            same = [_StreamedCall(index=part.index, id=part.id, name="")]
            self._calls += same
        call = same[-1]
        call.name = call.name or part.name or ""
        call.arguments.append(part.arguments or "")
