"""The vector index behind the fences: no point comes back for something that was erased while it was being made.

A point is made from documents that were read a while ago: an embedder took its time in between. Of users who were
erased lately each point is therefore checked against the documents as they are now, when it is stored. Others' points
cost nothing more, on documents that other processes share two small reads.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from memory.documents import Documents
from memory.expected import called_for
from memory.fences import Fences
from memory.scope import Scope
from memory.vector_index import Entry, Match, Point, PointStore, Query, Successor, VectorIndex


@dataclass(frozen=True, slots=True)
class FencedPoints:
    """Points of one collection, written behind the fences."""

    points: PointStore
    documents: Documents
    fences: Fences

    async def upsert(self, points: Sequence[Point]) -> None:
        """See PointStore. Points that nothing stands behind any more are left out."""
        with self.fences.inside(None):
            standing = await self._standing(points)
            before = await self.fences.raises()
            if standing:
                await self.points.upsert(standing)
            if await self.fences.raises() != before:
                await self._take_back(standing)

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

    async def _standing(self, points: Sequence[Point]) -> list[Point]:
        """The points of users who were never erased, and those of others that the documents call for now."""
        erased = await self.fences.erased({point.entry.user_id for point in points})
        return [point for point in points if point.entry.user_id not in erased or await self._is_called_for(point)]

    async def _is_called_for(self, point: Point) -> bool:
        said = await called_for(self.documents, point.entry)
        return said == "pending" or (said is not None and said.content == point.entry.content)

    async def _take_back(self, points: Sequence[Point]) -> None:
        """Somebody was erased while these were written: remove those that nothing stands behind any more."""
        standing = {point.entry.id for point in await self._standing(points)}
        for entry in (point.entry for point in points if point.entry.id not in standing):
            await self.points.remove(user_id=entry.user_id, ids=[entry.id])


@dataclass(frozen=True, slots=True)
class _FencedSuccessor:
    points: FencedPoints
    successor: Successor

    async def promote(self) -> None:
        """See Successor."""
        await self.successor.promote()


@dataclass(frozen=True, slots=True)
class FencedIndex(FencedPoints):
    """The index port behind the fences."""

    points: VectorIndex

    @property
    def name(self) -> str:
        """The index's own."""
        return self.points.name

    @asynccontextmanager
    async def rebuilding(self) -> AsyncGenerator[Successor]:
        """See VectorIndex."""
        async with self.points.rebuilding() as successor:
            yield _FencedSuccessor(FencedPoints(successor.points, self.documents, self.fences), successor)

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
