"""Opens the embedded vector index: Qdrant's engine in this process, one folder per collection and generation."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from typing_extensions import override

from recollect.memory.background.short_calls import SHORT_CALLS
from recollect.memory.ports.vector_index import VectorIndex, collection_name
from recollect.memory.stores.edge.collection import EdgeCollection, PointId, open_edge_collection
from recollect.memory.stores.edge.open_collections import OpenCollections
from recollect.memory.stores.edge.others import EdgeOthers, has_bytes
from recollect.memory.stores.edge.place import EdgePlace
from recollect.memory.stores.edge.running import Running
from recollect.memory.stores.rebuildable_index import Copying, Generations, RebuildableIndex
from recollect.memory.values.errors import IndexUnavailable
from recollect.memory.values.filtering.keys import NO_KEYS, FilterKeys
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope

Answer = TypeVar("Answer")


@asynccontextmanager
async def open_edge_index(
    folder: Path,
    *,
    base: str,
    model: str,
    dimension: int,
    beside: OpenCollections | None = None,
    keys: FilterKeys = NO_KEYS,
) -> AsyncGenerator[VectorIndex]:
    """Open the embedder's collection below `folder`, creating what is missing; flushed and closed at exit.

    `beside` is shared by all indexes that this process opens in `folder`. Points get terms of the `keys`.

    A damaged collection is moved aside and an empty one takes its place (logged as a warning).

    Raises:
        IndexUnavailable: another process has it open, or the system refuses the files.
    """
    place = EdgePlace(folder, base, collection_name(base, model=model, dimension=dimension))
    others = beside or OpenCollections()
    async with others.opening:
        number = await _on_disk(others.running, place.serving)
        layout = EdgeLayout(dimension, keys, others.running)
        current = await layout.open(place.path(number))
        others.names.add(place.name)
    generations = EdgeGenerations(place, current, others, number=number, layout=layout)
    try:
        await generations.drop_old()
        yield RebuildableIndex("qdrant-edge", generations)
    finally:
        await generations.close()
        others.names.discard(place.name)


@frozen
class EdgeLayout:
    """Holds what all generations of a collection have in common.

    The vectors' length, the keys of the terms, and what runs in threads of all collections of the process.
    """

    dimension: int
    keys: FilterKeys
    running: Running

    async def open(self, path: Path) -> EdgeCollection:
        """Open the generation in the folder `path`; see `open_edge_collection`."""
        return await open_edge_collection(path, dimension=self.dimension, running=self.running, keys=self.keys)


class EdgeGenerations(Generations):
    """Holds the generations of one collection; the current one is open, and its successor during a rebuild."""

    def __init__(
        self, place: EdgePlace, current: EdgeCollection, beside: OpenCollections, *, number: int, layout: "EdgeLayout"
    ) -> None:
        self._current = current
        self._place = place
        self._number = number
        self._layout = layout
        self._successor: EdgeCollection | None = None
        self._old: EdgeCollection | None = None
        self._others = EdgeOthers(place, beside.names)
        self._rewritten_at: float | None = None
        # A collection can be opened once at a time.
        self._opening_others = beside.opening

    @property
    @override
    def current(self) -> EdgeCollection:
        return self._current

    @override
    @asynccontextmanager
    async def successor(self) -> AsyncGenerator[EdgeCollection]:
        path = self._place.path(self._number + 1)
        self._successor = opened = await self._layout.open(path)
        try:
            yield opened
        finally:
            if self._successor is opened:
                self._successor = None
            if self._current is not opened:
                await opened.close()

    @override
    @asynccontextmanager
    async def copying(self) -> AsyncGenerator[Copying]:
        self._rewritten_at = time.time()
        if self._successor is not None:
            await self._successor.close()
        await self._on_disk(lambda: self._place.remove_after(self._number))
        async with self.successor() as opened:
            yield Copying(opened, _Pages(self._current, opened).copy_some)

    @override
    async def promote(self) -> None:
        successor = self._successor
        assert successor is not None, "only an open successor is promoted"
        await successor.flush()  # else a power cut could leave fewer points than the old one had
        thread = asyncio.to_thread(self._place.serve, self._number + 1)
        serving = asyncio.create_task(self._layout.running.wait_for(thread), name="index-promote")
        try:
            await asyncio.shield(serving)
        except OSError as error:
            raise IndexUnavailable from error
        except asyncio.CancelledError:
            await asyncio.wait({serving})  # The thread cannot be stopped: follow what it wrote.
            if serving.exception() is None:
                self._serve(successor)
            raise
        self._serve(successor)

    def _serve(self, successor: EdgeCollection) -> None:
        self._old, self._current = self._current, successor
        self._number += 1

    @override
    async def drop_old(self) -> None:
        if self._old is not None:
            await self._old.close()
            self._old = None
        await self._on_disk(lambda: self._place.remove_before(self._number))

    @override
    async def other_collections(self) -> list[str]:
        return await self._on_disk(self._place.others)

    @override
    async def drop_other(self, name: str) -> None:
        async with self._opening_others:
            await self._on_disk(lambda: self._others.drop(name))

    @override
    async def erase_elsewhere(self, scope: Scope) -> int:
        # Erasing a whole user removes all damaged folders: no part of them can be deleted.
        if self._successor is None:
            await self._on_disk(lambda: self._place.remove_after(self._number))
        async with self._opening_others:
            return await self._on_disk(lambda: self._others.erase(scope))

    @override
    async def remove_elsewhere(self, *, user_id: str, ids: Sequence[str]) -> None:
        if ids and (not SHORT_CALLS.on_loop or self._have_others()):
            async with self._opening_others:
                await self._on_disk(lambda: self._others.remove(user_id, ids))

    @override
    async def vacuum_elsewhere(self, seconds: float) -> None:
        async with self._opening_others:
            await self._on_disk(lambda: self._others.vacuum(seconds))

    @override
    async def remaining(self, scope: Scope) -> int:
        async with self._opening_others:
            elsewhere = await self._on_disk(lambda: self._others.remaining(scope))
        successor = await self._successor.count_of(scope) if self._successor is not None else 0
        return await self._current.count_of(scope) + successor + elsewhere

    @override
    async def has_traces(self, user_id: str) -> bool:
        # The engine's log keeps deleted ids as text.
        return await self._on_disk(lambda: has_bytes(self._place.path(self._number), user_id.encode()))

    @override
    async def is_rewrite_due(self, seconds: float) -> bool:
        return await self._on_disk(
            lambda: self._place.is_rewrite_due(self._number, seconds=seconds, last=self._rewritten_at)
        )

    def _have_others(self) -> bool:
        try:
            return self._others.exist()
        except OSError as error:
            raise IndexUnavailable from error

    async def _on_disk(self, work: Callable[[], Answer]) -> Answer:
        return await _on_disk(self._layout.running, work)

    async def close(self) -> None:
        """Close the open generations."""
        for opened in (self._old, self._current):
            if opened is not None:
                await opened.close()


class _Pages:
    """Copies a collection's points unchanged into an empty one, page by page."""

    def __init__(self, current: EdgeCollection, points: EdgeCollection) -> None:
        self._points = points
        self._current = current
        self._after: PointId | None = None

    async def copy_some(self) -> bool:
        """Copy the next page; return False after the last one."""
        self._after = await self._current.copy_page(self._points, after=self._after)
        return self._after is not None


async def _on_disk(running: Running, work: Callable[[], Answer]) -> Answer:
    """Run blocking `work` in a thread; raise the system's refusals as IndexUnavailable."""
    try:
        return await running.wait_for(asyncio.to_thread(work))
    except OSError as error:
        raise IndexUnavailable from error
