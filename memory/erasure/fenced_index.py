"""The fenced index stores no point for something that was erased while an embedder made the point.

A point is made from facts and messages that were read a while ago. Points of users who were ever erased (or lost a
thread to an erasure) are therefore compared with the store just before they are written. Points of other users cost
nothing more, or a few small reads where processes share the store.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from recollect.memory.erasure.fences import Fences
from recollect.memory.index.expected import called_for
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import Entry, Match, Point, PointStore, Query, Successor, VectorIndex
from recollect.memory.values.scope import Scope


@dataclass(frozen=True, slots=True)
class FencedPoints:
    """Writes the points of one collection, without those of erased users that the store no longer calls for."""

    points: PointStore
    store: Store
    fences: Fences

    async def upsert(self, points: Sequence[Point]) -> None:
        """Store `points` as PointStore says, without those of erased users that the store no longer calls for."""
        # In this process an erasure of anybody waits for this block, and deletes what it wrote.
        with self.fences.inside(None):
            # The epoch is read first: an erasure that another process begins after that shows below, whatever came
            # of the next reads.
            before = await self.fences.epoch()
            allowed = await self._allowed(points)
            if allowed:
                await self.points.upsert(allowed)
            # Another process may have begun an erasure during the write, and deleted before the points arrived.
            if await self.fences.epoch() != before:
                await self._take_back(allowed)

    async def search(self, query: Query) -> list[Match]:
        """See PointStore."""
        return await self.points.search(query)

    async def rank(self, queries: Sequence[Query]) -> list[dict[str, float]]:
        """See PointStore."""
        return await self.points.rank(queries)

    async def fingerprints(self, ids: Sequence[str]) -> dict[str, str | None]:
        """See PointStore."""
        return await self.points.fingerprints(ids)

    async def entries(self, ids: Sequence[str]) -> list[Entry]:
        """See PointStore."""
        return await self.points.entries(ids)

    async def ids(self, *, after: str | None = None, limit: int = 500, scope: Scope | None = None) -> list[str]:
        """See PointStore."""
        return await self.points.ids(after=after, limit=limit, scope=scope)

    async def users(self) -> list[str]:
        """See PointStore."""
        return await self.points.users()

    async def threads(self, user_id: str) -> list[str]:
        """See PointStore."""
        return await self.points.threads(user_id)

    async def count(self, *, user_id: str | None = None, thread_id: str | None = None) -> int:
        """See PointStore."""
        return await self.points.count(user_id=user_id, thread_id=thread_id)

    async def remove(self, *, user_id: str, ids: Sequence[str]) -> None:
        """See PointStore."""
        await self.points.remove(user_id=user_id, ids=ids)

    async def delete(self, scope: Scope) -> int:
        """See PointStore."""
        return await self.points.delete(scope)

    async def ping(self) -> None:
        """See PointStore."""
        await self.points.ping()

    async def _allowed(self, points: Sequence[Point]) -> list[Point]:
        """Return the points of users who were never erased, and those of others that the store calls for now."""
        erased = await self.fences.erased({point.entry.user_id for point in points})
        return [point for point in points if point.entry.user_id not in erased or await self._is_called_for(point)]

    async def _is_called_for(self, point: Point) -> bool:
        """Tell whether the store calls for the point's content now, or is still writing it ("pending")."""
        said = await called_for(self.store, point.entry)
        return said == "pending" or (said is not None and said.content == point.entry.content)

    async def _take_back(self, points: Sequence[Point]) -> None:
        """Remove those of the `points` just written that the store no longer calls for: somebody was erased."""
        allowed = {point.entry.id for point in await self._allowed(points)}
        for entry in (point.entry for point in points if point.entry.id not in allowed):
            await self.points.remove(user_id=entry.user_id, ids=[entry.id])


@dataclass(frozen=True, slots=True)
class _FencedSuccessor:
    """Writes a rebuild's points behind the fences too: an erasure may begin while the next collection is filled."""

    points: FencedPoints
    successor: Successor

    async def promote(self) -> None:
        """See Successor."""
        await self.successor.promote()


@dataclass(frozen=True, slots=True)
class FencedIndex(FencedPoints):
    """Passes every call on to the vector index, and writes its points behind the fences."""

    points: VectorIndex

    @property
    def name(self) -> str:
        """Return the name of the index itself."""
        return self.points.name

    @asynccontextmanager
    async def rebuilding(self) -> AsyncGenerator[Successor]:
        """See VectorIndex."""
        async with self.points.rebuilding() as successor:
            yield _FencedSuccessor(FencedPoints(successor.points, self.store, self.fences), successor)

    async def other_collections(self) -> list[str]:
        """See VectorIndex."""
        return await self.points.other_collections()

    async def erase(self, scope: Scope) -> int:
        """See VectorIndex."""
        return await self.points.erase(scope)

    async def remaining(self, scope: Scope) -> int:
        """See VectorIndex."""
        return await self.points.remaining(scope)

    async def rewrite(self) -> None:
        """See VectorIndex."""
        await self.points.rewrite()

    async def vacuum(self, seconds: float) -> bool:
        """See VectorIndex."""
        return await self.points.vacuum(seconds)
