"""Implements ChatModel over what asks a remote model: bounds of time, a try without tools, errors as this package's."""

import asyncio
import logging
from abc import abstractmethod
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Protocol

from typing_extensions import override

from recollect.memory.ports.chat_model import ABOUT_TOOLS, ChatModel, ChatReply, ChatRequest
from recollect.memory.providers.answer_parts import Piece, StreamedReply
from recollect.memory.providers.failures import Failures, blames_tools, refuses_content
from recollect.memory.providers.wire import Allowance
from recollect.memory.values.errors import ModelUnavailable

logger = logging.getLogger(__name__)


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


class Asking(Protocol):
    """Asks one remote model, and lets errors through as its library raises them."""

    name: str
    """The model's name as asked for."""

    takes_tools: bool
    """Tell whether the model can be given tools at all."""

    sums_usage: bool
    """Tell whether each piece of a stream counts only its own tokens."""

    @abstractmethod
    async def whole(self, request: ChatRequest) -> ChatReply:
        """Return the whole reply."""
        ...

    @abstractmethod
    def pieces(self, request: ChatRequest, allowance: Allowance) -> AsyncGenerator[Piece, None]:
        """Yield the reply in pieces, of at most as many bytes as `allowance` says, which grows with what came."""
        ...

    @abstractmethod
    def knows(self, parameter: str) -> bool:
        """Tell whether it has a word for the parameter, named as in OpenAI's API."""
        ...


class _ToolsRefused(ModelUnavailable):
    """The provider refused a request that offered tools; without them it may answer."""


class AskedChat(ChatModel):
    """ChatModel over `asking`, which it neither opens nor closes.

    A call takes at most `timeout_seconds` in all, a stream too. Where a provider refuses the tools that a request
    offers (it names no `tool_choice` and does not need them), the request is repeated without them; once that works,
    `calls_tools` is false for as long as the process runs.
    """

    def __init__(self, asking: Asking, *, failures: Failures, timeout_seconds: float, provider: Provider) -> None:
        self._asking = asking
        self._failures = failures
        self._timeout = timeout_seconds
        self._provider = provider
        self._calls_tools = asking.takes_tools

    @property
    @override
    def name(self) -> str:
        """Return the model's name as asked for."""
        return self._asking.name

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
        has_spoken = False
        try:
            async with aclosing(self._stream(offered, deadline)) as items:
                async for item in items:
                    has_spoken = True
                    yield item
        except _ToolsRefused:
            if has_spoken:
                raise  # a second answer would go on behind the words of the first
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
        return list(dict.fromkeys([self.name, *await self._provider.models(api_key)]))

    @override
    def unknown_parameters(self, names: Iterable[str]) -> list[str]:
        """Return those for which the provider has no word."""
        return [name for name in names if not self._asking.knows(name)]

    @override
    async def ping(self) -> None:
        """Check, without spending tokens, that the provider can be reached; raises ModelUnavailable."""
        await self._provider.ping()

    async def _complete(self, request: ChatRequest, deadline: float) -> ChatReply:
        try:
            async with asyncio.timeout_at(deadline):
                return _not_empty(await self._asking.whole(request), request)
        except Exception as error:
            raise self._failure(error, request) from None

    async def _stream(self, request: ChatRequest, deadline: float) -> AsyncGenerator[str | ChatReply, None]:
        whole = StreamedReply(asked=request.model or self.name, sums_usage=self._asking.sums_usage)
        allowance = Allowance()
        pieces = self._asking.pieces(request, allowance)
        try:
            while True:
                # Each wait has the same deadline: a timeout that spans a yield would cancel whoever reads the stream.
                async with asyncio.timeout_at(deadline):
                    piece = await anext(pieces, None)
                if piece is None:
                    break
                whole.add(piece)
                if piece.text:
                    allowance.add(len(piece.text))
                    yield piece.text
            yield _not_empty(whole.reply(), request)
        except Exception as error:
            raise self._failure(error, request) from None
        finally:
            await pieces.aclose()

    def _offered(self, request: ChatRequest) -> ChatRequest:
        if request.tools and not (request.tool_choice or request.needs_tools) and not self._calls_tools:
            return _without_tools(request)
        return request

    def _failure(self, error: Exception, request: ChatRequest) -> ModelUnavailable:
        logger.debug("the chat model failed", exc_info=error, extra={"action": "model_failed", "model": self.name})
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
                extra={"action": "tools_refused", "model": self.name},
            )
        self._calls_tools = False


def _without_tools(request: ChatRequest) -> ChatRequest:
    """Return the request without its tools and the parameters about them."""
    parameters = {name: value for name, value in request.parameters.items() if name not in ABOUT_TOOLS}
    return replace(request, tools=(), parameters=parameters)


def _not_empty(reply: ChatReply, request: ChatRequest) -> ChatReply:
    if reply.text or reply.tool_calls or request.tool_choice or request.json_mode:
        return reply
    raise ModelUnavailable("The model sent an empty answer; send the request again.", outage=False)
