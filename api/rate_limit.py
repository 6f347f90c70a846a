"""How many requests one sender may make: a token bucket each, in bounded memory."""

import math
import time
from collections.abc import Callable

MOST_BUCKETS = 10_000
"""The bucket that was used least lately goes first: it is full again soonest."""


class RateLimit:
    """Buckets of `burst` requests, each filling up again with `per_minute` a minute."""

    def __init__(self, per_minute: int, burst: int, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._rate = per_minute / 60
        self._burst = float(burst)
        self._monotonic = monotonic
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, sender: str) -> int:
        """Take one request from the sender's bucket: 0, or how many whole seconds to wait where it is empty."""
        now = self._monotonic()
        held = self._held(sender, now)
        taken = held >= 1
        self._buckets.pop(sender, None)
        if len(self._buckets) >= MOST_BUCKETS:
            del self._buckets[next(iter(self._buckets))]
        self._buckets[sender] = (held - 1 if taken else held, now)
        return 0 if taken else self._seconds(held)

    def wait(self, sender: str) -> int:
        """How many whole seconds the sender has to wait, taking nothing."""
        held = self._held(sender, self._monotonic())
        return 0 if held >= 1 else self._seconds(held)

    def __len__(self) -> int:
        """How many buckets there are."""
        return len(self._buckets)

    def _held(self, sender: str, now: float) -> float:
        held, at = self._buckets.get(sender, (self._burst, now))
        return min(self._burst, held + (now - at) * self._rate)

    def _seconds(self, held: float) -> int:
        return max(1, math.ceil((1 - held) / self._rate))
