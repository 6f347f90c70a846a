"""Implements ChatModel over any LangChain chat model."""

import asyncio
import logging
from abc import abstractmethod
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.runnables import Runnable
from pydantic import SecretStr
from typing_extensions import override

from recollect.memory.ports.chat_model import ABOUT_TOOLS, ChatModel, ChatReply, ChatRequest
from recollect.memory.providers.chat_messages import to_langchain, to_reply
from recollect.memory.providers.failures import Failures, blames_tools, refuses_content
from recollect.memory.providers.streamed_reply import StreamedReply
from recollect.memory.providers.wire import Allowance, allowing
from recollect.memory.values.errors import ModelUnavailable

logger = logging.getLogger(__name__)

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


class Provider(Protocol):
    """The server of the model."""

    @abstractmethod
    async def ping(self) -> None:
        """Ask, without spending tokens, whether it can be reached. Raises as ChatModel does."""
        ...

    @abstractmethod
    async def models(self, api_key: str | None) -> Sequence[str]:
        """Return the models that the provider lists; none where it keeps no list. Raises as ChatModel does."""
        ...


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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


class _ToolsRefused(ModelUnavailable):
    """The provider refused a request that offered tools; without them it may answer."""


class LangChainChat(ChatModel):
    """ChatModel over `model`, which it neither opens nor closes.

    A call takes at most `timeout_seconds` in all, a stream too. Where a provider refuses the tools that a request
    offers (it names no `tool_choice` and does not need them), the request is repeated without them; once that works,
    `calls_tools` is false for as long as the process runs.
    """

    def __init__(
        self,
        model: BaseChatModel,
        *,
        name: str,
        dialect: Dialect,
        failures: Failures,
        timeout_seconds: float,
        provider: Provider,
    ) -> None:
        self._model = model
        self._name = name
        self._dialect = dialect
        self._failures = failures
        self._timeout = timeout_seconds
        self._provider = provider
        self._calls_tools = dialect.takes_tools

    @property
    @override
    def name(self) -> str:
        """Return the model's name as asked for."""
        return self._name

    @property
    @override
    def calls_tools(self) -> bool:
        """Return True until the provider has refused tools."""
        return self._calls_tools

    @override
    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the whole reply at once.

        An empty answer is an error only where text was asked for: with `tool_choice` or `json_mode` the caller sees it.

        Raises:
            ModelTimeout: nothing within `timeout_seconds`.
            ModelUnavailable: no connection, a refusal, or an answer that nobody can read.
        """
        deadline = asyncio.get_running_loop().time() + self._timeout
        offered = self._offered(request)
        try:
            return await self._complete(offered, deadline)
        except _ToolsRefused:
            reply = await self._complete(_without_tools(offered), deadline)
        self._stop_offering_tools(offered)
        return reply

    @override
    async def stream(self, request: ChatRequest) -> AsyncGenerator[str | ChatReply, None]:
        """Yield the reply's text in pieces, then the whole ChatReply. Closing the generator closes the connection.

        Raises:
            ModelTimeout: the end did not come within `timeout_seconds`.
            ModelUnavailable: as `complete`.
        """
        deadline = asyncio.get_running_loop().time() + self._timeout
        offered = self._offered(request)
        try:
            async with aclosing(self._stream(offered, deadline)) as items:
                async for item in items:
                    yield item
        except _ToolsRefused:
            offered = _without_tools(offered)
        else:
            return
        async with aclosing(self._stream(offered, deadline)) as items:
            async for item in items:
                self._stop_offering_tools(offered)
                yield item

    @override
    async def models(self, *, api_key: str | None = None) -> list[str]:
        """Return the model's own name, then the names that the provider lists.

        Raises:
            ModelUnavailable: the provider cannot be asked, or refuses the key.
        """
        return list(dict.fromkeys([self._name, *await self._provider.models(api_key)]))

    @override
    def unknown_parameters(self, names: Iterable[str]) -> list[str]:
        """Return those for which the dialect has no word."""
        return [name for name in names if not self._dialect.knows(name)]

    @override
    async def ping(self) -> None:
        """Check, without spending tokens, that the provider can be reached; raises ModelUnavailable."""
        await self._provider.ping()

    async def _complete(self, request: ChatRequest, deadline: float) -> ChatReply:
        try:
            async with asyncio.timeout_at(deadline):
                return _not_empty(await self._ask(request), request)
        except Exception as error:
            raise self._failure(error, request) from None

    async def _ask(self, request: ChatRequest) -> ChatReply:
        """Ask the model for a whole reply."""
        answering, options = self._dialect.prepare(self._model, request)
        message = await answering.ainvoke(self._messages(request), **options)
        return to_reply(message, asked=request.model or self._name)

    async def _stream(self, request: ChatRequest, deadline: float) -> AsyncGenerator[str | ChatReply, None]:
        whole = StreamedReply(asked=request.model or self._name, sums_usage=self._dialect.sums_usage)
        chunks: AsyncGenerator[AIMessage, None] | None = None
        allowance = Allowance()
        try:
            answering, options = self._dialect.prepare(self._model, request)
            chunks = _generator(answering, self._messages(request), options)
            while True:
                # Each wait has the same deadline: a timeout that spans a yield would cancel whoever reads the stream.
                async with asyncio.timeout_at(deadline):
                    with allowing(allowance):
                        chunk = await anext(chunks, None)
                if chunk is None:
                    break
                if isinstance(chunk, AIMessageChunk) and (text := whole.add(chunk)):
                    allowance.add(len(text))
                    yield text
            yield _not_empty(whole.reply(), request)
        except Exception as error:
            raise self._failure(error, request) from None
        finally:
            if chunks is not None:
                await chunks.aclose()

    def _messages(self, request: ChatRequest) -> list[BaseMessage]:
        return to_langchain(request.messages, one_system=self._dialect.one_system)

    def _offered(self, request: ChatRequest) -> ChatRequest:
        if request.tools and not (request.tool_choice or request.needs_tools) and not self._calls_tools:
            return _without_tools(request)
        return request

    def _failure(self, error: Exception, request: ChatRequest) -> ModelUnavailable:
        logger.debug("the chat model failed", exc_info=error, extra={"action": "model_failed", "model": self._name})
        failure = self._failures.read(error)
        if request.tools and not request.needs_tools and refuses_content(error):
            if request.tool_choice is None:
                return _ToolsRefused(failure.message, outage=False)
            if blames_tools(error):
                self._stop_offering_tools(request)
        return failure

    def _stop_offering_tools(self, request: ChatRequest) -> None:
        """Stop offering tools, unless the caller's own model or parameters may have caused the refusal."""
        if request.model or request.parameters:
            return
        if self._calls_tools:
            logger.warning(
                "the chat model takes no tools; they are no longer offered",
                extra={"action": "tools_refused", "model": self._name},
            )
        self._calls_tools = False


async def _generator(
    answering: Answering, messages: Sequence[BaseMessage], options: dict[str, Any]
) -> AsyncGenerator[AIMessage, None]:
    async for chunk in answering.astream(messages, **options):
        yield chunk


def _without_tools(request: ChatRequest) -> ChatRequest:
    """Return the request without its tools and the parameters about them."""
    parameters = {name: value for name, value in request.parameters.items() if name not in ABOUT_TOOLS}
    return replace(request, tools=(), parameters=parameters)


def _not_empty(reply: ChatReply, request: ChatRequest) -> ChatReply:
    if reply.text or reply.tool_calls or request.tool_choice or request.json_mode:
        return reply
    raise ModelUnavailable("The model sent an empty answer; send the request again.", outage=False)
