"""The chat model port: messages in, a reply or tool calls out."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

ChatMessage = Mapping[str, Any]
"""One message in OpenAI's form: `role`, `content`, and `tool_calls` or `tool_call_id` where they apply."""

ToolSpec = Mapping[str, Any]
"""A tool in OpenAI's form: {"type": "function", "function": {"name", "description", "parameters"}}."""


ABOUT_TOOLS = frozenset({"tool_choice", "parallel_tool_calls"})
"""Parameters that are allowed only where tools are offered."""
FinishReason = Literal["stop", "length", "content_filter"]
"""Why a text ended: the model had said it all, reached its limit, or was held back."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that a model asks for.

    `args` is what it sent, parsed; {} where it could not be parsed. `arguments` is the text itself, where it is known.
    """

    id: str
    name: str
    args: Mapping[str, Any]
    arguments: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counted them; 0 where it does not say."""

    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens)


@dataclass(frozen=True, slots=True)
class KnownMemory:
    """What was recalled, as values. The offline model answers from it; the others read it in the messages.

    `passages` are of documents; `recalled` is what was said, but for the assistant's words.
    """

    facts: Mapping[str, str] = field(default_factory=dict[str, str])
    notes: Sequence[str] = ()
    recalled: Sequence[str] = ()
    passages: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One call. `tool_choice` names a tool that must be called; `json_mode` asks for one JSON object as the text.

    `parameters` are passed on as they are, in OpenAI's words (temperature, max_tokens, response_format, …); models that
    speak otherwise take what they understand. `model` is another model of the provider, `api_key` another key; None
    takes the configured one. With `needs_tools` an answer without the tools is none: it is never asked for.
    """

    messages: Sequence[ChatMessage]
    tools: Sequence[ToolSpec] = ()
    tool_choice: str | None = None
    json_mode: bool = False
    memory: KnownMemory = field(default_factory=KnownMemory)
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    model: str | None = None
    api_key: str | None = field(default=None, repr=False)
    needs_tools: bool = False


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What came back. `model` is the name that the provider gave, or the one asked for."""

    text: str
    model: str
    tool_calls: Sequence[ToolCall] = ()
    usage: Usage = field(default_factory=Usage)
    finish_reason: FinishReason = "stop"


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

    async def models(self, *, api_key: str | None = None) -> Sequence[str]:
        """The names that `ChatRequest.model` may have, as the provider lists them (to whom the key belongs).

        Only the model's own where the provider keeps no list. It is asked again after a minute.
        """
        ...

    async def ping(self) -> None:
        """Ask, without spending tokens, whether it can be reached."""
        ...
