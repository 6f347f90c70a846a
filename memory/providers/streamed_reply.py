"""Puts a reply together from the chunks of a stream."""

from dataclasses import dataclass, field

from langchain_core.messages import AIMessageChunk
from langchain_core.messages.tool import ToolCallChunk

from recollect.memory.ports.chat_model import ChatReply, FinishReason, ToolCall, Usage
from recollect.memory.providers.chat_messages import finish_of, model_named, parsed_args, to_usage


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
    """Collects chunks. `sums_usage` where each chunk counts only its own tokens; else the last count is the whole."""

    asked: str
    sums_usage: bool = False
    model: str | None = None
    usage: Usage = field(default_factory=Usage)
    finish_reason: FinishReason = "stop"
    _text: list[str] = field(default_factory=list[str])
    _calls: list[_StreamedCall] = field(default_factory=list[_StreamedCall])

    def add(self, chunk: AIMessageChunk) -> str:
        """Add one chunk and return its text, which may be empty."""
        if chunk.usage_metadata:
            counted = to_usage(chunk.usage_metadata)
            self.usage = self.usage + counted if self.sums_usage else counted
        for part in chunk.tool_call_chunks:
            self._add_call(part)
        self.model = self.model or model_named(chunk)
        self.finish_reason = finish_of(chunk) or self.finish_reason
        text = str(chunk.text) or str(chunk.additional_kwargs.get("refusal") or "")
        if text:
            self._text.append(text)
        return text

    def reply(self) -> ChatReply:
        """Return the whole reply so far."""
        return ChatReply(
            text="".join(self._text),
            model=self.model or self.asked,
            tool_calls=tuple(call.called(number) for number, call in enumerate(self._calls)),
            usage=self.usage,
            finish_reason=self.finish_reason,
        )

    def _add_call(self, part: ToolCallChunk) -> None:
        """Append the part to the call of its index, unless its id is another (some servers number every call 0)."""
        index, call_id = part.get("index"), part.get("id")
        same = [call for call in self._calls if call.index == index and call_id in {None, "", call.id}]
        if not same:
            same = [_StreamedCall(index=index, id=call_id, name="")]
            self._calls += same
        call = same[-1]
        call.name = call.name or part.get("name") or ""
        call.arguments.append(part.get("args") or "")
