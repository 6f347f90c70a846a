"""Limits the requests of each sender: one token bucket each, in bounded memory."""

import math
import time
from collections.abc import Callable

MOST_BUCKETS = 10_000
"""The least recently used bucket is dropped first, because it is full again soonest."""


class RateLimit:
    """Buckets of `burst` requests, each filling up again with `per_minute` a minute."""

    def __init__(self, per_minute: int, burst: int, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._rate = per_minute / 60
        self._burst = float(burst)
        self._monotonic = monotonic
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, sender: str) -> int:
        """Take one request from the sender's bucket; return 0, or the whole seconds to wait where it is empty."""
        now = self._monotonic()
        held = self._held(sender, now)
        taken = held >= 1
        # Removing and adding it again keeps the dict ordered by last use, so that its first bucket may be dropped.
        self._buckets.pop(sender, None)
        if len(self._buckets) >= MOST_BUCKETS:
            del self._buckets[next(iter(self._buckets))]
        self._buckets[sender] = (held - 1 if taken else held, now)
        return 0 if taken else self._seconds(held)

    def __len__(self) -> int:
        """Return the number of buckets."""
        return len(self._buckets)

    def _held(self, sender: str, now: float) -> float:
        held, at = self._buckets.get(sender, (self._burst, now))
        return min(self._burst, held + (now - at) * self._rate)

    def _seconds(self, held: float) -> int:
        return max(1, math.ceil((1 - held) / self._rate))
