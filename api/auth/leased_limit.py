"""Limits the requests of each sender over all processes together: each process leases a tenth of the limit at once."""

import asyncio
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from recollect.api.auth.rate_limit import MOST_BUCKETS
from recollect.memory.ports.callers.rate_leases import RateLease, RateLeases
from recollect.memory.values.errors import StoreUnavailable
from recollect.memory.values.times import Clock

logger = logging.getLogger(__name__)

PART = 10
"""A lease is the limit divided by this."""
LEASE_SECONDS = 60 / PART
"""How long a lease is used. So of the requests of a minute a tenth of the limit at most were leased before it."""
ASK_SECONDS = 2.0
OPEN_SECONDS = 5.0
"""How long all requests pass before a store that did not answer is asked again."""


@dataclass(slots=True)
class _Leased:
    """The requests that this process has leased for a sender. Of two requests at once one alone leases."""

    left: int = 0
    until: float = 0.0
    refused_until: float = 0.0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class LeasedLimit:
    """Counts as `RateLimit` does, in buckets that all processes share. `kind` begins the buckets' names.

    Where the store does not answer, every request passes: `uncounted` counts those, `is_open` says that it is so now.
    """

    def __init__(
        self,
        leases: RateLeases,
        kind: str,
        per_minute: int,
        burst: int,
        *,
        clock: Clock,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.uncounted = 0
        self._leases = leases
        self._kind = kind
        self._rate = per_minute / 60
        self._burst = float(burst)
        self._share = max(1, min(per_minute, burst) // PART)
        self._clock = clock
        self._monotonic = monotonic
        self._open_until = -math.inf
        self._leased: dict[str, _Leased] = {}

    @property
    def is_open(self) -> bool:
        """Whether requests pass uncounted now."""
        return self._monotonic() < self._open_until

    async def take(self, sender: str) -> int:
        """Take one request; return 0, or the whole seconds to wait where none is left."""
        # Removing and adding it again keeps the dict ordered by last use, so that its first entry may be dropped.
        leased = self._leased.pop(sender, None) or _Leased()
        if len(self._leased) >= MOST_BUCKETS:
            del self._leased[next(iter(self._leased))]
        self._leased[sender] = leased
        async with leased.lock:
            now = self._monotonic()
            if leased.left and now < leased.until:
                leased.left -= 1
                return 0
            if now < leased.refused_until:
                return math.ceil(leased.refused_until - now)
            if self.is_open:
                self.uncounted += 1
                return 0
            return await self._lease(sender, leased)

    async def _lease(self, sender: str, leased: _Leased) -> int:
        asked_at = self._monotonic()
        lease = RateLease(self._share, self._burst, self._rate, given_back=leased.left)
        leased.left = 0
        try:
            async with asyncio.timeout(ASK_SECONDS):
                granted, held = await self._leases.lease(f"{self._kind}/{sender}", lease, now=self._clock())
        except (StoreUnavailable, TimeoutError):
            self._open()
            return 0
        if granted:
            leased.left, leased.until = granted - 1, asked_at + LEASE_SECONDS
            return 0
        seconds = (1 - held) / self._rate
        leased.refused_until = asked_at + seconds
        return max(1, math.ceil(seconds))

    def _open(self) -> None:
        logger.warning("requests pass uncounted: the store does not answer", extra={"action": "rate_limits_open"})
        self._open_until = self._monotonic() + OPEN_SECONDS
        self.uncounted += 1
