"""Rebuilds the index from the store: whole, in a new collection that replaces the old one, or one user's in place."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict
from typing import Any

from recollect.memory.index.expected import expected, orphans
from recollect.memory.index.index_outbox import IndexOutbox
from recollect.memory.index.indexing import IndexRepair, Progress
from recollect.memory.ports.embedder import Embedder
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import PointStore, VectorIndex
from recollect.memory.values.errors import IndexUnavailable, Rebuilding, RecollectError, is_outage
from recollect.memory.values.frozen import frozen

logger = logging.getLogger(__name__)

MOST_PASSES = 5
"""How many passes look for what changed during the pass before. A pass that finds nothing ends them."""


@frozen
class Reindexed:
    """The counts of a rebuild, or with `dry_run` of one that would be made.

    `points` is how many the store calls for; `embedded` of them were made, `reused` were left by a killed rebuild.
    `removed` counts orphans. A dry run counts every point as embedded.
    """

    points: int
    embedded: int
    reused: int
    removed: int
    dry_run: bool = False
    user_id: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the JSON of the HTTP contract."""
        return asdict(self)


async def reindex(
    store: Store,
    index: VectorIndex,
    embedder: Embedder,
    *,
    user_id: str | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Reindexed:
    """Rebuild the whole index in a new collection, or one user's points where they are.

    Meanwhile the old collection serves searches, until the new one holds everything. After a kill or an outage the next
    rebuild takes over the points that were made.

    Raises:
        Rebuilding: this process is rebuilding already.
        StoreUnavailable, ModelUnavailable: the rebuild stopped, and the old collection still serves.
    """
    if dry_run:
        return await _foreseen(store, index, user_id)
    if user_id is not None:
        await _sync_owed(store, index, embedder, user_id)
        repair = await IndexRepair(store, index, embedder, user_id, afresh=True).run(progress)
        return Reindexed(len(repair.ids), repair.made, 0, repair.removed, user_id=user_id)
    # Within this block every write of this process goes to both collections, in the same order. The outbox is emptied
    # first, and passes are repeated until one finds nothing, so that the new collection lacks nothing at the switch.
    async with index.rebuilding() as successor:
        await _sync_owed(store, index, embedder, None)
        repair = await IndexRepair(store, successor.points, embedder).run(progress)
        removed = len([entry async for entry in orphans(store, index, repair.ids)])
        made = repair.made + await settle(store, successor.points, embedder)
        await successor.promote()
    # Other processes may have written to the old collection alone before they saw the switch.
    made += await settle(store, index, embedder)
    logger.info("reindexed", extra={"action": "reindexed", "points": len(repair.ids), "embedded": made})
    return Reindexed(len(repair.ids), made, repair.matched, removed)


async def _foreseen(store: Store, index: VectorIndex, user_id: str | None) -> Reindexed:
    ids = set[str]()
    async for entries in expected(store, user_id=user_id):
        ids.update(entry.id for entry in entries)
    removed = len([entry async for entry in orphans(store, index, ids, user_id=user_id)])
    return Reindexed(len(ids), len(ids), 0, removed, dry_run=True, user_id=user_id)


async def settle(store: Store, points: PointStore, embedder: Embedder) -> int:
    """Repeat passes until one finds nothing, at most `MOST_PASSES`; return how many points were made."""
    made = 0
    for _ in range(MOST_PASSES):
        repair = await IndexRepair(store, points, embedder).run()
        made += repair.made
        if not repair.made and not repair.removed:
            break
    return made


async def _sync_owed(store: Store, index: VectorIndex, embedder: Embedder, user_id: str | None) -> None:
    """Empty the outbox, because a new collection would lack the points of facts that changed just before."""
    owed = IndexOutbox(store, index, embedder)
    for user in await owed.users() if user_id is None else [user_id]:
        try:
            await owed.sync(user)
        except (RecollectError, ValueError) as error:
            if is_outage(error):
                raise
            reason = type(error).__name__
            logger.warning("points stay owed", extra={"action": "points_stay_owed", "reason": reason})


class Reindexer:
    """Runs one rebuild at a time in this process, in a task of its own that outlives the request for it."""

    def __init__(self, store: Store, index: VectorIndex, embedder: Embedder) -> None:
        self._store = store
        self._index = index
        self._embedder = embedder
        self._running: RunningReindex | None = None

    def begin(self, *, user_id: str | None = None, dry_run: bool = False) -> "RunningReindex":
        """Start a rebuild; see `reindex`.

        Raises:
            Rebuilding: one is running already.
        """
        if self._running is not None and self._running.is_running:
            raise Rebuilding

        async def work(progress: Progress) -> Reindexed:
            return await reindex(
                self._store, self._index, self._embedder, user_id=user_id, dry_run=dry_run, progress=progress
            )

        self._running = RunningReindex(work)
        return self._running

    async def close(self) -> None:
        """Stop a running rebuild; the next one goes on where it was."""
        if self._running is not None:
            await self._running.stop()


class RunningReindex:
    """A rebuild under way."""

    def __init__(self, work: Callable[[Progress], Awaitable[Reindexed]]) -> None:
        self._at = (0, 0)
        self._moved = asyncio.Event()
        self._task = asyncio.create_task(self._run(work), name="reindex")
        self._task.add_done_callback(self._ended)

    @property
    def is_running(self) -> bool:
        """Tell whether the rebuild has not ended."""
        return not self._task.done()

    async def progress(self) -> AsyncIterator[tuple[int, int]]:
        """Yield the number of points that are done, and of all, at each change until the rebuild has ended."""
        while self.is_running:
            await self._moved.wait()
            self._moved.clear()
            if self.is_running:
                yield self._at

    async def outcome(self) -> Reindexed:
        """Wait for the end and return the result, or raise what `reindex` raised.

        Raises:
            IndexUnavailable: the rebuild was stopped.
        """
        await asyncio.wait({self._task})
        if self._task.cancelled():
            raise IndexUnavailable("The rebuild was stopped; the next one goes on where it was.")
        return self._task.result()

    async def stop(self) -> None:
        """Cancel the rebuild and wait for its end."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self, work: Callable[[Progress], Awaitable[Reindexed]]) -> Reindexed:
        return await work(self._report)

    def _report(self, done: int, total: int) -> None:
        self._at = (done, total)
        self._moved.set()

    def _ended(self, task: "asyncio.Task[Reindexed]") -> None:
        self._moved.set()
        error = None if task.cancelled() else task.exception()
        if error is not None:
            known = isinstance(error, RecollectError)
            logger.warning(
                "reindexing ended early",
                extra={"action": "reindex_failed", "reason": type(error).__name__},
                exc_info=None if known else error,
            )
