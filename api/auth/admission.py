"""Resolves a request's token to its caller."""

import asyncio
import hmac
from abc import abstractmethod
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Annotated, Protocol

from fastapi import Depends, Request
from typing_extensions import override

from recollect.api.auth.access_rules import AccessRules, TokenRules
from recollect.api.auth.caller import Caller, bound_caller
from recollect.api.auth.leased_limit import LeasedLimit
from recollect.api.auth.rate_limit import RateLimit
from recollect.memory.ports.callers.rate_leases import RateLeases
from recollect.memory.ports.key_ring import KeyRing
from recollect.memory.values.errors import RateLimited, Unauthorized
from recollect.memory.values.frozen import frozen
from recollect.memory.values.times import Clock

Limit = RateLimit | LeasedLimit
OPEN_WARNING = (
    "Rate limits are not in force (RATE_LIMIT_PER_MINUTE): the document store, which counts the requests of all "
    "processes, does not answer; check that it runs and lets this service in."
)
INVALID = "The key or token is not valid; send a valid one as `Authorization: Bearer …`."


class Credentials(Protocol):
    """Resolves tokens to callers."""

    @abstractmethod
    async def caller(self, token: str) -> Caller:
        """Return the token's caller.

        Raises:
            Unauthorized: nobody that may call; why is not said.
            StoreUnavailable, IssuerUnavailable: it cannot be found out now.
        """
        ...


@frozen
class KeyCredentials(Credentials):
    """AUTH=api_key: admits callers with a key that was not revoked."""

    ring: KeyRing

    @override
    async def caller(self, token: str) -> Caller:
        key = await self.ring.find(token)
        if key is None:
            raise Unauthorized(INVALID)
        return bound_caller(
            f"key:{key.id}", key.user_id, is_admin=key.role == "admin", key_id=key.id, agent_id=key.agent_id
        )


class Admission:
    """Decides who may call. `credentials` None: everybody, as the administrator.

    `limits` counts requests by caller, `failures` refused requests by address; None: without limit.
    """

    def __init__(
        self,
        credentials: Credentials | None,
        limits: Limit | None,
        failures: Limit | None,
        *,
        owner_token: str,
    ) -> None:
        self.credentials = credentials
        self.limits = limits
        self.failures = failures
        self._owner_token = owner_token.encode()

    async def proven(self, token: bytes | None, address: str) -> Caller:
        """Return the token's caller. Only failures count against `address`: a guesser blocks no valid caller there.

        Raises:
            Unauthorized: there is no token, or nobody with it may call.
            RateLimited: too many such failures came from the address.
            StoreUnavailable, IssuerUnavailable: it cannot be found out now.
        """
        try:
            return await self._shown(token)
        except Unauthorized:
            await take(self.failures, address)
            raise

    async def _shown(self, token: bytes | None) -> Caller:
        if token is None or self.credentials is None:
            raise Unauthorized
        return await self.credentials.caller(token.decode("latin-1"))

    @property
    def uncounted(self) -> int:
        """How many requests have passed uncounted, because the store did not answer, since the start."""
        return sum(limit.uncounted for limit in self._leased)

    @property
    def warnings(self) -> list[str]:
        """Sentences on what is not in force now, for `/health`."""
        return [OPEN_WARNING] if any(limit.is_open for limit in self._leased) else []

    @property
    def _leased(self) -> list[LeasedLimit]:
        return [limit for limit in (self.limits, self.failures) if isinstance(limit, LeasedLimit)]

    def is_owners(self, token: bytes | None) -> bool:
        """Tell whether the token is the one in the lock file of DATA_DIR."""
        return token is not None and hmac.compare_digest(token, self._owner_token)


@asynccontextmanager
async def open_admission(
    rules: AccessRules, ring: KeyRing, leases: RateLeases | None, *, owner_token: str, clock: Clock
) -> AsyncGenerator[Admission]:
    """Provide what the rules say, opened; the rules were checked.

    `leases` count the requests of all processes; None: this process alone counts.
    """
    limits, failures = (_limit(rules, leases, kind, clock) for kind in ("requests", "failures"))
    async with AsyncExitStack() as stack:
        credentials: Credentials | None = None
        if rules.auth == "api_key":
            credentials = KeyCredentials(ring)
        elif rules.auth == "jwt":
            credentials = await stack.enter_async_context(await asyncio.to_thread(_open_tokens, rules.tokens))
        yield Admission(credentials, limits, failures, owner_token=owner_token)


async def take(limit: Limit | None, sender: str) -> None:
    """Take one of the sender's requests; without a limit do nothing.

    Raises:
        RateLimited: none is left.
    """
    if limit is None:
        return
    seconds = limit.take(sender) if isinstance(limit, RateLimit) else await limit.take(sender)
    if seconds:
        raise RateLimited(retry_after=seconds)


def _limit(rules: AccessRules, leases: RateLeases | None, kind: str, clock: Clock) -> Limit | None:
    if not rules.per_minute:
        return None
    if leases is None:
        return RateLimit(rules.per_minute, rules.burst)
    return LeasedLimit(leases, kind, rules.per_minute, rules.burst, clock=clock)


def _open_tokens(rules: TokenRules) -> AbstractAsyncContextManager[Credentials]:
    """Import what checks signatures. It is read from disk, so this runs in a thread."""
    from recollect.api.auth.tokens import open_tokens

    return open_tokens(rules)


async def _admission(request: Request) -> Admission:
    admission: Admission = request.app.state.admission
    return admission


OpenAdmission = Annotated[Admission, Depends(_admission)]
"""The application's admission, as a dependency of routes."""
