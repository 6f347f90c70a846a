"""Asks an OpenAI-compatible server with plain JSON: whole answers, streams of events, and lists.

OpenAI's SDK builds typed requests and answers around each call, and its HTTP client asks the system about each idle
connection: a call takes 1.4 ms of CPU there and 2.8 under LangChain, here 0.3. Their import takes a second of a start.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from recollect.memory.providers.endpoint import Endpoint
from recollect.memory.providers.wire import Allowance

if TYPE_CHECKING:
    from recollect.memory.providers.openai.plain_calls import PlainCalls

MAX_RETRIES = 1
"""On the way to a reply. Background work has its own back-off."""


class PlainClient:
    """Asks the server `source`, over connections that it opens at its first call and that `stack` closes.

    The import of what opens them, aiohttp, takes a fifth of a start, which asks for less. The client waits as long as
    the server does: whoever calls sets the bound of time. What may pass is tried again `retries` times.
    """

    def __init__(self, source: Endpoint, stack: AsyncExitStack, *, retries: int = MAX_RETRIES) -> None:
        self._source = source
        self._stack = stack
        self._retries = retries
        self._calls: PlainCalls | None = None
        self._opening = asyncio.Lock()

    async def post(self, path: str, body: Mapping[str, Any], *, api_key: str | None = None) -> Any:
        """Post `body` as JSON, and return the answer's JSON; `api_key` takes the place of the configured key.

        Raises:
            Refused: a status of 400 or more.
            AnswerTooLong: the answer is longer than an answer may be.
            aiohttp.ClientError: no connection.
            ValueError: the answer is no JSON.
        """
        calls = self._calls or await self._opened()
        return await calls.post(path, body, api_key)

    async def events(
        self, path: str, body: Mapping[str, Any], allowance: Allowance, *, api_key: str | None = None
    ) -> AsyncGenerator[bytes, None]:
        """Post `body` as JSON, and yield the data of each event of the answer as it comes.

        Raises:
            Refused, AnswerTooLong, aiohttp.ClientError: as `post`; only the answer's beginning is waited for twice.
        """
        calls = self._calls or await self._opened()
        async with aclosing(calls.events(path, body, allowance, api_key)) as events:
            async for data in events:
                yield data

    async def get(self, path: str, *, api_key: str | None = None) -> tuple[int, str]:
        """Return the status and the text of the answer to a GET, which is tried once.

        Raises:
            AnswerTooLong: as `post`.
            ModelUnavailable: no connection.
        """
        calls = self._calls or await self._opened()
        return await calls.get(path, api_key)

    async def _opened(self) -> "PlainCalls":
        async with self._opening:
            if self._calls is None:
                await asyncio.to_thread(import_calls)
                from recollect.memory.providers.openai.plain_calls import open_plain_calls

                calls = open_plain_calls(self._source, retries=self._retries)
                self._calls = await self._stack.enter_async_context(calls)
            return self._calls


def import_calls() -> None:
    """Import what opens connections, ahead of the first call. An event loop calls it in a thread."""
    import_module("recollect.memory.providers.openai.plain_calls")


@asynccontextmanager
async def open_plain_client(source: Endpoint, *, retries: int = MAX_RETRIES) -> AsyncGenerator[PlainClient]:
    """Open a client of the server; the connections that it has opened are closed at exit."""
    async with AsyncExitStack() as stack:
        yield PlainClient(source, stack, retries=retries)
