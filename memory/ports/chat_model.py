"""The chat model port: messages in, a reply or tool calls out."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, Protocol

from typing_extensions import override

from recollect.memory.values.frozen import frozen

ChatMessage = Mapping[str, Any]
"""One message in OpenAI's form: `role`, `content`, and `tool_calls` or `tool_call_id` where they apply."""

ToolSpec = Mapping[str, Any]
"""A tool in OpenAI's form: {"type": "function", "function": {"name", "description", "parameters"}}."""


ABOUT_TOOLS = frozenset({"tool_choice", "parallel_tool_calls"})
"""Parameters that are allowed only where tools are offered."""
FinishReason = Literal["stop", "length", "content_filter"]
"""Why a text ended: the model was done, reached its token limit, or a filter stopped it."""


@frozen
class ToolCall:
    """One tool call that a model asks for.

    `args` are its arguments, parsed; {} where they could not be parsed. `arguments` is their text, where it is known.
    """

    id: str
    name: str
    args: Mapping[str, Any]
    arguments: str | None = field(default=None, compare=False)


@frozen
class Usage:
    """Token counts of the provider; 0 where it gives none."""

    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens)


@frozen
class KnownMemory:
    """The recalled texts, as values. The offline model answers from them; other models read them in the messages.

    `passages` are of documents; `recalled` are messages that were found, without the assistant's. `is_kept` says
    whether anything of this turn is stored.
    """

    facts: Mapping[str, str] = field(default_factory=dict[str, str])
    notes: Sequence[str] = ()
    recalled: Sequence[str] = ()
    passages: Sequence[str] = ()
    is_kept: bool = True


@frozen
class ChatRequest:
    """One call of a chat model.

    `tool_choice` names a tool that must be called; `json_mode` asks for one JSON object as the text. `parameters` are
    passed on unchanged, named as in OpenAI's API (temperature, max_tokens, response_format, …); other providers take
    those that they know. `model` is another model of the provider, `api_key` another key; None takes the configured
    one. With `needs_tools`, a model that cannot call tools is not asked. `chosen` names what the caller of this turn
    has chosen ("model", "instructions", "parameters"): a model that ignores it says so.
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
    chosen: Sequence[str] = ()


@frozen
class ChatReply:
    """A model's answer. `model` is the name that the provider returned, or the requested one."""

    text: str
    model: str
    tool_calls: Sequence[ToolCall] = ()
    usage: Usage = field(default_factory=Usage)
    finish_reason: FinishReason = "stop"


class ChatModel(Protocol):
    """A model that answers.

    Raises:
        ModelTimeout, ModelUnavailable: from any call; no other error crosses this seam.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The model's name as settings and `/health` show it."""
        ...

    @property
    @abstractmethod
    def calls_tools(self) -> bool:
        """Tell whether it can be given tools at all."""
        ...

    @abstractmethod
    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the whole reply at once."""
        ...

    @abstractmethod
    def stream(self, request: ChatRequest) -> AsyncIterator[str | ChatReply]:
        """Yield the reply's text in pieces as they come, then the whole reply as the last item."""
        ...

    @abstractmethod
    async def models(self, *, api_key: str | None = None) -> Sequence[str]:
        """Return the names that `ChatRequest.model` may have, as the provider lists them for `api_key`.

        Where the provider keeps no list, return only the model's own. A list is cached for a minute.
        """
        ...

    @abstractmethod
    def unknown_parameters(self, names: Iterable[str]) -> list[str]:
        """Return those of the parameters' `names` that its provider is known not to take."""
        ...

    @abstractmethod
    async def ping(self) -> None:
        """Ask, without spending tokens, whether it can be reached."""
        ...


@frozen
class ForwardingChat(ChatModel):
    """Forwards what a wrapper of `chat` leaves as it is; the wrapper itself answers `complete` and `stream`."""

    chat: ChatModel

    @property
    @override
    def name(self) -> str:
        """Return the wrapped model's name."""
        return self.chat.name

    @property
    @override
    def calls_tools(self) -> bool:
        """Tell whether the wrapped model calls tools."""
        return self.chat.calls_tools

    @override
    async def models(self, *, api_key: str | None = None) -> Sequence[str]:
        """Return the models that the wrapped one's provider lists."""
        return await self.chat.models(api_key=api_key)

    @override
    def unknown_parameters(self, names: Iterable[str]) -> list[str]:
        """Return those that the wrapped model's provider does not take."""
        return self.chat.unknown_parameters(names)

    @override
    async def ping(self) -> None:
        """Ask whether the wrapped model can be reached."""
        await self.chat.ping()
