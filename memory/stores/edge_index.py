"""The embedded vector index: Qdrant's engine in this process, one folder per collection and generation."""

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from memory.errors import IndexUnavailable
from memory.rebuildable_index import RebuildableIndex
from memory.stores.edge_collection import EdgeCollection, open_edge_collection
from memory.stores.points import generation_name, generation_of, siblings
from memory.vector_index import VectorIndex, collection_name


@asynccontextmanager
async def open_edge_index(folder: Path, *, base: str, model: str, dimension: int) -> AsyncGenerator[VectorIndex]:
    """Open the embedder's collection below `folder`, creating what is missing; flushed and closed at exit.

    A damaged collection is moved aside and started empty (logged as a warning).

    Raises:
        IndexUnavailable: another process has it open, or the system refuses the files.
    """
    place = Place(folder, base, collection_name(base, model=model, dimension=dimension))
    try:
        number = await asyncio.to_thread(place.serving)
    except OSError as error:
        raise IndexUnavailable from error
    current = await open_edge_collection(place.path(number), dimension=dimension)
    generations = EdgeGenerations(place, current, number=number, dimension=dimension)
    try:
        await generations.drop_old()
        yield RebuildableIndex("qdrant-edge", generations)
    finally:
        await generations.close()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a collection's generations lie: `<name>`, then `<name>.r2`, …, in one folder.

    The file `<name>.current` names the one that serves; without it `<name>` does. It is replaced as a whole, so that a
    kill leaves the old generation serving or the new one. Everything here blocks.
    """

    folder: Path
    base: str
    name: str

    def path(self, number: int) -> Path:
        """The folder of a generation."""
        return self.folder / generation_name(self.name, number)

    def serving(self) -> int:
        """Which generation serves."""
        try:
            said = self._pointer.read_text(encoding="utf-8", errors="replace")
        except (FileNotFoundError, NotADirectoryError):
            return 1
        return generation_of(said.strip(), name=self.name) or 1

    def serve(self, number: int) -> None:
        """Let this generation serve from the next opening on."""
        written = self._pointer.with_name(f"{self._pointer.name}.new")
        with written.open("w", encoding="utf-8") as file:
            file.write(generation_name(self.name, number))
            file.flush()
            os.fsync(file.fileno())
        written.replace(self._pointer)

    def remove_before(self, number: int) -> None:
        """Remove the generations before this one, whatever can be removed of them."""
        for item in self.folder.iterdir():
            found = generation_of(item.name, name=self.name)
            if found is not None and found < number:
                shutil.rmtree(item, ignore_errors=True)

    def others(self) -> list[str]:
        """The collections of other embedders; folders that were moved aside as damaged are none."""
        return siblings(self.base, names=[item.name for item in self.folder.iterdir()], own=self.name)

    @property
    def _pointer(self) -> Path:
        return self.folder / f"{self.name}.current"


class EdgeGenerations:
    """The generations of one collection; the one that serves, and at times its successor, are open."""

    def __init__(self, place: Place, current: EdgeCollection, *, number: int, dimension: int) -> None:
        self.current = current
        self._place = place
        self._number = number
        self._dimension = dimension
        self._successor: EdgeCollection | None = None
        self._old: EdgeCollection | None = None

    @asynccontextmanager
    async def successor(self) -> AsyncGenerator[EdgeCollection]:
        """See Generations."""
        path = self._place.path(self._number + 1)
        self._successor = opened = await open_edge_collection(path, dimension=self._dimension)
        try:
            yield opened
        finally:
            self._successor = None
            if self.current is not opened:
                await opened.close()

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
        try:
            await asyncio.to_thread(self._place.remove_before, self._number)
        except OSError as error:
            raise IndexUnavailable from error

    async def other_collections(self) -> list[str]:
        """See Generations."""
        try:
            return await asyncio.to_thread(self._place.others)
        except OSError as error:
            raise IndexUnavailable from error

    async def close(self) -> None:
        """Close what is open."""
        for opened in (self._old, self.current):
            if opened is not None:
                await opened.close()
