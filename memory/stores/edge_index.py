"""The embedded vector index: Qdrant's engine in this process, one folder per collection."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar, cast

import qdrant_edge as edge

from memory.errors import IndexUnavailable
from memory.scope import Scope
from memory.stores.edge_shard import close_shard, engine_errors, open_shard
from memory.stores.points import (
    BM25,
    DENSE,
    KIND,
    THREAD,
    TURN,
    USER,
    batches,
    checked,
    checked_vectors,
    cosine,
    read_entry,
    siblings,
)
from memory.vector_index import Entry, Match, Point, Query, Vector, VectorIndex, collection_name

_READERS = 2
# The engine holds the interpreter's lock while it takes points in: 64 of 1,024 dimensions take about 3 ms.
_BATCH = 64
# The log grows by about 5 KB a point until a flush, which takes about 30 ms at 100,000 points.
_FLUSH_EVERY = 1_000

Answer = TypeVar("Answer")


@asynccontextmanager
async def open_edge_index(folder: Path, *, base: str, model: str, dimension: int) -> AsyncGenerator[VectorIndex]:
    """Open the embedder's collection below `folder`, creating what is missing; flushed and closed at exit.

    A damaged collection is moved aside and started empty (logged as a warning).

    Raises:
        IndexUnavailable: another process has it open, or the system refuses the files.
    """
    name = collection_name(base, model=model, dimension=dimension)
    writer = ThreadPoolExecutor(1, thread_name_prefix="edge-writer")
    readers = ThreadPoolExecutor(_READERS, thread_name_prefix="edge-reader")
    loop = asyncio.get_running_loop()
    try:
        shard = await loop.run_in_executor(writer, lambda: open_shard(folder / name, dimension=dimension))
        try:
            yield EdgeIndex(shard, path=folder / name, base=base, dimension=dimension, threads=(writer, readers))
        finally:
            closing = loop.run_in_executor(writer, _close, shard, readers)
            await asyncio.shield(closing)
    finally:
        readers.shutdown(wait=False)
        writer.shutdown(wait=False)


def _close(shard: edge.EdgeShard, readers: ThreadPoolExecutor) -> None:
    readers.shutdown(wait=True)
    close_shard(shard)


class EdgeIndex:
    """The port over one shard: one thread writes, two read (the engine allows reading while it writes).

    An upsert is in the engine's log and mapped files when it returns, which a killed process survives. After a power
    cut the last points since a flush may be missing; start-up repair brings them back from the documents.
    """

    name = "qdrant-edge"

    def __init__(
        self,
        shard: edge.EdgeShard,
        *,
        path: Path,
        base: str,
        dimension: int,
        threads: tuple[ThreadPoolExecutor, ThreadPoolExecutor],
    ) -> None:
        self._shard = shard
        self._path = path
        self._base = base
        self._dimension = dimension
        self._writer, self._readers = threads
        self._unflushed = 0

    async def upsert(self, points: Sequence[Point]) -> None:
        """Store the points in batches; a ValueError for a vector that does not fit stores none of its batch."""
        for batch in batches(points, _BATCH):
            await self._write(lambda batch=batch: self._upsert(batch))

    async def search(self, query: Query) -> list[Match]:
        """The nearest entries of the scope by exact cosine."""
        if not query.kinds:
            return []
        request = edge.QueryRequest(
            limit=query.limit,
            query=edge.Query.Nearest(checked(query.dense, self._dimension), using=DENSE),
            filter=_searched(query),
            with_payload=True,
            with_vector=[DENSE] if query.with_vectors else False,
        )
        return await self._read(lambda: [_match(found) for found in self._shard.query(request)])

    async def known(self, ids: Sequence[str]) -> set[str]:
        """Those of `ids` that have a point."""
        wanted: list[edge.PointId] = list(ids)
        found = await self._read(lambda: self._shard.retrieve(wanted, with_payload=False, with_vector=False))
        return {str(record.id) for record in found}

    async def entries(self, ids: Sequence[str]) -> list[Entry]:
        """The entries of those of `ids` that have a point."""
        wanted: list[edge.PointId] = list(ids)
        found = await self._read(lambda: self._shard.retrieve(wanted, with_payload=True, with_vector=False))
        return [read_entry(str(record.id), record.payload or {}) for record in found]

    async def ids(self, *, after: str | None = None, limit: int = 500) -> list[str]:
        """One page of all ids, ascending."""
        # The offset is part of the page if its point is still there.
        request = edge.ScrollRequest(offset=after, limit=limit + 1, with_payload=False, with_vector=False)
        records, _ = await self._read(lambda: self._shard.scroll(request))
        return [str(record.id) for record in records if str(record.id) != after][:limit]

    async def count(self, *, user_id: str | None = None) -> int:
        """How many points there are."""
        owned = None if user_id is None else _owned(Scope(user_id))
        return await self._read(lambda: self._shard.count(edge.CountRequest(filter=owned)))

    async def remove(self, *, user_id: str, ids: Sequence[str]) -> None:
        """Delete these points of the user."""
        if ids:
            chosen = edge.Filter(must=[_equals(USER, user_id), edge.HasIdCondition(set(ids))])
            await self._write(lambda: self._delete(chosen))

    async def delete(self, scope: Scope) -> int:
        """Delete the scope's points; counted and deleted without a write between."""
        return await self._write(lambda: self._delete(_owned(scope)))

    async def other_collections(self) -> list[str]:
        """Folders of the same base name beside this one; those moved aside as damaged are none."""
        try:
            names = await asyncio.to_thread(lambda: [item.name for item in self._path.parent.iterdir()])
        except OSError as error:
            raise IndexUnavailable from error
        return siblings(self._base, names=names, own=self._path.name)

    async def ping(self) -> None:
        """Ask the engine for its state."""
        await self._read(self._shard.info)

    def _upsert(self, points: Sequence[Point]) -> None:
        self._shard.update(edge.UpdateOperation.upsert_points([_record(point, self._dimension) for point in points]))
        self._unflushed += len(points)
        if self._unflushed >= _FLUSH_EVERY:
            self._shard.flush()
            self._unflushed = 0

    def _delete(self, chosen: edge.Filter) -> int:
        there = self._shard.count(edge.CountRequest(filter=chosen))
        if there:
            self._shard.update(edge.UpdateOperation.delete_points_by_filter(chosen))
        return there

    async def _write(self, work: Callable[[], Answer]) -> Answer:
        return await _run(self._writer, work)

    async def _read(self, work: Callable[[], Answer]) -> Answer:
        return await _run(self._readers, work)


async def _run(threads: ThreadPoolExecutor, work: Callable[[], Answer]) -> Answer:
    """Do the work in a thread of the pool; the one place where the engine's errors are translated."""

    def translated() -> Answer:
        with engine_errors():
            return work()

    try:
        future = threads.submit(translated)
    except RuntimeError as error:  # closed
        raise IndexUnavailable from error
    return await asyncio.wrap_future(future)


def _record(point: Point, dimension: int) -> edge.Point:
    vectors: dict[str, edge.NamedVector] = {**checked_vectors(point, dimension)}
    if point.bm25 is not None:
        vectors[BM25] = edge.SparseVector(list(point.bm25.indices), list(point.bm25.values))
    return edge.Point(point.entry.id, vectors, point.entry.payload())


def _match(found: edge.ScoredPoint) -> Match:
    vectors = cast("dict[str, Vector] | None", found.vector)
    return Match(
        entry=read_entry(str(found.id), found.payload or {}),
        similarity=cosine(found.score),
        dense=None if vectors is None else vectors[DENSE],
    )


def _equals(field: str, value: str) -> edge.FieldCondition:
    return edge.FieldCondition(field, match=edge.MatchValue(value))


def _owned(scope: Scope) -> edge.Filter:
    must: list[edge.ConditionType] = [_equals(USER, scope.user_id)]
    if scope.thread_id is not None:
        must.append(_equals(THREAD, scope.thread_id))
    return edge.Filter(must=must)


def _searched(query: Query) -> edge.Filter:
    must: list[edge.ConditionType] = [
        *(_owned(query.scope).must or []),
        edge.FieldCondition(KIND, match=edge.MatchAny(list(query.kinds))),
    ]
    must_not: list[edge.ConditionType] | None = None
    if query.exclude_turns:
        must_not = [edge.FieldCondition(TURN, match=edge.MatchAny(list(query.exclude_turns)))]
    return edge.Filter(must=must, must_not=must_not)
