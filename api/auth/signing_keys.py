"""The issuer's public keys (JWT_JWKS_URL): fetched on first use, kept, and fetched again for a new key."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast
from urllib.parse import urlsplit

import httpx
import jwt
from typing_extensions import override

from recollect.api.auth.access_rules import LOOPBACK_NAMES
from recollect.api.auth.tokens import SigningKeys
from recollect.memory.values.errors import IssuerUnavailable

logger = logging.getLogger(__name__)

FRESH_SECONDS = 300.0
"""The age after which keys are fetched again; until that succeeds the known ones are used."""
PAUSE_SECONDS = 10.0
"""The least time between two fetches, however many tokens name unknown keys."""
FETCH_SECONDS = 5.0
MOST_BYTES, MOST_KEYS = 1_000_000, 100

Keys = dict[tuple[str | None, str], jwt.PyJWK]
"""Keys by their id and the algorithm that they check; the id None means the only key of its algorithm."""


class Issuer(SigningKeys):
    """Public keys at a URL, for these algorithms."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        url: str,
        algorithms: Sequence[str],
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._url = url
        self._algorithms = algorithms
        self._monotonic = monotonic
        self._keys: Keys = {}
        self._fetched_at: float | None = None
        self._tried_at: float | None = None
        self._fetching = asyncio.Lock()
        self._behind: asyncio.Task[None] | None = None

    @override
    async def key(self, kid: str | None, algorithm: str) -> jwt.PyJWK | None:
        """Return the key; wait for the issuer only where it is unknown."""
        found = self._keys.get((kid, algorithm))
        if found is not None:
            if self._is_past(self._fetched_at, FRESH_SECONDS):
                self._refresh_behind()
            return found
        await self._refresh()
        found = self._keys.get((kid, algorithm))
        if found is None and self._fetched_at != self._tried_at:
            raise IssuerUnavailable
        return found

    async def close(self) -> None:
        """Cancel the fetch that runs in the background."""
        if self._behind is not None:
            self._behind.cancel()
            await asyncio.gather(self._behind, return_exceptions=True)

    def _refresh_behind(self) -> None:
        if self._behind is None or self._behind.done():
            self._behind = asyncio.create_task(self._refresh(), name="signing-keys")

    async def _refresh(self) -> None:
        """Fetch the keys, once for all waiting callers, unless just tried. A failure keeps the known keys."""
        async with self._fetching:
            # Callers that waited for the lock find that the fetch was just tried.
            if not self._is_past(self._tried_at, PAUSE_SECONDS):
                return
            begun = self._monotonic()
            try:
                self._keys = read_keys(await self._fetch(), self._algorithms)
                self._fetched_at = begun
            except (httpx.HTTPError, TimeoutError, ValueError, RecursionError) as error:
                # The error's own text contains the address, which may hold credentials.
                logger.warning(
                    "the issuer's keys cannot be fetched",
                    extra={"action": "issuer_unavailable", "error": type(error).__name__},
                )
            self._tried_at = begun

    async def _fetch(self) -> Any:
        async with asyncio.timeout(FETCH_SECONDS), self._client.stream("GET", self._url) as response:
            response.raise_for_status()
            body = bytearray()
            async for part in response.aiter_bytes():
                body += part
                if len(body) > MOST_BYTES:
                    raise ValueError
        return json.loads(body)

    def _is_past(self, at: float | None, seconds: float) -> bool:
        return at is None or self._monotonic() - at >= seconds


@asynccontextmanager
async def open_issuer(url: str, algorithms: Sequence[str]) -> AsyncGenerator[Issuer]:
    """Provide the keys at `url`; nothing is fetched before one is needed. Proxies are heeded except on this machine."""
    async with await asyncio.to_thread(_client, url) as client:
        issuer = Issuer(client, url, algorithms)
        try:
            yield issuer
        finally:
            await issuer.close()


def _client(url: str) -> httpx.AsyncClient:
    """Build the client in a thread, because it reads certificates from disk."""
    return httpx.AsyncClient(timeout=FETCH_SECONDS, trust_env=urlsplit(url).hostname not in LOOPBACK_NAMES)


def read_keys(said: Any, algorithms: Sequence[str]) -> Keys:
    """Return the key set's public keys for signatures of these algorithms, without the others and broken ones.

    Raises:
        ValueError: it is no key set.
    """
    if not isinstance(said, dict) or not isinstance(listed := cast("dict[str, Any]", said).get("keys"), list):
        raise ValueError("no key set")  # noqa: TRY004  # as what is no JSON at all
    found: Keys = {}
    for algorithm in algorithms:
        fitting = [(kid, key) for kid, key in _fitting(cast("list[Any]", listed)[:MOST_KEYS], algorithm)]
        found.update({(kid, algorithm): key for kid, key in fitting if kid is not None})
        if len(fitting) == 1:
            found[None, algorithm] = fitting[0][1]
    return found


def _fitting(listed: list[Any], algorithm: str) -> Iterator[tuple[str | None, jwt.PyJWK]]:
    for one in listed:
        if not isinstance(one, dict):
            continue
        said = cast("dict[str, Any]", one)
        # A symmetric key in a public set would be everybody's: whoever can read the set could sign.
        if said.get("use", "sig") != "sig" or said.get("alg", algorithm) != algorithm or said.get("kty") == "oct":
            continue
        kid = said.get("kid")
        if kid is not None and not isinstance(kid, str):
            continue
        try:
            yield kid, jwt.PyJWK.from_dict(said, algorithm)
        except (jwt.PyJWTError, ValueError, TypeError, AttributeError, OverflowError):
            continue  # PyJWT takes the fields for what they should be.
