"""Rebuilding the index from the documents: in a new collection that takes the old one's place, or one user in place."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict, dataclass
from typing import Any

from memory.documents import Documents
from memory.embedder import Embedder
from memory.errors import IndexUnavailable, Rebuilding, RecollectError, is_outage
from memory.expected import expected, orphans
from memory.indexing import Mending, Progress
from memory.owed_points import OwedPoints
from memory.vector_index import PointStore, VectorIndex

logger = logging.getLogger(__name__)

MOST_PASSES = 5
"""How often what changed during a pass is looked for again. A pass that finds nothing ends it."""


@dataclass(frozen=True, slots=True)
class Reindexed:
    """What a rebuild came to, or (`dry_run`) would come to.

    `points` is how many the documents call for; `embedded` of them were made, `reused` were found in what a killed
    rebuild had left. `removed` are points that no document calls for. A dry run counts every point as to be embedded.
    """

    points: int
    embedded: int
    reused: int
    removed: int
    dry_run: bool = False
    user_id: str | None = None

    def as_json(self) -> dict[str, Any]:
        """As the HTTP contract shows it."""
        return asdict(self)


async def reindex(
    documents: Documents,
    index: VectorIndex,
    embedder: Embedder,
    *,
    user_id: str | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Reindexed:
    """Rebuild the whole index in a new collection, or one user's points where they are.

    Searches go on meanwhile, in the old collection until the new one holds everything. What was done before a kill or
    an outage is taken up by the next rebuild.

    Raises:
        Rebuilding: this process is rebuilding already.
        StoreUnavailable, ModelUnavailable: the old collection goes on serving.
    """
    if dry_run:
        return await _foreseen(documents, index, user_id)
    if user_id is not None:
        await _sync_owed(documents, index, embedder, user_id)
        mended = await Mending(documents, index, embedder, user_id, afresh=True).run(progress)
        return Reindexed(len(mended.ids), mended.made, 0, mended.removed, user_id=user_id)
    async with index.rebuilding() as successor:
        await _sync_owed(documents, index, embedder, None)
        mended = await Mending(documents, successor.points, embedder).run(progress)
        removed = len([entry async for entry in orphans(documents, index, mended.ids)])
        made = mended.made + await _settle(documents, successor.points, embedder)
        await successor.promote()
    # What other processes wrote to the old collection alone while this one was filled.
    made += await _settle(documents, index, embedder)
    logger.info("reindexed", extra={"action": "reindexed", "points": len(mended.ids), "embedded": made})
    return Reindexed(len(mended.ids), made, mended.matched, removed)


async def _foreseen(documents: Documents, index: VectorIndex, user_id: str | None) -> Reindexed:
    ids = set[str]()
    async for entries in expected(documents, user_id=user_id):
        ids.update(entry.id for entry in entries)
    removed = len([entry async for entry in orphans(documents, index, ids, user_id=user_id)])
    return Reindexed(len(ids), len(ids), 0, removed, dry_run=True, user_id=user_id)


async def _settle(documents: Documents, points: PointStore, embedder: Embedder) -> int:
    """Pass over it until nothing is found any more; how many points were made."""
    made = 0
    for _ in range(MOST_PASSES):
        mended = await Mending(documents, points, embedder).run()
        made += mended.made
        if not mended.made and not mended.removed:
            break
    return made


async def _sync_owed(documents: Documents, index: VectorIndex, embedder: Embedder, user_id: str | None) -> None:
    """Let the index follow what it owes: else a new collection would lack the points of facts that changed just now."""
    owed = OwedPoints(documents, index, embedder)
    for user in await owed.users() if user_id is None else [user_id]:
        try:
            await owed.sync(user)
        except (RecollectError, ValueError) as error:
            if is_outage(error):
                raise
            reason = type(error).__name__
            logger.warning("points stay owed", extra={"action": "points_stay_owed", "reason": reason})


class Reindexer:
    """One rebuild at a time in this process, in a task of its own: it goes on when whoever asked for it leaves."""

    def __init__(self, documents: Documents, index: VectorIndex, embedder: Embedder) -> None:
        self._documents = documents
        self._index = index
        self._embedder = embedder
        self._running: RunningReindex | None = None

    def begin(self, *, user_id: str | None = None, dry_run: bool = False) -> "RunningReindex":
        """Begin a rebuild; see `reindex`.

        Raises:
            Rebuilding: one is running already.
        """
        if self._running is not None and self._running.is_running:
            raise Rebuilding

        async def work(progress: Progress) -> Reindexed:
            return await reindex(
                self._documents, self._index, self._embedder, user_id=user_id, dry_run=dry_run, progress=progress
            )

        self._running = RunningReindex(work)
        return self._running

    async def close(self) -> None:
        """Stop what is running; the next rebuild takes it up where it was."""
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
        """Whether it has not ended."""
        return not self._task.done()

    async def progress(self) -> AsyncIterator[tuple[int, int]]:
        """How many points are done, and of how many: whenever that has changed, until it has ended."""
        while self.is_running:
            await self._moved.wait()
            self._moved.clear()
            if self.is_running:
                yield self._at

    async def outcome(self) -> Reindexed:
        """What it came to, or what `reindex` raised.

        Raises:
            IndexUnavailable: it was stopped.
        """
        await asyncio.wait({self._task})
        if self._task.cancelled():
            raise IndexUnavailable("The rebuild was stopped; the next one goes on where it was.")
        return self._task.result()

    async def stop(self) -> None:
        """Cancel it and wait for its end."""
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
