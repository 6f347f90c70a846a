"""The connection to a service: one request and its answer, within a time limit, and again where that is safe."""

import asyncio
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import httpx

from recollect.memory.agents.address import key_header, service_address, uses_proxies
from recollect.memory.agents.service_errors import read_answer
from recollect.memory.values.errors import InvalidRequest, Problem, ServiceUnreachable, StoreUnavailable

SECONDS = 300.0
"""The longest wait for one answer: a model's time, and the service's own waits for thread and memory."""
CONNECT_SECONDS = 5.0
DELAYS = (0.2, 1.0)
"""Seconds before the second and the third try."""


class ServiceConnection:
    """Calls the service at `url`. It opens with the first call; a call after `aclose` opens it again.

    Raises:
        ConfigurationError: `url` is no address, or `api_key` no key.
    """

    def __init__(self, url: str, api_key: str | None, *, timeout_seconds: float = SECONDS) -> None:
        self._address = service_address(url)
        self._headers = {**key_header(api_key), "Content-Type": "application/json"}
        self._seconds = timeout_seconds
        self._http: httpx.AsyncClient | None = None

    async def check(self) -> None:
        """Check that the service answers; close the connection where it does not, because nobody else would."""
        try:
            await self.call("GET", "/health", repeatable=True)
        except BaseException:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """Close the connection."""
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | list[dict[str, Any]] | None = None,
        repeatable: bool = False,
    ) -> Any:
        """Return the answer's JSON. Parameters of `query` that are None are left out.

        What never reached the service is tried again, and a `repeatable` request (one that only reads, or names its
        turn) also where no answer came or the store was down.

        Raises:
            RecollectError: what the service's memory raised.
            ServiceUnreachable: it does not answer, or not within the time limit.
            ConfigurationError: something else answers there.
        """
        given = {name: value for name, value in (query or {}).items() if value is not None}
        content = None if body is None else _encoded(body)
        for delay in (*DELAYS, None):
            try:
                return await self._once(method, path, given, content)
            except StoreUnavailable as error:
                never_sent = isinstance(error.__cause__, httpx.ConnectError)
                if delay is None or not (repeatable or never_sent):
                    raise
                await asyncio.sleep(delay)
        raise AssertionError("the last try returns or raises")

    async def _once(self, method: str, path: str, query: Mapping[str, Any], content: bytes | None) -> Any:
        if self._http is None:
            self._http = httpx.AsyncClient(
                base_url=self._address,
                headers=self._headers,
                timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
                trust_env=uses_proxies(self._address),
            )
        try:
            async with asyncio.timeout(self._seconds):
                response = await self._http.request(method, path, params=query, content=content)
        except TimeoutError as error:
            raise ServiceUnreachable(
                f"The service at {self._address} has not answered within {self._seconds:g} s; send the request again "
                "with the same turn_id."
            ) from error
        except httpx.RequestError as error:
            raise ServiceUnreachable(
                f"The service at {self._address} does not answer ({type(error).__name__}); see whether it runs, and "
                "send the request again with the same turn_id."
            ) from error
        return read_answer(response, place=str(self._address))


def _encoded(body: Mapping[str, Any] | list[dict[str, Any]]) -> bytes:
    try:
        return json.dumps(body, default=_plain, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        problem = "holds what JSON cannot say; give texts, numbers, lists, objects and times"
        raise InvalidRequest("The request is not valid: see body.", problems=[Problem("body", problem)]) from None


def _plain(value: object) -> str:
    """Return a time as text; one without a zone is in UTC."""
    if isinstance(value, datetime):
        return (value if value.tzinfo is not None else value.replace(tzinfo=UTC)).isoformat()
    raise TypeError
