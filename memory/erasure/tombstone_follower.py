"""Removes from this process's own index what other processes erased in the store that they share.

A tombstone names nobody: it is a keyed hash. The follower hashes the users of the index and compares, which costs a
scan of these users for each batch of new tombstones, and nothing without any. Of a matching user or thread it removes
the points that the store does not call for; what was written after the erasure stays.

An epoch rises when an erasure begins and again when it ends, so that each erasure is followed at least twice: at its
beginning the store may still call for points that have to go.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from recollect.memory.background.sweep import Sweep
from recollect.memory.erasure.data_holders import TypedLinesFiles
from recollect.memory.erasure.fences import Fences
from recollect.memory.index.expected import called_for
from recollect.memory.ports.erasures import Tombstone, keyed_hash, subject_of
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import VectorIndex
from recollect.memory.values.errors import RecollectError
from recollect.memory.values.scope import Scope
from recollect.memory.values.times import Clock

logger = logging.getLogger(__name__)

SWEEP_SECONDS = 20.0
OVERLAP = timedelta(minutes=2)
"""Overlap of two sweeps: clocks differ, and a point may come late from a process that was killed."""
BATCH = 500


@dataclass
class TombstoneFollower:
    """Follows tombstones: all of them at the start, new ones in sweeps, and one at once when its user comes back.

    It also removes what was typed at this machine's terminals, where the index knows the user. `_followed` holds the
    epoch up to which each subject was followed.
    """

    store: Store
    index: VectorIndex
    fences: Fences
    lines: TypedLinesFiles
    clock: Clock
    sweep_seconds: float = SWEEP_SECONDS
    _since: datetime = field(init=False, default=datetime.fromtimestamp(0, UTC))
    _followed: dict[str, int] = field(init=False, default_factory=dict[str, int])
    _one_by_one: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)
    _sweep: Sweep = field(init=False)

    def __post_init__(self) -> None:
        self._sweep = Sweep("tombstones-sweep", self.sweep, seconds=self.sweep_seconds)

    def start(self) -> None:
        """Begin to follow: at once, and again every `sweep_seconds`."""
        self._sweep.start()

    async def close(self) -> None:
        """Stop; the next start follows all tombstones."""
        await self._sweep.close()

    async def sweep(self) -> None:
        """Follow the tombstones since the last sweep.

        Raises:
            StoreUnavailable: the next sweep begins where this one began.
        """
        # The next sweep looks back from before this reading: a tombstone that rises meanwhile is not missed.
        begun, after = self.clock(), ""
        tombstones = list[Tombstone]()
        while page := await self.store.erasures.tombstones_since(self._since, after=after, limit=BATCH):
            tombstones += page
            after = page[-1].subject
        if tombstones:
            removed = 0
            for scope, tombstone in await self._held(tombstones):
                removed += await self._remove(scope, tombstone)
            await self._rewrite(removed)
            self._followed |= {tombstone.subject: tombstone.epoch for tombstone in tombstones}
        self._since = begun - OVERLAP

    async def follow(self, scope: Scope, tombstone: Tombstone) -> None:
        """Follow one tombstone now, before anything of its user is recalled: for `Fences.follow`.

        An index that is down raises no error: nothing is recalled from it either, and the next sweep follows.
        """
        if self._followed.get(tombstone.subject, 0) >= tombstone.epoch:
            return
        try:
            removed = await self._remove(scope, tombstone)
            self._followed[tombstone.subject] = tombstone.epoch
            await self._rewrite(removed)
        except (RecollectError, OSError) as error:
            logger.warning("an erasure is followed later", extra={"action": "following", "error": type(error).__name__})

    async def _held(self, tombstones: Sequence[Tombstone]) -> list[tuple[Scope, Tombstone]]:
        """Return the users and threads of `tombstones` for whom the index holds points, with their tombstones."""
        secret = await self.fences.secret()
        subjects = {tombstone.subject: tombstone for tombstone in tombstones}
        users = {tombstone.user for tombstone in tombstones}
        scopes = list[Scope]()
        for user_id in await self.index.users():
            if keyed_hash(secret, user_id) in users:
                scopes += [Scope(user_id), *(Scope(user_id, thread) for thread in await self.index.threads(user_id))]
        hashed = [(scope, subjects.get(subject_of(secret, scope))) for scope in scopes]
        return [(scope, tombstone) for scope, tombstone in hashed if tombstone is not None]

    async def _remove(self, scope: Scope, tombstone: Tombstone) -> int:
        """Remove the scope's typed lines, and its points that the store does not call for; return how many points."""
        if scope.thread_id is None:
            await asyncio.to_thread(self.lines.trim, scope.user_id, since=tombstone.at)
        else:
            await asyncio.to_thread(self.lines.erase, scope)
        removed, after = 0, None
        # One scan at a time: the sweep and returning users would otherwise read the same points side by side.
        async with self._one_by_one:
            while ids := await self.index.ids(after=after, limit=BATCH, scope=scope):
                after = ids[-1]
                entries = await self.index.entries(ids)
                gone = [entry.id for entry in entries if await called_for(self.store, entry) is None]
                await self.index.remove(user_id=scope.user_id, ids=gone)
                removed += len(gone)
        return removed

    async def _rewrite(self, removed: int) -> None:
        if removed:
            await self.index.rewrite()
            logger.info("followed an erasure", extra={"action": "erasure_followed", "points": removed})
