"""The vector index on a Qdrant server: one collection for all users, told apart by a tenant index."""

import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import cast

from qdrant_client import AsyncQdrantClient, models

from memory.errors import IndexUnavailable
from memory.scope import Scope
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
from memory.stores.qdrant_collection import QdrantCollection, QdrantServer
from memory.vector_index import Entry, Match, Point, Query, Vector, VectorIndex, collection_name

log = logging.getLogger(__name__)

_BATCH = 64


@asynccontextmanager
async def open_qdrant_index(
    server: QdrantServer | AsyncQdrantClient, *, base: str, model: str, dimension: int
) -> AsyncGenerator[VectorIndex]:
    """Open the embedder's collection on a server; a client that is handed in is used and left open.

    A server that is down is no error: its calls raise IndexUnavailable until it is there, and the first call that
    reaches it creates the collection where it is missing.

    Raises:
        ConfigurationError: QDRANT_URL is no URL, or its server is older than 1.19.
    """
    async with AsyncExitStack() as opened:
        client = server
        if isinstance(client, QdrantServer):
            client = client.connect()
            opened.push_async_callback(client.close)
        name = collection_name(base, model=model, dimension=dimension)
        collection = QdrantCollection(client, name=name, dimension=dimension)
        try:
            await collection.check()
        except IndexUnavailable as error:
            log.warning(
                "the vector index cannot be reached; starting without search",
                extra={"action": "index_unavailable", "collection": name, "reason": error.message},
            )
        opened.callback(collection.close)
        yield QdrantIndex(collection, base=base)


class QdrantIndex:
    """The port over one collection. Writes are acknowledged once they are applied (`wait=True`)."""

    name = "qdrant"

    def __init__(self, collection: QdrantCollection, *, base: str) -> None:
        self._collection = collection
        self._client = collection.client
        self._base = base

    async def upsert(self, points: Sequence[Point]) -> None:
        """Store the points in batches; a ValueError for a vector that does not fit stores none of its batch."""
        for batch in batches(points, _BATCH):
            records = [_record(point, self._collection.dimension) for point in batch]
            await self._collection.ask(
                lambda records=records: self._client.upsert(self._collection.name, records, wait=True)
            )

    async def search(self, query: Query) -> list[Match]:
        """The nearest entries of the scope; a large user's through an approximate graph."""
        if not query.kinds:
            return []
        dense = checked(query.dense, self._collection.dimension)
        found = await self._collection.ask(
            lambda: self._client.query_points(
                self._collection.name,
                query=dense,
                using=DENSE,
                query_filter=_searched(query),
                limit=query.limit,
                with_payload=True,
                with_vectors=[DENSE] if query.with_vectors else False,
            )
        )
        return [_match(point) for point in found.points]

    async def known(self, ids: Sequence[str]) -> set[str]:
        """Those of `ids` that have a point."""
        if not ids:
            return set()
        found = await self._collection.ask(
            lambda: self._client.retrieve(self._collection.name, list(ids), with_payload=False, with_vectors=False)
        )
        return {str(record.id) for record in found}

    async def entries(self, ids: Sequence[str]) -> list[Entry]:
        """The entries of those of `ids` that have a point."""
        if not ids:
            return []
        found = await self._collection.ask(
            lambda: self._client.retrieve(self._collection.name, list(ids), with_payload=True, with_vectors=False)
        )
        return [read_entry(str(record.id), record.payload or {}) for record in found]

    async def ids(self, *, after: str | None = None, limit: int = 500) -> list[str]:
        """One page of all ids, ascending."""
        # The offset is part of the page if its point is still there.
        records, _ = await self._collection.ask(
            lambda: self._client.scroll(
                self._collection.name, offset=after, limit=limit + 1, with_payload=False, with_vectors=False
            )
        )
        return [str(record.id) for record in records if str(record.id) != after][:limit]

    async def count(self, *, user_id: str | None = None) -> int:
        """How many points there are, exactly."""
        return await self._count(None if user_id is None else _owned(Scope(user_id)))

    async def remove(self, *, user_id: str, ids: Sequence[str]) -> None:
        """Delete these points of the user."""
        if ids:
            chosen: list[models.Condition] = [_equals(USER, user_id), models.HasIdCondition(has_id=list(ids))]
            await self._delete(models.Filter(must=chosen))

    async def delete(self, scope: Scope) -> int:
        """Delete the scope's points, counted just before."""
        owned = _owned(scope)
        there = await self._count(owned)
        await self._delete(owned)
        return there

    async def other_collections(self) -> list[str]:
        """The server's collections of the same base name."""
        listed = await self._collection.ask(self._client.get_collections)
        names = [item.name for item in listed.collections]
        return siblings(self._base, names=names, own=self._collection.name)

    async def ping(self) -> None:
        """Ask the server for the collection, which needs the right key."""
        await self._collection.ask(lambda: self._client.collection_exists(self._collection.name))

    async def _count(self, owned: models.Filter | None) -> int:
        answer = await self._collection.ask(
            lambda: self._client.count(self._collection.name, count_filter=owned, exact=True)
        )
        return int(answer.count)

    async def _delete(self, chosen: models.Filter) -> None:
        selector = models.FilterSelector(filter=chosen)
        await self._collection.ask(lambda: self._client.delete(self._collection.name, selector, wait=True))


def _record(point: Point, dimension: int) -> models.PointStruct:
    vectors: dict[str, models.Vector] = {**checked_vectors(point, dimension)}
    if point.bm25 is not None:
        vectors[BM25] = models.SparseVector(indices=list(point.bm25.indices), values=list(point.bm25.values))
    return models.PointStruct(id=point.entry.id, vector=vectors, payload=point.entry.payload())


def _match(found: models.ScoredPoint) -> Match:
    vectors = cast("Mapping[str, Vector] | None", found.vector)
    return Match(
        entry=read_entry(str(found.id), found.payload or {}),
        similarity=cosine(found.score),
        dense=vectors[DENSE] if vectors else None,
    )


def _equals(field: str, value: str) -> models.FieldCondition:
    return models.FieldCondition(key=field, match=models.MatchValue(value=value))


def _owned(scope: Scope) -> models.Filter:
    must: list[models.Condition] = [_equals(USER, scope.user_id)]
    if scope.thread_id is not None:
        must.append(_equals(THREAD, scope.thread_id))
    return models.Filter(must=must)


def _searched(query: Query) -> models.Filter:
    must: list[models.Condition] = [_equals(USER, query.scope.user_id)]
    if query.scope.thread_id is not None:
        must.append(_equals(THREAD, query.scope.thread_id))
    must.append(models.FieldCondition(key=KIND, match=models.MatchAny(any=list(query.kinds))))
    must_not: list[models.Condition] | None = None
    if query.exclude_turns:
        must_not = [models.FieldCondition(key=TURN, match=models.MatchAny(any=list(query.exclude_turns)))]
    return models.Filter(must=must, must_not=must_not)
