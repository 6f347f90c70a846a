"""The fenced index stores no point for something that was erased while an embedder made the point.

A point is made from facts and messages that were read a while ago. Points of users who were ever erased (or lost a
thread to an erasure) are therefore compared with the store just before they are written. Points of other users cost
nothing more, or a few small reads where processes share the store.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from typing_extensions import override

from recollect.memory.erasure.fences import Fences
from recollect.memory.index.expected import called_for
from recollect.memory.ports.forwarding_index import Answer, ForwardingIndex, ForwardingPoints
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import Entry, Point, PointStore, Successor, VectorIndex
from recollect.memory.values.frozen import frozen


class FencedPoints(ForwardingPoints):
    """Writes the points of one collection, without those of erased users that the store no longer calls for."""

    def __init__(self, points: PointStore, store: Store, fences: Fences) -> None:
        self._points = points
        self._store = store
        self._fences = fences

    @override
    async def _read(self, work: Callable[[PointStore], Awaitable[Answer]]) -> Answer:
        return await work(self._points)

    @override
    async def upsert(self, points: Sequence[Point]) -> None:
        """Store `points` as PointStore says, without those of erased users that the store no longer calls for."""
        # In this process an erasure of anybody waits for this block, and deletes what it wrote.
        with self._fences.inside(None):
            # The epoch is read first: an erasure that another process begins after that shows below, whatever came
            # of the next reads.
            before = await self._fences.epoch()
            allowed = await self._allowed(points)
            if allowed:
                await self._points.upsert(allowed)
            # Another process may have begun an erasure during the write, and deleted before the points arrived.
            if await self._fences.epoch() != before:
                await self._take_back(allowed)

    @override
    async def retouch(self, entries: Sequence[Entry]) -> int:
        with self._fences.inside(None):  # an erasure waits: no term reaches the files behind it
            return await self._points.retouch(entries)

    async def _allowed(self, points: Sequence[Point]) -> list[Point]:
        """Return the points of users who were never erased, and those of others that the store calls for now."""
        erased = await self._fences.erased({point.entry.user_id for point in points})
        return [point for point in points if point.entry.user_id not in erased or await self._is_called_for(point)]

    async def _is_called_for(self, point: Point) -> bool:
        """Tell whether the store calls for the point's content now, or is still writing it ("pending")."""
        said = await called_for(self._store, point.entry)
        return said == "pending" or (said is not None and said.content == point.entry.content)

    async def _take_back(self, points: Sequence[Point]) -> None:
        """Remove those of the `points` just written that the store no longer calls for: somebody was erased."""
        allowed = {point.entry.id for point in await self._allowed(points)}
        for entry in (point.entry for point in points if point.entry.id not in allowed):
            await self._points.remove(user_id=entry.user_id, ids=[entry.id])


@frozen
class _FencedSuccessor(Successor):
    """Writes a rebuild's points behind the fences too: an erasure may begin while the next collection is filled."""

    points: PointStore
    successor: Successor

    @override
    async def promote(self) -> None:
        await self.successor.promote()


class FencedIndex(FencedPoints, ForwardingIndex):
    """Forwards every call to the vector index, and writes its points behind the fences."""

    def __init__(self, index: VectorIndex, store: Store, fences: Fences) -> None:
        super().__init__(index, store, fences)
        self.name = index.name
        self._index = index

    @override
    async def _opened(self) -> VectorIndex:
        return self._index

    @override
    @asynccontextmanager
    async def rebuilding(self) -> AsyncGenerator[Successor]:
        async with self._index.rebuilding() as successor:
            yield _FencedSuccessor(FencedPoints(successor.points, self._store, self._fences), successor)
