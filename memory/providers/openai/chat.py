"""Opens the chat models of OpenAI and of every server with its protocol."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from importlib import import_module

from typing_extensions import override

from recollect.memory.ports.chat_model import ChatModel, ChatReply, ChatRequest
from recollect.memory.providers.answer_parts import Piece
from recollect.memory.providers.asked_chat import AskedChat, Asking
from recollect.memory.providers.endpoint import Endpoint
from recollect.memory.providers.failures import Failures
from recollect.memory.providers.openai.plain_chat import chat_body, read_piece, read_reply
from recollect.memory.providers.openai.plain_client import PlainClient, open_plain_client
from recollect.memory.providers.openai.plain_json import parsed
from recollect.memory.providers.openai.provider import OpenAIProvider
from recollect.memory.providers.wire import Allowance

_PATH = "/chat/completions"
_END = b"[DONE]"
_OBSERVERS = "langchain_core.callbacks"
_TRACING = ("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING", "LANGCHAIN_TRACING_V2")
"""The variables of the environment that switch LangSmith's traces on."""


class OpenAIAsking(Asking):
    """Asks the model `name` in plain JSON; through LangChain where a callback or a trace of LangChain's observes.

    Studio's stream of tokens is such a callback. `observed` closes what that way opens, at its first call.
    """

    takes_tools = True
    sums_usage = False

    def __init__(
        self, client: PlainClient, source: Endpoint, *, name: str, timeout_seconds: float, observed: AsyncExitStack
    ) -> None:
        self.name = name
        self._client = client
        self._source = source
        self._timeout = timeout_seconds
        self._stack = observed
        self._observed: Asking | None = None
        self._opening = asyncio.Lock()

    @override
    async def whole(self, request: ChatRequest) -> ChatReply:
        if await _is_observed():
            return await (await self._through_langchain()).whole(request)
        body = chat_body(request, model=self.name)
        answer = await self._client.post(_PATH, body, api_key=request.api_key)
        return read_reply(answer, asked=body["model"])

    @override
    async def pieces(self, request: ChatRequest, allowance: Allowance) -> AsyncGenerator[Piece, None]:
        if await _is_observed():
            pieces = (await self._through_langchain()).pieces(request, allowance)
        else:
            pieces = self._pieces(request, allowance)
        async with aclosing(pieces):
            async for piece in pieces:
                yield piece

    @override
    def knows(self, parameter: str) -> bool:
        """Return True: all are passed on, and the server says which it refuses."""
        return True

    async def _pieces(self, request: ChatRequest, allowance: Allowance) -> AsyncGenerator[Piece, None]:
        body = chat_body(request, model=self.name, streams=True)
        events = self._client.events(_PATH, body, allowance, api_key=request.api_key)
        async with aclosing(events):
            async for data in events:
                if data.startswith(_END):
                    return
                yield read_piece(parsed(data))

    async def _through_langchain(self) -> Asking:
        async with self._opening:
            if self._observed is None:
                enter = await asyncio.to_thread(_enter_observed)
                self._observed = await enter(self._stack, self._source, model=self.name, timeout_seconds=self._timeout)
            return self._observed


def _enter_observed() -> Callable[..., Awaitable[Asking]]:
    """Import the way through LangChain. It reads libraries from disk: not on the event loop."""
    from recollect.memory.providers.openai.observed_chat import enter_observed

    return enter_observed


async def _is_observed() -> bool:
    """Tell whether a call through LangChain would be shown to a handler: of the run around it, or of a tracer.

    Where nobody has imported LangChain there is no run around it, and the environment alone can ask for a tracer.
    """
    if _OBSERVERS not in sys.modules:
        if not any(os.environ.get(name, "false").lower() not in {"", "false"} for name in _TRACING):
            return False
        await asyncio.to_thread(import_module, _OBSERVERS)
    from langchain_core.callbacks import AsyncCallbackManager
    from langchain_core.runnables import ensure_config

    return bool(AsyncCallbackManager.configure(ensure_config().get("callbacks")).handlers)


@asynccontextmanager
async def open_openai_chat(
    source: Endpoint, *, model: str, model_setting: str, timeout_seconds: float
) -> AsyncGenerator[ChatModel]:
    """Open the chat model `model` at `source`. `model_setting` is the setting that errors name."""
    failures = Failures(source.key_setting, model_setting, source.address_setting)
    async with AsyncExitStack() as observed, open_plain_client(source) as client:
        yield AskedChat(
            OpenAIAsking(client, source, name=model, timeout_seconds=timeout_seconds, observed=observed),
            failures=failures,
            timeout_seconds=timeout_seconds,
            provider=OpenAIProvider(client, failures, lists=source.protocol != "azure"),
        )
