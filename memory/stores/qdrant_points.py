"""The points of one collection of a Qdrant server: all users in it, told apart by a tenant index."""

from collections.abc import Mapping, Sequence
from typing import cast

from qdrant_client import models

from memory.scope import Scope
from memory.stores.points import (
    BM25,
    DENSE,
    FINGERPRINT,
    KIND,
    THREAD,
    TURN,
    USER,
    batches,
    checked,
    checked_vectors,
    cosine,
    read_entry,
    read_fingerprint,
)
from memory.stores.qdrant_collection import QdrantCollection
from memory.vector_index import Entry, Match, Point, Query, Vector

_BATCH = 64


class QdrantPoints:
    """The points of one collection. Writes are acknowledged once they are applied (`wait=True`)."""

    def __init__(self, collection: QdrantCollection) -> None:
        self._collection = collection
        self._client = collection.client

    async def upsert(self, points: Sequence[Point]) -> None:
        """Store the points in batches; a ValueError for a vector that does not fit stores none of its batch."""
        for batch in batches(points, _BATCH):
            records = [_record(point, self._collection.dimension) for point in batch]
            await self._collection.ask(
                lambda records=records: self._client.upsert(self._collection.address, records, wait=True)
            )

    async def search(self, query: Query) -> list[Match]:
        """The nearest entries of the scope; a large user's through an approximate graph."""
        if not query.kinds:
            return []
        dense = checked(query.dense, self._collection.dimension)
        found = await self._collection.ask(
            lambda: self._client.query_points(
                self._collection.address,
                query=dense,
                using=DENSE,
                query_filter=_searched(query),
                limit=query.limit,
                with_payload=True,
                with_vectors=[DENSE] if query.with_vectors else False,
            )
        )
        return [_match(point) for point in found.points]

    async def fingerprints(self, ids: Sequence[str]) -> dict[str, str | None]:
        """The fingerprints of those of `ids` that have a point."""
        if not ids:
            return {}
        found = await self._collection.ask(
            lambda: self._client.retrieve(
                self._collection.address, list(ids), with_payload=[FINGERPRINT], with_vectors=False
            )
        )
        return {str(record.id): read_fingerprint(record.payload or {}) for record in found}

    async def entries(self, ids: Sequence[str]) -> list[Entry]:
        """The entries of those of `ids` that have a point."""
        if not ids:
            return []
        found = await self._collection.ask(
            lambda: self._client.retrieve(self._collection.address, list(ids), with_payload=True, with_vectors=False)
        )
        return [read_entry(str(record.id), record.payload or {}) for record in found]

    async def ids(self, *, after: str | None = None, limit: int = 500) -> list[str]:
        """One page of all ids, ascending."""
        # The offset is part of the page if its point is still there.
        records, _ = await self._collection.ask(
            lambda: self._client.scroll(
                self._collection.address, offset=after, limit=limit + 1, with_payload=False, with_vectors=False
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

    async def ping(self) -> None:
        """Ask the server for the collection, which needs the right key."""
        await self._collection.ask(lambda: self._client.collection_exists(self._collection.address))

    async def _count(self, owned: models.Filter | None) -> int:
        answer = await self._collection.ask(
            lambda: self._client.count(self._collection.address, count_filter=owned, exact=True)
        )
        return int(answer.count)

    async def _delete(self, chosen: models.Filter) -> None:
        selector = models.FilterSelector(filter=chosen)
        await self._collection.ask(lambda: self._client.delete(self._collection.address, selector, wait=True))


def _record(point: Point, dimension: int) -> models.PointStruct:
    vectors: dict[str, models.Vector] = {**checked_vectors(point, dimension)}
    if point.bm25 is not None:
        vectors[BM25] = models.SparseVector(indices=list(point.bm25.indices), values=list(point.bm25.values))
    return models.PointStruct(id=point.entry.id, vector=vectors, payload=point.payload())


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
    return models.Filter(must=_within(scope))


def _within(scope: Scope) -> list[models.Condition]:
    must: list[models.Condition] = [_equals(USER, scope.user_id)]
    if scope.thread_id is not None:
        must.append(_equals(THREAD, scope.thread_id))
    return must


def _searched(query: Query) -> models.Filter:
    of_kind = models.FieldCondition(key=KIND, match=models.MatchAny(any=list(query.kinds)))
    must: list[models.Condition] = [*_within(query.scope), of_kind]
    must_not: list[models.Condition] | None = None
    if query.exclude_turns:
        must_not = [models.FieldCondition(key=TURN, match=models.MatchAny(any=list(query.exclude_turns)))]
    return models.Filter(must=must, must_not=must_not)
