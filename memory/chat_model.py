"""The chat model port: messages in, a reply or tool calls out."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

ChatMessage = Mapping[str, Any]
"""One message in OpenAI's form: `role`, `content`, and `tool_calls` or `tool_call_id` where they apply."""

ToolSpec = Mapping[str, Any]
"""A tool in OpenAI's form: {"type": "function", "function": {"name", "description", "parameters"}}."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that a model asks for. `args` is what it sent, parsed; {} where it could not be parsed."""

    id: str
    name: str
    args: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counted them; 0 where it does not say."""

    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens)


@dataclass(frozen=True, slots=True)
class KnownMemory:
    """What was recalled, as values. The offline model answers from it; the others read it in the messages."""

    facts: Mapping[str, str] = field(default_factory=dict[str, str])
    notes: Sequence[str] = ()
    recalled: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One call. `tool_choice` names a tool that must be called; `json_mode` asks for one JSON object as the text."""

    messages: Sequence[ChatMessage]
    tools: Sequence[ToolSpec] = ()
    tool_choice: str | None = None
    json_mode: bool = False
    memory: KnownMemory = field(default_factory=KnownMemory)


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What came back. `model` is the name that the provider gave, or the one asked for."""

    text: str
    model: str
    tool_calls: Sequence[ToolCall] = ()
    usage: Usage = field(default_factory=Usage)


class ChatModel(Protocol):
    """A model that answers. Raises ModelTimeout or ModelUnavailable, and nothing else crosses this seam."""

    @property
    def name(self) -> str:
        """The model's name as settings and `/health` say it."""
        ...

    @property
    def calls_tools(self) -> bool:
        """Whether it can be given tools at all."""
        ...

    async def complete(self, request: ChatRequest) -> ChatReply:
        """The whole reply at once."""
        ...

    def stream(self, request: ChatRequest) -> AsyncIterator[str | ChatReply]:
        """The reply's text in pieces as it comes, then the whole reply as the last item."""
        ...

    async def ping(self) -> None:
        """Ask, without spending tokens, whether it can be reached."""
        ...
