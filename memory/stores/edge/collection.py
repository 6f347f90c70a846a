"""Runs one collection of the embedded index: a shard of Qdrant's engine and the threads that work in it."""

import contextlib
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import qdrant_edge as edge
from typing_extensions import override

from recollect.memory.background.batches import batches
from recollect.memory.ports.vector_index import Entry, Match, Point, PointStore, Query
from recollect.memory.stores.edge.engine_threads import EngineThreads
from recollect.memory.stores.edge.place import mark_deleted
from recollect.memory.stores.edge.point_counts import FEW, FEW_BESIDE, PointCounts
from recollect.memory.stores.edge.point_reader import Comparing, PointReader
from recollect.memory.stores.edge.running import Running
from recollect.memory.stores.edge.selection import among, named, owned_by, owner_of, params_of
from recollect.memory.stores.edge.shard import (
    OWNER,
    close_shard,
    index_payload,
    is_payload_indexed,
    open_shard,
)
from recollect.memory.stores.edge.writes import Writes
from recollect.memory.stores.points import (
    BM25,
    FINGERPRINT,
    METADATA,
    TERMS,
    THREAD,
    USER,
    TermsOwed,
    check_owners,
    checked_query,
    checked_search,
    checked_vectors,
    checked_words,
    payload_of,
    read_fingerprint,
    read_terms,
    read_user_id,
    terms_owed,
)
from recollect.memory.stores.private_folder import PrivateFolder
from recollect.memory.values.filtering.keys import NO_KEYS, FilterKeys
from recollect.memory.values.scope import Scope

# The engine holds the interpreter's lock while it stores points: 64 of 1,024 dimensions take about 3 ms.
_BATCH = 64
# The log grows by about 5 KB a point until a flush, which takes about 30 ms at 100,000 points.
_FLUSH_EVERY = 1_000
_MOST_VALUES = 10_000_000
# A turn writes its messages, their facts and what they replace.
_FEW_POINTS = 8
# So many entries are read and made of their payloads in 1.3 ms.
_FEW_ENTRIES = 100

Answer = TypeVar("Answer")
PointId = str | int
"""A point's id as the engine gives it."""


async def open_edge_collection(
    path: Path, *, dimension: int, running: Running, keys: FilterKeys = NO_KEYS
) -> "EdgeCollection":
    """Open the collection in the folder `path`, or create it; its opener closes it. Points get terms of the `keys`.

    `running` is shared by all collections of the process. A damaged collection is moved aside and an empty one takes
    its place (logged as a warning).

    Raises:
        IndexUnavailable: another process has it open, or the system refuses the files.
    """
    threads = EngineThreads(running)
    try:
        shard = await threads.write(lambda: open_shard(path, dimension=dimension))
    except BaseException:
        threads.give_up()
        raise
    return EdgeCollection(shard, path, dimension=dimension, threads=threads, keys=keys)


class EdgeCollection(PointStore):
    """The points of one shard, and the threads that work in it.

    An upsert is in the engine's log and mapped files when it returns, which a killed process survives. After a power
    cut, points since the last flush may be missing; IndexRepair restores them from the store at start-up.
    """

    def __init__(
        self,
        shard: edge.EdgeShard,
        path: Path,
        *,
        dimension: int,
        threads: EngineThreads,
        keys: FilterKeys,
        compared: Comparing = params_of,
    ) -> None:
        self._shard = shard
        self._path = path
        self._folder = PrivateFolder(path)
        self._is_marked = False
        self._dimension = dimension
        self._keys = keys
        self._threads = threads
        self._writes = Writes()
        self._reader = PointReader(shard, self._writes, compared)
        self._counts = PointCounts(shard)
        self._is_indexed = False  # as far as the writer knows
        self._unflushed = 0

    async def close(self) -> None:
        """Wait for running calls, flush and release the folder; later calls raise IndexUnavailable."""
        await self._threads.close(self._close)

    async def flush(self) -> None:
        """Write everything to disk, so that a power cut loses nothing."""
        await self._threads.write(self._flush)

    @override
    async def upsert(self, points: Sequence[Point]) -> None:
        """Store the points in batches; a ValueError for a vector that does not fit stores none of its batch."""
        for batch in batches(points, _BATCH):
            write = self._threads.write_shortly if self._is_short(batch) else self._threads.write
            await write(lambda batch=batch: self._upsert(batch))

    @override
    async def search(self, query: Query) -> list[Match]:
        """Return the nearest entries of the scope with their exact cosines."""
        vector = checked_search(query, self._dimension)
        if vector is None:
            return []
        return await self._read_of(query.scope.user_id, lambda: self._reader.matches(query, vector))

    @override
    async def rank(self, queries: Sequence[Query]) -> list[dict[str, float]]:
        """Return the best ids of each query with their exact raw scores; they run in turn.

        The engine holds the interpreter's lock during a query: two threads are no faster, and the engine's own batch
        would only hold it for longer.
        """
        asked = [(query, checked_query(query, self._dimension)) for query in queries]
        if not asked:
            return []
        are_named = all(query.ids is not None and query.allowed is None for query in queries)
        few = FEW_BESIDE if are_named else FEW  # a filter may allow thousands of points
        return await self._read_of(queries[0].scope.user_id, lambda: self._reader.ranked(asked), few=few)

    @override
    async def fingerprints(self, ids: Sequence[str]) -> dict[str, str | None]:
        """Return the fingerprints of the points with these `ids`; leave out ids without a point."""
        wanted: list[edge.PointId] = list(ids)
        found = await self._threads.read(
            lambda: self._shard.retrieve(wanted, with_payload=[FINGERPRINT], with_vector=False)
        )
        return {str(record.id): read_fingerprint(record.payload or {}) for record in found}

    @override
    async def entries(self, ids: Sequence[str]) -> list[Entry]:
        """Return the entries of the points with these `ids`; leave out ids without a point."""
        few = self._reader.entries.lacks(ids) <= _FEW_ENTRIES
        return await (self._threads.read_shortly if few else self._threads.read)(lambda: self._reader.entries.of(ids))

    @override
    async def ids(self, *, after: str | None = None, limit: int = 500, scope: Scope | None = None) -> list[str]:
        """Return one page of all ids, or of the scope's, ascending."""
        # The offset is part of the page if its point is still there.
        request = edge.ScrollRequest(
            offset=after,
            limit=limit + 1,
            filter=None if scope is None else owned_by(scope),
            with_payload=False,
            with_vector=False,
        )
        records, _ = await self._threads.read(lambda: self._shard.scroll(request))
        return [str(record.id) for record in records if str(record.id) != after][:limit]

    @override
    async def users(self) -> list[str]:
        """Return all users who have points."""
        return await self._values(USER, None)

    @override
    async def threads(self, user_id: str) -> list[str]:
        """Return the user's threads that have points."""
        return await self._values(THREAD, Scope(user_id))

    @override
    async def count(self, *, user_id: str | None = None, thread_id: str | None = None) -> int:
        """Return how many points are stored, in all or of a user or thread."""
        return await self.count_of(None if user_id is None else Scope(user_id, thread_id))

    async def count_of(self, scope: Scope | None) -> int:
        """Return how many points are stored of the scope, or in all."""
        owned = None if scope is None else owned_by(scope)
        return await self._threads.read(lambda: self._shard.count(edge.CountRequest(filter=owned)))

    async def copy_page(self, to: "EdgeCollection", *, after: PointId | None) -> PointId | None:
        """Copy one page of points unchanged to another collection; return where the next page begins, or None."""
        request = edge.ScrollRequest(offset=after, limit=_BATCH, with_payload=True, with_vector=True)
        records, following = await self._threads.read(lambda: self._shard.scroll(request))
        await to.put([edge.Point(record.id, _stored(record), record.payload) for record in records])
        return cast("PointId | None", following)

    async def put(self, points: Sequence[edge.Point]) -> None:
        """Store points in the engine's own form."""
        if points:
            await self._threads.write(lambda: self._put(points, None))

    @override
    async def retouch(self, entries: Sequence[Entry]) -> int:
        """Write other terms to the points; no write comes between reading a point's terms and writing them."""
        written = 0
        for batch in batches(entries, _BATCH):
            written += await self._threads.write(lambda batch=batch: self._retouch(batch))
        return written

    @override
    async def remove(self, *, user_id: str, ids: Sequence[str]) -> None:
        """Delete these points of the user."""
        if ids:
            write = self._threads.write_shortly if len(ids) <= _FEW_POINTS else self._threads.write
            await write(lambda: self._delete(user_id, among(user_id, ids), ids))

    @override
    async def delete(self, scope: Scope) -> int:
        """Delete the scope's points and return their number; no write comes between count and deletion."""
        return await self._threads.write(lambda: self._delete(scope.user_id, owned_by(scope), None))

    @override
    async def ping(self) -> None:
        """Ask the engine for its state."""
        await self._threads.read(self._shard.info)

    async def _values(self, field: str, scope: Scope | None) -> list[str]:
        """Return the distinct values of `field` in the scope's points."""
        if not await self._threads.read(lambda: is_payload_indexed(self._shard)):
            return []  # nothing was ever stored
        owned = None if scope is None else owned_by(scope)
        request = edge.FacetRequest(field, limit=_MOST_VALUES, exact=True, filter=owned)
        facet = await self._threads.read(lambda: self._shard.facet(request))
        return [str(hit.value) for hit in facet.hits if hit.count > 0]

    def _is_short(self, points: Sequence[Point]) -> bool:
        """Tell whether these points are stored in so little time that the event loop may do it."""
        return self._is_indexed and len(points) <= _FEW_POINTS and self._unflushed + len(points) < _FLUSH_EVERY

    def _upsert(self, points: Sequence[Point]) -> None:
        """Store the points. Writes run one at a time, so that none comes between the check of owners and this one."""
        records = [_record(point, self._dimension, self._keys) for point in points]
        wanted: list[edge.PointId] = [point.entry.id for point in points]
        stored = {
            str(record.id): record.payload or {}
            for record in self._shard.retrieve(wanted, with_payload=[USER, FINGERPRINT, TERMS], with_vector=False)
        }
        check_owners(points, {key: read_user_id(payload) for key, payload in stored.items()})
        made_from = {key: read_fingerprint(payload) for key, payload in stored.items()}
        is_changed = any(made_from.get(point.entry.id, point.fingerprint) != point.fingerprint for point in points)
        if is_changed or _loses_terms(terms_owed([point.entry for point in points], stored, self._keys), stored):
            self._mark()  # a point's text or terms are replaced, and the old ones stay in the files
        users = {point.entry.user_id for point in points}
        self._put(records, users.pop() if len(users) == 1 else None)
        self._counts.add(point.entry.user_id for point in points if point.entry.id not in stored)

    def _retouch(self, entries: Sequence[Entry]) -> int:
        wanted: list[edge.PointId] = [entry.id for entry in entries]
        found = self._shard.retrieve(wanted, with_payload=[TERMS], with_vector=False)
        stored = {str(record.id): record.payload or {} for record in found}
        owed = terms_owed(entries, stored, self._keys)
        if _loses_terms(owed, stored):
            self._mark()
        for (user_id, terms), ids in owed.items():
            change = edge.UpdateOperation.set_payload_by_filter(
                among(user_id, ids), {"terms": list(terms)}, key=METADATA
            )
            self._shard.update(change)
        written = sum(len(ids) for ids in owed.values())
        if written:
            self._count_written(written)
        return written

    def _put(self, points: Sequence[edge.Point], user_id: str | None) -> None:
        """Store the points of a user, or of several with None."""
        if not self._is_indexed:
            index_payload(self._shard)
            self._is_indexed = True
        with self._writing(user_id, [str(point.id) for point in points]):
            self._shard.update(edge.UpdateOperation.upsert_points(list(points)))
        self._count_written(len(points))

    def _count_written(self, points: int) -> None:
        makes_files = not self._unflushed  # so does the first write of a segment
        self._unflushed += points
        if self._unflushed >= _FLUSH_EVERY:
            self._shard.flush()
            self._unflushed, makes_files = 0, True
        if makes_files:
            self._folder.check()
        else:
            self._folder.check_at_times()

    def _flush(self) -> None:
        self._shard.flush()
        self._folder.check()

    def _delete(self, user_id: str, chosen: edge.Filter, ids: Sequence[str] | None) -> int:
        """Delete the user's chosen points, whose `ids` may be known, and return their number."""
        there = self._shard.count(edge.CountRequest(filter=chosen))
        if there:
            self._mark()
            with self._writing(user_id, ids):
                self._shard.update(edge.UpdateOperation.delete_points_by_filter(chosen))
            if ids is None:
                self._counts.forget()
            self._folder.check_at_times()
        return there

    @contextlib.contextmanager
    def _writing(self, user_id: str | None, ids: Sequence[str] | None) -> Generator[None]:
        """Keep nothing that was read of these points, or of any, before or during the block."""
        with self._writes.writing(user_id):
            try:
                yield
            finally:
                self._reader.entries.forget(ids)

    def _mark(self) -> None:
        """Mark the files as holding deleted text, before the deletion: a kill in between must not lose the mark."""
        if not self._is_marked:
            mark_deleted(self._path)
            self._is_marked = True

    def _close(self) -> None:
        close_shard(self._shard)
        with contextlib.suppress(OSError):  # as `close_shard` does: not an error at the end
            self._folder.check()

    async def _read_of(self, user_id: str, work: Callable[[], Answer], *, few: int = FEW) -> Answer:
        """Read what grows with the user's points, which are counted the first time: `few` are read shortly."""
        are_few = self._counts.are_few(user_id, few)
        if are_few is not None:
            return await (self._threads.read_shortly if are_few else self._threads.read)(work)

        def counted() -> Answer:
            self._counts.count(user_id)
            return work()

        return await self._threads.read_aside(counted)


def _record(point: Point, dimension: int, keys: FilterKeys) -> edge.Point:
    vectors: dict[str, edge.NamedVector] = {**checked_vectors(point, dimension)}
    words = point.bm25 and checked_words(point.bm25, point.entry.user_id)
    if words is not None:
        vectors[BM25] = named(words)
    owner = owner_of(point.entry.user_id, point.entry.kind)
    return edge.Point(point.entry.id, vectors, {**payload_of(point, keys), OWNER: owner})


def _stored(record: edge.Record) -> "dict[str, edge.NamedVector]":
    return cast("dict[str, edge.NamedVector]", record.vector or {})


def _loses_terms(owed: TermsOwed, stored: Mapping[str, Mapping[str, Any]]) -> bool:
    """Tell whether a stored point has a term that it is to lose."""
    return any(not set(read_terms(stored[found])) <= {*terms} for (_, terms), ids in owed.items() for found in ids)
