"""Asks a remote model through any LangChain chat model."""

from abc import abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.runnables import Runnable
from pydantic import SecretStr
from typing_extensions import override

from recollect.memory.ports.chat_model import ChatReply, ChatRequest
from recollect.memory.providers.answer_parts import Piece
from recollect.memory.providers.asked_chat import Asking
from recollect.memory.providers.chat_messages import to_langchain, to_piece, to_reply
from recollect.memory.providers.wire import Allowance, allowing
from recollect.memory.values.frozen import frozen

Answering = Runnable[Sequence[BaseMessage], AIMessage]
CALLERS_KEY = "callers_key"
"""The option that holds another key than the configured one."""
_JSON_FORMATS = frozenset({"json_object", "json_schema"})
_NOTHING: Mapping[str, Any] = {}
_PUT_OTHERWISE = frozenset({"stop", "tool_choice", "response_format"})
"""Parameters that a model with a form of its own takes in other words."""


class Dialect(Protocol):
    """The form in which one family of models takes tools, the wish for JSON, and system messages."""

    one_system: bool
    """Tell whether all system messages must be joined to one, the first."""

    sums_usage: bool
    """Tell whether each chunk of a stream counts only its own tokens."""

    takes_tools: bool
    """Tell whether the models can be given tools at all."""

    @abstractmethod
    def prepare(self, model: BaseChatModel, request: ChatRequest) -> tuple[Answering, dict[str, Any]]:
        """Return what to call, and the options that carry the request's tools, parameters and `json_mode`."""
        ...

    @abstractmethod
    def knows(self, parameter: str) -> bool:
        """Tell whether it has a word for the parameter, named as in OpenAI's API."""
        ...


@frozen
class OpenAIDialect(Dialect):
    """OpenAI's own form, passed on unchanged: binding tools for each call would cost more than the call."""

    one_system: bool = False
    sums_usage: bool = False
    takes_tools: bool = True

    @override
    def prepare(self, model: BaseChatModel, request: ChatRequest) -> tuple[Answering, dict[str, Any]]:
        options: dict[str, Any] = {}
        if request.tools:
            options["tools"] = list(request.tools)
        if request.tools and request.tool_choice:
            options["tool_choice"] = {"type": "function", "function": {"name": request.tool_choice}}
        if request.json_mode:
            options["response_format"] = {"type": "json_object"}
        if request.parameters:
            options["extra_body"] = dict(request.parameters)
        if request.model:
            options["model"] = request.model
        if request.api_key:
            # A secret, so that LangChain masks it wherever it shows options; PlainChatOpenAI unwraps it.
            options[CALLERS_KEY] = SecretStr(request.api_key)
        return model, options

    @override
    def knows(self, parameter: str) -> bool:
        """Return True: all are passed on, and the server says which it refuses."""
        return True


@frozen
class NativeDialect(Dialect):
    """Models with a form of their own, through LangChain's `bind_tools`. `json_options` are what asks for JSON.

    `fields` are the model's own names of the parameters that it takes; others are left out.
    """

    json_options: dict[str, Any]
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    one_system: bool = True
    sums_usage: bool = True
    takes_tools: bool = True

    @override
    def prepare(self, model: BaseChatModel, request: ChatRequest) -> tuple[Answering, dict[str, Any]]:
        said = request.parameters
        form: Mapping[str, Any] = said.get("response_format") or _NOTHING
        wants_json = request.json_mode or form.get("type") in _JSON_FORMATS
        options = dict(self.json_options) if wants_json else {}
        if said.get("stop"):
            options["stop"] = [said["stop"]] if isinstance(said["stop"], str) else list(said["stop"])
        changes = {own: said[name] for name, own in self.fields.items() if said.get(name) is not None}
        if request.model:
            changes["model"] = request.model
        if changes:
            model = model.model_copy(update=changes)
        chosen = request.tool_choice or _native_choice(said.get("tool_choice"))
        if not request.tools or chosen == "none":
            return model, options
        return model.bind_tools([dict(tool) for tool in request.tools], tool_choice=chosen), options

    @override
    def knows(self, parameter: str) -> bool:
        """Tell whether the model takes it."""
        return parameter in self.fields or parameter in _PUT_OTHERWISE


def _native_choice(choice: Any) -> str | None:
    """Return OpenAI's `tool_choice` in LangChain's form: none, auto, any, or a tool's name."""
    if isinstance(choice, Mapping):
        function: Mapping[str, Any] = cast("Mapping[str, Any]", choice).get("function") or _NOTHING
        return function.get("name")
    return "any" if choice == "required" else choice


class LangChainAsking(Asking):
    """Asks `model`, whose family speaks `dialect`; it neither opens nor closes the model."""

    def __init__(self, model: BaseChatModel, *, name: str, dialect: Dialect) -> None:
        self._model = model
        self._dialect = dialect
        self.name = name
        self.takes_tools = dialect.takes_tools
        self.sums_usage = dialect.sums_usage

    @override
    async def whole(self, request: ChatRequest) -> ChatReply:
        answering, options = self._dialect.prepare(self._model, request)
        message = await answering.ainvoke(self._messages(request), **options)
        return to_reply(message, asked=request.model or self.name)

    @override
    async def pieces(self, request: ChatRequest, allowance: Allowance) -> AsyncGenerator[Piece, None]:
        answering, options = self._dialect.prepare(self._model, request)
        chunks = _generator(answering, self._messages(request), options)
        try:
            while True:
                with allowing(allowance):
                    chunk = await anext(chunks, None)
                if chunk is None:
                    return
                if isinstance(chunk, AIMessageChunk):
                    yield to_piece(chunk)
        finally:
            await chunks.aclose()

    @override
    def knows(self, parameter: str) -> bool:
        return self._dialect.knows(parameter)

    def _messages(self, request: ChatRequest) -> list[BaseMessage]:
        return to_langchain(request.messages, one_system=self._dialect.one_system)


async def _generator(
    answering: Answering, messages: Sequence[BaseMessage], options: dict[str, Any]
) -> AsyncGenerator[AIMessage, None]:
    async for chunk in answering.astream(messages, **options):
        yield chunk
