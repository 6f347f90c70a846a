"""An index that can be rebuilt while it serves: a successor is filled beside it, and takes its place between calls."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol, TypeVar

from memory.errors import IndexUnavailable, Rebuilding, RecollectError
from memory.scope import Scope
from memory.vector_index import Entry, Match, Point, PointStore, Query

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")


class Generations(Protocol):
    """A backend's collections of one name, of which one serves; each rebuild makes the next."""

    @property
    def current(self) -> PointStore:
        """What serves now."""
        ...

    def successor(self) -> AbstractAsyncContextManager[PointStore]:
        """Open the next generation, created where a killed rebuild left none; at exit it is put away, and kept."""
        ...

    async def promote(self) -> None:
        """Make the open successor `current`: durably, and from one call to the next."""
        ...

    async def drop_old(self) -> None:
        """Remove the generations before the current one."""
        ...

    async def other_collections(self) -> list[str]:
        """See `VectorIndex.other_collections`."""
        ...


class RebuildableIndex:
    """The index port over a backend's generations.

    While a successor is being filled each write goes to both, one write at a time, so that both see the same order.
    The old generation is dropped once the last call on it has ended.
    """

    def __init__(self, name: str, generations: Generations) -> None:
        self.name = name
        self._generations = generations
        self._is_rebuilding = False
        self._filling: _Filling | None = None
        self._writing = asyncio.Lock()
        self._age = 0
        self._calls = Counter[int]()
        self._writes = 0
        self._ended = asyncio.Event()

    async def upsert(self, points: Sequence[Point]) -> None:
        """See PointStore."""
        await self._write(lambda store: store.upsert(points))

    async def search(self, query: Query) -> list[Match]:
        """See PointStore."""
        return await self._read(lambda store: store.search(query))

    async def rank(self, queries: Sequence[Query]) -> list[dict[str, float]]:
        """See PointStore."""
        return await self._read(lambda store: store.rank(queries))

    async def fingerprints(self, ids: Sequence[str]) -> dict[str, str | None]:
        """See PointStore."""
        return await self._read(lambda store: store.fingerprints(ids))

    async def entries(self, ids: Sequence[str]) -> list[Entry]:
        """See PointStore."""
        return await self._read(lambda store: store.entries(ids))

    async def ids(self, *, after: str | None = None, limit: int = 500) -> list[str]:
        """See PointStore."""
        return await self._read(lambda store: store.ids(after=after, limit=limit))

    async def count(self, *, user_id: str | None = None) -> int:
        """See PointStore."""
        return await self._read(lambda store: store.count(user_id=user_id))

    async def remove(self, *, user_id: str, ids: Sequence[str]) -> None:
        """See PointStore."""
        await self._write(lambda store: store.remove(user_id=user_id, ids=ids))

    async def delete(self, scope: Scope) -> int:
        """See PointStore."""
        return await self._write(lambda store: store.delete(scope))

    async def ping(self) -> None:
        """See PointStore."""
        await self._read(lambda store: store.ping())

    async def other_collections(self) -> list[str]:
        """See VectorIndex."""
        return await self._generations.other_collections()

    @asynccontextmanager
    async def rebuilding(self) -> AsyncGenerator["_Filling"]:
        """See VectorIndex."""
        if self._is_rebuilding:
            raise Rebuilding
        self._is_rebuilding = True
        try:
            await self._generations.drop_old()
            async with self._generations.successor() as points:
                filling = _Filling(points, self._promote)
                try:
                    async with self._writing:
                        self._filling = filling
                        # A write that began before knows nothing of the successor: its document is read after this.
                        await self._until(lambda: not self._writes)
                    yield filling
                finally:
                    self._filling = None
        finally:
            self._is_rebuilding = False

    async def _promote(self, filling: "_Filling") -> None:
        async with self._writing:
            if filling.missed is not None:
                raise IndexUnavailable("The new collection missed a write; reindex again.") from filling.missed
            await self._generations.promote()
            self._filling = None
            last, self._age = self._age, self._age + 1
        await self._until(lambda: not self._calls[last])
        del self._calls[last]
        try:
            await self._generations.drop_old()
        except RecollectError as error:
            reason = type(error).__name__
            logger.warning("the old collection stays for now", extra={"action": "old_index_stays", "reason": reason})

    async def _read(self, work: Callable[[PointStore], Awaitable[Answer]]) -> Answer:
        age = self._age
        self._calls[age] += 1
        try:
            return await work(self._generations.current)
        finally:
            self._calls[age] -= 1
            self._ended.set()

    async def _write(self, work: Callable[[PointStore], Awaitable[Answer]]) -> Answer:
        if self._filling is None:
            self._writes += 1
            try:
                return await self._read(work)
            finally:
                self._writes -= 1
                self._ended.set()
        async with self._writing:
            answer = await self._read(work)
            await self._follow(work)
            return answer

    async def _follow(self, work: Callable[[PointStore], Awaitable[object]]) -> None:
        if self._filling is not None and self._filling.missed is None:
            await self._filling.follow(work)

    async def _until(self, condition: Callable[[], bool]) -> None:
        """Wait for calls that are under way to end. Only a rebuild waits, and there is one at a time."""
        while not condition():
            self._ended.clear()
            await self._ended.wait()


class _Filling:
    """A successor that is being filled. `missed` is the write that it could not follow: then it cannot be promoted."""

    def __init__(self, points: PointStore, promote: Callable[["_Filling"], Awaitable[None]]) -> None:
        self.points = points
        self.missed: RecollectError | None = None
        self._promote = promote

    async def follow(self, work: Callable[[PointStore], Awaitable[object]]) -> None:
        """Do a write of the serving collection here too; a failure costs the rebuild, not the write."""
        try:
            await work(self.points)
        except RecollectError as error:
            self.missed = error
            logger.warning("the new collection missed a write", extra={"action": "rebuild_missed_a_write"})

    async def promote(self) -> None:
        """See Successor."""
        await self._promote(self)
