"""Sends calls to an OpenAI-compatible server over aiohttp, and reads what it answers."""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

import aiohttp

from recollect.memory.providers.endpoint import Endpoint
from recollect.memory.providers.openai.address import Address, address_of, proxy_of
from recollect.memory.providers.openai.certificates import certificates
from recollect.memory.providers.openai.events import event_data
from recollect.memory.providers.openai.plain_json import dumped, parsed, refusal
from recollect.memory.providers.wire import Allowance, unpacked
from recollect.memory.values.errors import ModelUnavailable

CONNECT_SECONDS = 5.0
_RETRY_SECONDS = 0.5
_MOST_RETRY_SECONDS = 120.0
_RETRIED = frozenset({408, 409, 429})
_PIECE = 64 * 1024

Result = TypeVar("Result")


class PlainCalls:
    """Sends the calls of a PlainClient to the server at `address` over `session`, which it neither opens nor closes.

    What may pass is tried again `retries` times, after the pause that the server asks for: a lost connection, 408,
    409, 429 and 5xx.
    """

    def __init__(self, session: aiohttp.ClientSession, address: Address, *, retries: int) -> None:
        self._session = session
        self._address = address
        self._retries = retries

    async def post(self, path: str, body: Mapping[str, Any], api_key: str | None) -> Any:
        """Post `body`, and return the answer's JSON."""
        return await self._tried(path, body, api_key, _read)

    async def events(
        self, path: str, body: Mapping[str, Any], allowance: Allowance, api_key: str | None
    ) -> AsyncGenerator[bytes, None]:
        """Post `body`, and yield the data of each event of the answer as it comes."""
        answer = await self._tried(path, body, api_key, _begun)
        async with answer:
            packing = answer.headers.get("Content-Encoding", "")
            async for data in event_data(unpacked(answer.content.iter_any(), packing, allowance)):
                yield data

    async def get(self, path: str, api_key: str | None) -> tuple[int, str]:
        """Return the status and the text of the answer to a GET."""
        url, headers = await self._address.called(path, None, api_key)
        try:
            async with self._session.get(url, headers=headers) as answer:
                return answer.status, (await _content(answer)).decode(errors="replace")
        except (aiohttp.ClientError, OSError):
            raise ModelUnavailable("The model's provider cannot be reached.", outage=True) from None

    async def _tried(
        self,
        path: str,
        body: Mapping[str, Any],
        api_key: str | None,
        read: Callable[[aiohttp.ClientResponse], Awaitable[Result]],
    ) -> Result:
        """Post `body`, again where that may help, and return what `read` makes of the answer, which it closes."""
        content = dumped(body)
        url, headers = await self._address.called(path, body, api_key)
        for left in range(self._retries, -1, -1):
            pause = _RETRY_SECONDS * random.uniform(0.75, 1)
            try:
                answer = await self._session.post(url, data=content, headers=headers)
                if not left or not _may_pass(answer):
                    return await read(answer)
                pause = _asked_pause(answer) or pause
                answer.release()
            except asyncio.CancelledError:
                await asyncio.sleep(0)  # in which the loop closes the socket: the server stops working before we go on
                raise
            except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError):
                if not left:
                    raise
            await asyncio.sleep(pause)
        raise AssertionError  # The loop's last round returns or raises.


@asynccontextmanager
async def open_plain_calls(source: Endpoint, *, retries: int) -> AsyncGenerator[PlainCalls]:
    """Open a pool of 100 connections to the server with keep-alive, closed at exit.

    It uses proxies of the environment except for servers on this machine.
    """
    is_secure = urlsplit(source.base_url).scheme == "https"
    connector = aiohttp.TCPConnector(ssl=await asyncio.to_thread(certificates) if is_secure else True, limit=100)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout, auto_decompress=False, proxy=proxy_of(source.base_url)
    ) as session:
        yield PlainCalls(session, address_of(source), retries=retries)


async def _read(answer: aiohttp.ClientResponse) -> Any:
    """Read the answer's JSON to its end."""
    async with answer:
        content = await _content(answer)
    if answer.status >= 400:
        raise refusal(answer.status, content)
    return parsed(content)


async def _begun(answer: aiohttp.ClientResponse) -> aiohttp.ClientResponse:
    """Return the answer, still open, once it is known that the server does not refuse."""
    if answer.status >= 400:
        await _read(answer)
    return answer


async def _content(answer: aiohttp.ClientResponse) -> bytes:
    packing = answer.headers.get("Content-Encoding", "")
    pieces = unpacked(answer.content.iter_chunked(_PIECE), packing, Allowance())
    return b"".join([piece async for piece in pieces])


def _may_pass(answer: aiohttp.ClientResponse) -> bool:
    """Tell whether another try may help: by the server's word where it says so, else by the status."""
    if (_asked_pause(answer) or 0.0) > _MOST_RETRY_SECONDS:
        return False
    said = answer.headers.get("x-should-retry")
    if said in {"true", "false"}:
        return said == "true"
    return answer.status in _RETRIED or answer.status >= 500


def _asked_pause(answer: aiohttp.ClientResponse) -> float | None:
    """Return the seconds that the server asks to wait before another try."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(answer.headers.get(name, "")) * unit
        except ValueError:
            continue
        if seconds > 0:
            return seconds
    return None
