"""The port of rate leases: the requests that callers may still send, where several processes count them together."""

from abc import abstractmethod
from datetime import datetime
from typing import Protocol

from recollect.memory.values.frozen import frozen


@frozen
class RateLease:
    """The requests that a process asks for at once: `wanted`, out of a bucket of `burst` that fills by `per_second`.

    `given_back` were leased before and not used.
    """

    wanted: int
    burst: float
    per_second: float
    given_back: int = 0


class RateLeases(Protocol):
    """One token bucket for each caller, which all processes share."""

    @abstractmethod
    async def lease(self, name: str, lease: RateLease, *, now: datetime) -> tuple[int, float]:
        """Take up to the wanted requests out of the bucket `name`; return how many, and what it holds after that.

        A bucket that nobody has asked for yet is full.

        Raises:
            StoreUnavailable: the store cannot be reached, or too many processes ask for the bucket at once.
        """
        ...
