"""Asks an OpenAI-compatible server with plain JSON over aiohttp: whole answers, streams of events, and lists.

OpenAI's SDK builds typed requests and answers around each call, and its HTTP client asks the system about each idle
connection: a call takes 1.4 ms of CPU there and 2.8 under LangChain, here 0.3. Their import takes a second of a start.
"""

import asyncio
import json
import os
import random
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import orjson

from recollect.memory.providers.accounts import AzureAccount
from recollect.memory.providers.endpoint import Endpoint
from recollect.memory.providers.openai.azure import AzureCalls
from recollect.memory.providers.openai.events import event_data
from recollect.memory.providers.wire import Allowance, unpacked

MAX_RETRIES = 1
"""On the way to a reply. Background work has its own back-off."""
CONNECT_SECONDS = 5.0
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_RETRY_SECONDS = 0.5
_MOST_RETRY_SECONDS = 120.0
_RETRIED = frozenset({408, 409, 429})
_MOST_QUOTED = 10_000
_PIECE = 64 * 1024
_ACCOUNTS = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
"""Headers, and the variables of the environment from which OpenAI's SDK takes them too."""

Result = TypeVar("Result")


class Refused(Exception):
    """The server refused the request with the status `status_code`."""

    def __init__(self, status_code: int, text: str) -> None:
        super().__init__(text[:_MOST_QUOTED])
        self.status_code = status_code


class ContextOverflow(Refused):
    """The server refused the request because the prompt is too long."""


class PlainClient:
    """Asks the server at `url` over `session`, which it neither opens nor closes; `headers` go with each request.

    `azure` names the address and the credentials of each call to Azure. It waits as long as the server does: whoever
    calls sets the bound of time. What may pass is tried again `retries` times, after the pause that the server asks
    for: a lost connection, 408, 409, 429 and 5xx.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        url: str,
        headers: Mapping[str, str],
        azure: AzureCalls | None = None,
        *,
        retries: int = MAX_RETRIES,
    ) -> None:
        self._session = session
        self._azure = azure
        self._url = url.rstrip("/")
        self._headers = headers
        self._retries = retries

    async def post(self, path: str, body: Mapping[str, Any], *, api_key: str | None = None) -> Any:
        """Post `body` as JSON, and return the answer's JSON; `api_key` takes the place of the configured key.

        Raises:
            Refused: a status of 400 or more.
            AnswerTooLong: the answer is longer than an answer may be.
            aiohttp.ClientError: no connection.
            ValueError: the answer is no JSON.
        """
        return await self._tried(path, body, api_key, _read)

    async def events(
        self, path: str, body: Mapping[str, Any], allowance: Allowance, *, api_key: str | None = None
    ) -> AsyncGenerator[bytes, None]:
        """Post `body` as JSON, and yield the data of each event of the answer as it comes.

        Raises:
            Refused, AnswerTooLong, aiohttp.ClientError: as `post`; only the answer's beginning is waited for twice.
        """
        answer = await self._tried(path, body, api_key, _begun)
        async with answer:
            packing = answer.headers.get("Content-Encoding", "")
            async for data in event_data(unpacked(answer.content.iter_any(), packing, allowance)):
                yield data

    async def get(self, path: str, *, api_key: str | None = None) -> tuple[int, str]:
        """Return the status and the text of the answer to a GET, which is tried once.

        Raises:
            AnswerTooLong, aiohttp.ClientError: as `post`.
        """
        url, headers = await self._addressed(path, None, api_key)
        async with self._session.get(url, headers=headers) as answer:
            return answer.status, (await _content(answer)).decode(errors="replace")

    async def _tried(
        self,
        path: str,
        body: Mapping[str, Any],
        api_key: str | None,
        read: Callable[[aiohttp.ClientResponse], Awaitable[Result]],
    ) -> Result:
        """Post `body`, again where that may help, and return what `read` makes of the answer, which it closes."""
        content = _dumped(body)
        url, headers = await self._addressed(path, body, api_key)
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

    async def _addressed(
        self, path: str, body: Mapping[str, Any] | None, api_key: str | None
    ) -> tuple[str, Mapping[str, str]]:
        """Return the URL of `path`, and the headers that say who asks."""
        if self._azure is not None:
            return self._azure.url(path, body), {**self._headers, **await self._azure.headers()}
        own = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        return f"{self._url}{path}", {**self._headers, **own}


@asynccontextmanager
async def open_plain_client(source: Endpoint, *, retries: int = MAX_RETRIES) -> AsyncGenerator[PlainClient]:
    """Open a client of the server with keep-alive for 100 concurrent calls, closed at exit.

    It uses proxies of the environment except for servers on this machine.
    """
    azure = AzureCalls(source, source.account) if isinstance(source.account, AzureAccount) else None
    is_secure = urlsplit(source.base_url).scheme == "https"
    connector = aiohttp.TCPConnector(ssl=await asyncio.to_thread(certificates) if is_secure else True, limit=100)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout, auto_decompress=False, proxy=_proxy(source.base_url)
    ) as session:
        yield PlainClient(session, source.base_url, _headers(source, azure), azure, retries=retries)


@cache
def certificates() -> ssl.SSLContext:
    """Load the certificates, once for all clients: each copy costs 20 ms and some megabytes."""
    import httpx

    return httpx.create_ssl_context()


def _headers(source: Endpoint, azure: AzureCalls | None) -> dict[str, str]:
    """Return the headers of every request; Azure's say who asks with each one."""
    fixed = {
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "Content-Type": "application/json",
        "User-Agent": "Recollect",
    }
    if azure is not None:
        return fixed
    named = {header: os.environ[name] for header, name in _ACCOUNTS.items() if os.environ.get(name)}
    return {**fixed, **named, "Authorization": f"Bearer {source.api_key}"}


def _proxy(url: str) -> str | None:
    """Return the environment's proxy for the server, if any."""
    target = urlsplit(url)
    host = target.hostname or ""
    if host in LOOPBACK or proxy_bypass(host):
        return None
    proxies = getproxies()
    return proxies.get(target.scheme) or proxies.get("all")


async def _read(answer: aiohttp.ClientResponse) -> Any:
    """Read the answer's JSON to its end."""
    async with answer:
        content = await _content(answer)
    if answer.status >= 400:
        text = content.decode(errors="replace")
        raise (ContextOverflow if answer.status == 400 and _is_overflow(text) else Refused)(answer.status, text)
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


def _dumped(body: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError:
        # A caller's parameters may hold a number beyond 64 bits: the server shall judge it.
        return json.dumps(body).encode()


def parsed(content: bytes) -> Any:
    """Return the JSON value of an answer, or of an event.

    Raises:
        ValueError: it is none.
    """
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        # Some servers write NaN, or half of a surrogate pair, which the standard library alone reads.
        return json.loads(content)


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


def _is_overflow(text: str) -> bool:
    words = ("context_length_exceeded", "Input tokens exceed the configured limit", "prompt is too long")
    return any(word in text for word in (*words, "ContextWindowExceededError"))
