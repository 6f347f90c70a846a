"""Lets an index of this process's own follow what other processes erase in the documents that they share.

They name nobody: a tombstone is a keyed hash. Whom the index knows is hashed too and compared, which takes a scan of
its users where there is a new tombstone, and nothing where there is none. Of those that match, the points go that
nothing in the documents stands behind: what came after the erasure stays.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol

from memory.documents import Documents
from memory.erasures import Tombstone, hash_of, subject_of
from memory.errors import RecollectError
from memory.expected import called_for
from memory.fences import Fences
from memory.scope import Scope
from memory.sweep import Sweep
from memory.times import Clock
from memory.vector_index import VectorIndex

logger = logging.getLogger(__name__)

SWEEP_SECONDS = 20.0
OVERLAP = timedelta(minutes=2)
"""So far back each sweep looks again: clocks differ, and a point may come late from a process that was killed."""
BATCH = 500


class TypedLines(Protocol):
    """Lines that users typed, kept in files: calls block."""

    def erase(self, scope: Scope) -> int:
        """Drop them; how many there were."""
        ...

    def trim(self, user_id: str, *, since: datetime | None) -> None:
        """Drop what was typed before then."""
        ...


@dataclass
class Following:
    """Follows tombstones: all of them at the start, later the new ones, and one at once when its user comes back.

    What was typed at this machine's terminals follows too, where the index knows the user.
    """

    documents: Documents
    index: VectorIndex
    fences: Fences
    lines: TypedLines
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
        """Stop; the next start follows all there are."""
        await self._sweep.close()

    async def sweep(self) -> None:
        """Follow what was erased since the last time.

        Raises:
            StoreUnavailable: the next sweep begins where this one began.
        """
        begun, after = self.clock(), ""
        tombstones = list[Tombstone]()
        while page := await self.documents.erasures.tombstones_since(self._since, after=after, limit=BATCH):
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
        """Follow one tombstone now, before its user is recalled from: for `Fences.follow`.

        An index that is down is no error: nothing is recalled from it either, and the next sweep follows.
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
        """The users and threads of these tombstones of whom the index holds points."""
        secret = await self.fences.secret()
        subjects = {tombstone.subject: tombstone for tombstone in tombstones}
        users = {tombstone.user for tombstone in tombstones}
        scopes = list[Scope]()
        for user_id in await self.index.users():
            if hash_of(secret, user_id) in users:
                scopes += [Scope(user_id), *(Scope(user_id, thread) for thread in await self.index.threads(user_id))]
        hashed = [(scope, subjects.get(subject_of(secret, scope))) for scope in scopes]
        return [(scope, tombstone) for scope, tombstone in hashed if tombstone is not None]

    async def _remove(self, scope: Scope, tombstone: Tombstone) -> int:
        """Remove the points of the scope that no document calls for, and lines; how many points there were."""
        if scope.thread_id is None:
            await asyncio.to_thread(self.lines.trim, scope.user_id, since=tombstone.at)
        else:
            await asyncio.to_thread(self.lines.erase, scope)
        removed, after = 0, None
        async with self._one_by_one:
            while ids := await self.index.ids(after=after, limit=BATCH, scope=scope):
                after = ids[-1]
                entries = await self.index.entries(ids)
                gone = [entry.id for entry in entries if await called_for(self.documents, entry) is None]
                await self.index.remove(user_id=scope.user_id, ids=gone)
                removed += len(gone)
        return removed

    async def _rewrite(self, removed: int) -> None:
        if removed:
            await self.index.rewrite()
            logger.info("followed an erasure", extra={"action": "erasure_followed", "points": removed})
