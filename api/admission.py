"""What a request's token is worth: who shows it, or nobody."""

import asyncio
import hashlib
import hmac
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from api.access_rules import AccessRules, TokenRules
from api.caller import Caller
from api.rate_limit import RateLimit
from memory.errors import Unauthorized
from memory.key_ring import KeyRing

INVALID = "The key or token is not valid; send a valid one as `Authorization: Bearer …`."
MOST_PROVEN = 1_000


class Credentials(Protocol):
    """Finds out who shows a token."""

    async def caller(self, token: str) -> Caller:
        """Who shows it.

        Raises:
            Unauthorized: nobody that may call; why is not said.
            StoreUnavailable, IssuerUnavailable: it cannot be found out now.
        """
        ...


@dataclass(frozen=True, slots=True)
class KeyCredentials:
    """AUTH=api_key: whoever shows a living key."""

    ring: KeyRing

    async def caller(self, token: str) -> Caller:
        """See the protocol."""
        key = await self.ring.find(token)
        if key is None:
            raise Unauthorized(INVALID)
        return Caller(f"key:{key.id}", key.user_id, is_admin=key.role == "admin")


class Admission:
    """Who may call, ready to be asked. `credentials` None: everybody, as the administrator."""

    def __init__(self, credentials: Credentials | None, limits: RateLimit | None, *, owner_token: str) -> None:
        self.credentials = credentials
        self.limits = limits
        self._owner_token = owner_token.encode()
        self._proven: dict[bytes, None] = {}

    def is_owners(self, token: bytes | None) -> bool:
        """Whether it is the token in the lock file of DATA_DIR."""
        return token is not None and hmac.compare_digest(token, self._owner_token)

    def is_proven(self, token: bytes) -> bool:
        """Whether the token was found good before. It is checked again all the same."""
        return hashlib.sha256(token).digest() in self._proven

    def prove(self, token: bytes) -> None:
        """The token was found good."""
        digest = hashlib.sha256(token).digest()
        self._proven.pop(digest, None)
        if len(self._proven) >= MOST_PROVEN:
            del self._proven[next(iter(self._proven))]
        self._proven[digest] = None


@asynccontextmanager
async def open_admission(rules: AccessRules, ring: KeyRing, *, owner_token: str) -> AsyncGenerator[Admission]:
    """What the rules say, opened; the rules were checked."""
    limits = RateLimit(rules.per_minute, rules.burst) if rules.per_minute else None
    async with AsyncExitStack() as stack:
        credentials: Credentials | None = None
        if rules.auth == "api_key":
            credentials = KeyCredentials(ring)
        elif rules.auth == "jwt":
            credentials = await stack.enter_async_context(await asyncio.to_thread(_open_tokens, rules.tokens))
        yield Admission(credentials, limits, owner_token=owner_token)


def _open_tokens(rules: TokenRules) -> AbstractAsyncContextManager[Credentials]:
    """Imports what checks signatures, from disk: not on the event loop."""
    from api.tokens import open_tokens

    return open_tokens(rules)
