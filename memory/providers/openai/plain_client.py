"""Posts JSON to an OpenAI-compatible server and returns whole answers, with aiohttp.

OpenAI's SDK builds typed requests and answers around each call, and its HTTP client asks the system about each idle
connection: a call takes 1.4 ms of CPU there and 2.8 under LangChain, here 0.3.
"""

import asyncio
import json
import random
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import openai
import orjson

from recollect.memory.providers.accounts import AzureAccount
from recollect.memory.providers.endpoint import Endpoint
from recollect.memory.providers.openai.azure import AzureCalls
from recollect.memory.providers.openai.client import CONNECT_SECONDS, LOOPBACK, MAX_RETRIES, certificates
from recollect.memory.providers.wire import Allowance, unpacked

_RETRY_SECONDS = 0.5
_MOST_RETRY_SECONDS = 120.0
_RETRIED = frozenset({408, 409, 429})
_MOST_QUOTED = 10_000
_PIECE = 64 * 1024


class Refused(Exception):
    """The server refused the request with the status `status_code`."""

    def __init__(self, status_code: int, text: str) -> None:
        super().__init__(text[:_MOST_QUOTED])
        self.status_code = status_code


class ContextOverflow(Refused):
    """The server refused the request because the prompt is too long."""


class PlainClient:
    """Posts to the server at `url` over `session`, which it neither opens nor closes; `headers` go with each request.

    `azure` names the address and the credentials of each call to Azure. It waits as long as the server does: whoever
    calls sets the bound of time.
    """

    def __init__(
        self, session: aiohttp.ClientSession, url: str, headers: Mapping[str, str], azure: AzureCalls | None = None
    ) -> None:
        self._session = session
        self._azure = azure
        self._url = url.rstrip("/")
        self._headers = headers

    async def post(self, path: str, body: Mapping[str, Any], *, api_key: str | None = None) -> Any:
        """Post `body` as JSON, and return the answer's JSON; `api_key` takes the place of the configured key.

        A lost connection, 408, 409, 429 and 5xx are tried once more, after the pause that the server asks for.

        Raises:
            Refused: a status of 400 or more.
            AnswerTooLong: the answer is longer than an answer may be.
            aiohttp.ClientError: no connection.
            ValueError: the answer is no JSON.
        """
        content, url = _dumped(body), f"{self._url}{path}"
        headers = {**self._headers, "Authorization": f"Bearer {api_key}"} if api_key else self._headers
        if self._azure is not None:
            url, headers = self._azure.url(path, body), {**self._headers, **await self._azure.headers()}
        for left in range(MAX_RETRIES, -1, -1):
            pause = _RETRY_SECONDS * random.uniform(0.75, 1)
            try:
                async with self._session.post(url, data=content, headers=headers) as answer:
                    if not left or not _may_pass(answer):
                        return await _read(answer)
                    pause = _asked_pause(answer) or pause
            except asyncio.CancelledError:
                await asyncio.sleep(0)  # in which the loop closes the socket: the server stops working before we go on
                raise
            except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError):
                if not left:
                    raise
            await asyncio.sleep(pause)
        raise AssertionError  # The loop's last round returns or raises.


@asynccontextmanager
async def open_plain_client(source: Endpoint, sdk: openai.AsyncOpenAI) -> AsyncGenerator[PlainClient]:
    """Open a client with the headers of `sdk`, with keep-alive for 100 concurrent calls, closed at exit.

    It uses proxies of the environment except for servers on this machine, as `sdk` does.
    """
    azure = AzureCalls(source, source.account) if isinstance(source.account, AzureAccount) else None
    given = {**sdk.default_headers, **({} if azure else sdk.auth_headers), "Accept-Encoding": "identity"}
    headers = {name: value for name, value in given.items() if isinstance(value, str)}
    connector = aiohttp.TCPConnector(ssl=certificates(), limit=100)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout, auto_decompress=False, proxy=_proxy(source.base_url)
    ) as session:
        yield PlainClient(session, source.base_url, headers, azure)


def _proxy(url: str) -> str | None:
    """Return the environment's proxy for the server, if any."""
    target = urlsplit(url)
    host = target.hostname or ""
    if host in LOOPBACK or proxy_bypass(host):
        return None
    proxies = getproxies()
    return proxies.get(target.scheme) or proxies.get("all")


async def _read(answer: aiohttp.ClientResponse) -> Any:
    packing = answer.headers.get("Content-Encoding", "")
    pieces = unpacked(answer.content.iter_chunked(_PIECE), packing, Allowance())
    content = b"".join([piece async for piece in pieces])
    if answer.status >= 400:
        text = content.decode(errors="replace")
        raise (ContextOverflow if answer.status == 400 and _is_overflow(text) else Refused)(answer.status, text)
    return _parsed(content)


def _dumped(body: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError:
        # A caller's parameters may hold a number beyond 64 bits: the server shall judge it.
        return json.dumps(body).encode()


def _parsed(content: bytes) -> Any:
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
