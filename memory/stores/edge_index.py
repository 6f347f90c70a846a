"""The embedded vector index: Qdrant's engine in this process, one folder per collection and generation."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from memory.errors import IndexUnavailable
from memory.rebuildable_index import RebuildableIndex
from memory.scope import Scope
from memory.stores.edge_collection import EdgeCollection, PointId, open_edge_collection
from memory.stores.edge_others import EdgeOthers, has_bytes
from memory.stores.edge_place import Place
from memory.vector_index import VectorIndex, collection_name

Answer = TypeVar("Answer")


@asynccontextmanager
async def open_edge_index(folder: Path, *, base: str, model: str, dimension: int) -> AsyncGenerator[VectorIndex]:
    """Open the embedder's collection below `folder`, creating what is missing; flushed and closed at exit.

    A damaged collection is moved aside and started empty (logged as a warning).

    Raises:
        IndexUnavailable: another process has it open, or the system refuses the files.
    """
    place = Place(folder, base, collection_name(base, model=model, dimension=dimension))
    number = await _on_disk(place.serving)
    current = await open_edge_collection(place.path(number), dimension=dimension)
    generations = EdgeGenerations(place, current, number=number, dimension=dimension)
    try:
        await generations.drop_old()
        yield RebuildableIndex("qdrant-edge", generations)
    finally:
        await generations.close()


class EdgeGenerations:
    """The generations of one collection; the one that serves, and at times its successor, are open."""

    def __init__(self, place: Place, current: EdgeCollection, *, number: int, dimension: int) -> None:
        self.current = current
        self._place = place
        self._number = number
        self._dimension = dimension
        self._successor: EdgeCollection | None = None
        self._old: EdgeCollection | None = None
        self._others = EdgeOthers(place)

    @asynccontextmanager
    async def successor(self) -> AsyncGenerator[EdgeCollection]:
        """See Generations."""
        path = self._place.path(self._number + 1)
        self._successor = opened = await open_edge_collection(path, dimension=self._dimension)
        try:
            yield opened
        finally:
            if self._successor is opened:
                self._successor = None
            if self.current is not opened:
                await opened.close()

    @asynccontextmanager
    async def copying(self) -> AsyncGenerator["EdgeCopying"]:
        """See Generations."""
        if self._successor is not None:
            await self._successor.close()
        await _on_disk(lambda: self._place.remove_after(self._number))
        async with self.successor() as opened:
            yield EdgeCopying(self.current, opened)

    async def promote(self) -> None:
        """See Generations."""
        successor = self._successor
        assert successor is not None, "only an open successor is promoted"
        await successor.flush()  # or a power cut would leave less than the old one had
        serving = asyncio.create_task(asyncio.to_thread(self._place.serve, self._number + 1), name="index-promote")
        try:
            await asyncio.shield(serving)
        except OSError as error:
            raise IndexUnavailable from error
        except asyncio.CancelledError:
            await asyncio.wait({serving})  # the thread writes the file all the same
            if serving.exception() is None:
                self._serve(successor)
            raise
        self._serve(successor)

    def _serve(self, successor: EdgeCollection) -> None:
        self._old, self.current = self.current, successor
        self._number += 1

    async def drop_old(self) -> None:
        """See Generations."""
        if self._old is not None:
            await self._old.close()
            self._old = None
        await _on_disk(lambda: self._place.remove_before(self._number))

    async def other_collections(self) -> list[str]:
        """See Generations."""
        return await _on_disk(self._place.others)

    async def erase_elsewhere(self, scope: Scope) -> int:
        """See Generations. What was moved aside as damaged goes with a whole user: nobody can take a part out of it."""
        if self._successor is None:
            await _on_disk(lambda: self._place.remove_after(self._number))
        return await _on_disk(lambda: self._others.erase(scope))

    async def remaining(self, scope: Scope) -> int:
        """See Generations."""
        elsewhere = await _on_disk(lambda: self._others.remaining(scope))
        successor = await self._successor.count_of(scope) if self._successor is not None else 0
        return await self.current.count_of(scope) + successor + elsewhere

    async def has_traces(self, user_id: str) -> bool:
        """See Generations: the engine's log and its payload files keep what was deleted, the ids as they are."""
        return await _on_disk(lambda: has_bytes(self._place.path(self._number), user_id.encode()))

    async def close(self) -> None:
        """Close what is open."""
        for opened in (self._old, self.current):
            if opened is not None:
                await opened.close()


class EdgeCopying:
    """Copies a collection's points, as they are, into an empty one."""

    def __init__(self, current: EdgeCollection, points: EdgeCollection) -> None:
        self.points = points
        self._current = current
        self._after: PointId | None = None

    async def copy_some(self) -> bool:
        """See Copying."""
        self._after = await self._current.copy_page(self.points, after=self._after)
        return self._after is not None


async def _on_disk(work: Callable[[], Answer]) -> Answer:
    """Do what blocks in a thread; what the system refuses is IndexUnavailable."""
    try:
        return await asyncio.to_thread(work)
    except OSError as error:
        raise IndexUnavailable from error
