"""Keeps what this process has read of the tombstones in a store that processes share, and reads it seldom again.

The store counts the fences that any process raises or lifts: its *epoch*. As long as the epoch stays, no tombstone has
changed, so that one read of it stands in for those of all users' tombstones. It counts for `LEASE_SECONDS` from when it
began, and an erasure deletes nothing before `FOLLOWED_SECONDS` have passed since it raised its fence. So whatever a
writer has written while its lease held is there when the deleting begins; a writer whose lease ran out meanwhile reads
the epoch again, and finds the fence.
"""

import asyncio
import math
import time
from collections.abc import Callable, Collection, Sequence

from recollect.memory.ports.erasures import Erasures, Tombstone

LEASE_SECONDS = 1.0
FOLLOWED_SECONDS = LEASE_SECONDS * 1.1
"""A little longer than the lease, because the clocks of two machines do not run equally fast."""
MOST_KEPT = 10_000
_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def since_boot() -> float:
    """Return the seconds since this machine was started, those included in which it slept."""
    return time.clock_gettime(_CLOCK)


class SeenTombstones:
    """Answers for a store's tombstones by its epoch. `seconds` is a clock that never stands still or goes back."""

    def __init__(self, erasures: Erasures, *, seconds: Callable[[], float] = since_boot) -> None:
        self._erasures = erasures
        self._seconds = seconds
        self._epoch: int = -1
        self._until = -math.inf
        self._reading = asyncio.Lock()
        self._never_erased = set[str]()
        self._found = dict[str, Tombstone | None]()

    async def epoch(self) -> int:
        """Return the store's epoch, read at most `LEASE_SECONDS` ago.

        Raises:
            StoreUnavailable: it has to be read, and the store cannot be reached.
        """
        if self._seconds() >= self._until:
            # One writer reads for all that wait: what it reads is new enough for each of them.
            async with self._reading:
                if self._seconds() >= self._until:
                    await self._read()
        return self._epoch

    async def of(self, user: str, subjects: Sequence[str]) -> dict[str, Tombstone]:
        """Return, by subject, the tombstones of those of `subjects` that have one; all are of the user of this hash.

        Raises:
            StoreUnavailable: something has to be read, and the store cannot be reached.
        """
        if user not in await self.erased([user]):
            return {}
        epoch = self._epoch
        known = {subject: self._found[subject] for subject in subjects if subject in self._found}
        unknown = [subject for subject in subjects if subject not in known]
        read = await self._erasures.tombstones(unknown) if unknown else {}
        found = {subject: known[subject] if subject in known else read.get(subject) for subject in subjects}
        if epoch == self._epoch:
            # An erasure that is under way is read each time: its end is to be seen at once.
            self._keep({subject: each for subject, each in found.items() if each is None or not each.erasing})
        return {subject: each for subject, each in found.items() if each is not None}

    async def erased(self, users: Collection[str]) -> set[str]:
        """Return those hashes of `users` that have a tombstone, or a thread of which has one.

        Raises:
            StoreUnavailable: something has to be read, and the store cannot be reached.
        """
        # Read the epoch first: a tombstone that comes after that changes it, and what is kept here is dropped.
        epoch = await self.epoch()
        unknown = [user for user in users if user not in self._never_erased]
        if not unknown:
            return set()
        found = await self._erasures.erased(unknown)
        if epoch == self._epoch:
            if len(self._never_erased) + len(unknown) > MOST_KEPT:
                self._never_erased.clear()
            self._never_erased.update(user for user in unknown if user not in found)
        return found

    async def _read(self) -> None:
        # The lease runs from before the read: the server may have answered at once.
        begun = self._seconds()
        epoch = await self._erasures.epoch()
        if epoch != self._epoch:
            self._never_erased.clear()
            self._found.clear()
        self._epoch, self._until = epoch, begun + LEASE_SECONDS

    def _keep(self, found: dict[str, Tombstone | None]) -> None:
        if len(self._found) + len(found) > MOST_KEPT:
            self._found.clear()
        self._found |= found
