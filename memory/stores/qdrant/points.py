"""Stores and searches points in one collection of a Qdrant server, with all users in it behind a tenant index."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import cast

from qdrant_client import models
from typing_extensions import override

from recollect.memory.background.batches import batches
from recollect.memory.ports.vector_index import Entry, Match, Point, PointStore, Query, SparseVector, Vector
from recollect.memory.stores.points import (
    BM25,
    CREATED,
    DENSE,
    DOCUMENT,
    FINGERPRINT,
    KIND,
    METADATA,
    TERMS,
    THREAD,
    TURN,
    USER,
    check_owners,
    checked_query,
    checked_search,
    checked_vectors,
    checked_words,
    cosine_of_score,
    payload_of,
    raw_score,
    read_entry,
    read_fingerprint,
    read_user_id,
    terms_owed,
)
from recollect.memory.stores.qdrant.allowed import allowed_by
from recollect.memory.stores.qdrant.collection import QdrantCollection
from recollect.memory.stores.qdrant.layout import CollectionLayout
from recollect.memory.values.filtering.keys import FilterKeys
from recollect.memory.values.scope import Scope
from recollect.memory.values.times import to_ms

_BATCH = 64
_MOST_VALUES = 1_000_000


class QdrantPoints(PointStore):
    """Implements PointStore over one collection. Writes return once they are applied (`wait=True`)."""

    def __init__(self, collection: QdrantCollection) -> None:
        self._collection = collection
        self._client = collection.client
        self._keys = collection.keys

    @override
    async def upsert(self, points: Sequence[Point]) -> None:
        """Store the points in batches; a ValueError for a vector that does not fit stores none of its batch."""
        for batch in batches(points, _BATCH):
            await self._upsert(batch)

    @override
    async def search(self, query: Query) -> list[Match]:
        """Return the nearest entries of the scope; approximate, by a graph, for users with many points."""
        vector = checked_search(query, self._collection.dimension)
        if vector is None:
            return []
        found = await self._collection.ask(
            lambda: self._client.query_points(
                self._collection.address,
                query=vector,
                using=query.channel,
                query_filter=_searched(query),
                search_params=self._collection.layout.search(),
                limit=query.limit,
                with_payload=True,
                with_vectors=[DENSE] if query.with_vectors else False,
            )
        )
        return [_match(point) for point in found.points]

    @override
    async def rank(self, queries: Sequence[Query]) -> list[dict[str, float]]:
        """Return the best ids of each query with their raw scores, in one round trip."""
        vectors = [checked_query(query, self._collection.dimension) for query in queries]
        asked = [index for index, vector in enumerate(vectors) if vector is not None]
        ranked = [dict[str, float]() for _ in queries]
        if not asked:
            return ranked
        requests = [_request(queries[index], vectors[index], self._collection.layout) for index in asked]
        answers = await self._collection.ask(
            lambda: self._client.query_batch_points(self._collection.address, requests)
        )
        for index, answer in zip(asked, answers, strict=True):
            ranked[index] = {str(found.id): raw_score(queries[index], found.score) for found in answer.points}
        return ranked

    @override
    async def fingerprints(self, ids: Sequence[str]) -> dict[str, str | None]:
        """Return the fingerprints of the points with these `ids`; leave out ids without a point."""
        if not ids:
            return {}
        found = await self._collection.ask(
            lambda: self._client.retrieve(
                self._collection.address, list(ids), with_payload=[FINGERPRINT], with_vectors=False
            )
        )
        return {str(record.id): read_fingerprint(record.payload or {}) for record in found}

    @override
    async def entries(self, ids: Sequence[str]) -> list[Entry]:
        """Return the entries of the points with these `ids`; leave out ids without a point."""
        if not ids:
            return []
        found = await self._collection.ask(
            lambda: self._client.retrieve(self._collection.address, list(ids), with_payload=True, with_vectors=False)
        )
        return [read_entry(str(record.id), record.payload or {}) for record in found]

    @override
    async def ids(self, *, after: str | None = None, limit: int = 500, scope: Scope | None = None) -> list[str]:
        """Return one page of all ids, or of the scope's, ascending."""
        # The offset is part of the page if its point is still there.
        records, _ = await self._collection.ask(
            lambda: self._client.scroll(
                self._collection.address,
                scroll_filter=None if scope is None else owned_by(scope),
                offset=after,
                limit=limit + 1,
                with_payload=False,
                with_vectors=False,
            )
        )
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
        """Return the exact number of points, in all or of a user or thread."""
        return await self._count(None if user_id is None else owned_by(Scope(user_id, thread_id)))

    @override
    async def retouch(self, entries: Sequence[Entry]) -> int:
        """Write other terms to the points, those of a batch in one call."""
        written = 0
        for batch in batches(entries, _BATCH):
            written += await self._retouch(batch)
        return written

    @override
    async def remove(self, *, user_id: str, ids: Sequence[str]) -> None:
        """Delete these points of the user."""
        if ids:
            await self._delete(among(user_id, ids))

    @override
    async def delete(self, scope: Scope) -> int:
        """Delete the scope's points and return their number, counted just before."""
        owned = owned_by(scope)
        there = await self._count(owned)
        await self._delete(owned)
        return there

    @override
    async def ping(self) -> None:
        """Ask the server for the collection, which needs the right key."""
        await self._collection.ask(lambda: self._client.collection_exists(self._collection.address))

    async def _retouch(self, entries: Sequence[Entry]) -> int:
        address, ids = self._collection.address, [entry.id for entry in entries]
        found = await self._collection.ask(
            lambda: self._client.retrieve(address, ids, with_payload=[TERMS], with_vectors=False)
        )
        owed = terms_owed(entries, {str(record.id): record.payload or {} for record in found}, self._keys)
        changes = [_change(user_id, terms, of_points) for (user_id, terms), of_points in owed.items()]
        if changes:
            await self._collection.ask(lambda: self._client.batch_update_points(address, changes, wait=True))
        return sum(len(of_points) for of_points in owed.values())

    async def _upsert(self, points: Sequence[Point]) -> None:
        """Store the points; the server replaces only a point of the same owner, because other processes write too."""
        check_owners(points, {})
        records = [_record(point, self._collection.dimension, self._keys) for point in points]
        own = _own(points)
        await self._collection.ask(
            lambda: self._client.upsert(self._collection.address, records, wait=True, update_filter=own)
        )
        # The server skips a point of another owner without an error, so read the owners back.
        ids = [point.entry.id for point in points]
        stored = await self._collection.ask(
            lambda: self._client.retrieve(self._collection.address, ids, with_payload=[USER], with_vectors=False)
        )
        check_owners(points, {str(record.id): read_user_id(record.payload or {}) for record in stored})

    async def _values(self, field: str, scope: Scope | None) -> list[str]:
        """Return the distinct values of `field` in the scope's points."""
        owned = None if scope is None else owned_by(scope)
        answer = await self._collection.ask(
            lambda: self._client.facet(
                self._collection.address, key=field, facet_filter=owned, limit=_MOST_VALUES, exact=True
            )
        )
        # A server also lists values whose points are deleted, or lie outside the filter, with the count 0.
        return [str(hit.value) for hit in answer.hits if hit.count > 0]

    async def _count(self, owned: models.Filter | None) -> int:
        answer = await self._collection.ask(
            lambda: self._client.count(self._collection.address, count_filter=owned, exact=True)
        )
        return int(answer.count)

    async def _delete(self, chosen: models.Filter) -> None:
        selector = models.FilterSelector(filter=chosen)
        await self._collection.ask(lambda: self._client.delete(self._collection.address, selector, wait=True))


def _change(user_id: str, terms: Sequence[str], ids: Sequence[str]) -> models.UpdateOperation:
    """Return the operation that writes the terms of the user's points with these ids."""
    written = models.SetPayload(payload={"terms": list(terms)}, filter=among(user_id, ids), key=METADATA)
    return models.SetPayloadOperation(set_payload=written)


def _record(point: Point, dimension: int, keys: FilterKeys) -> models.PointStruct:
    vectors: dict[str, models.Vector] = {**checked_vectors(point, dimension)}
    words = point.bm25 and checked_words(point.bm25, point.entry.user_id)
    if words is not None:
        vectors[BM25] = _sparse(words)
    return models.PointStruct(id=point.entry.id, vector=vectors, payload=payload_of(point, keys))


def _own(points: Sequence[Point]) -> models.Filter:
    """Return the filter for stored points with these ids and the same owners."""
    by_user = defaultdict[str, list[str]](list)
    for point in points:
        by_user[point.entry.user_id].append(point.entry.id)
    return models.Filter(should=[among(user_id, ids) for user_id, ids in by_user.items()])


def _sparse(vector: SparseVector) -> models.SparseVector:
    return models.SparseVector(indices=list(vector.indices), values=list(vector.values))


def _request(query: Query, vector: list[float] | SparseVector | None, layout: CollectionLayout) -> models.QueryRequest:
    params = layout.search()
    if query.channel == BM25:
        params = models.SearchParams(idf=models.IdfCorpusParams(corpus=owned_by(Scope(query.scope.user_id))))
    return models.QueryRequest(
        query=_sparse(vector) if isinstance(vector, SparseVector) else vector,
        using=query.channel,
        filter=_searched(query),
        params=params,
        limit=query.limit,
        with_payload=False,
        with_vector=False,
    )


def _match(found: models.ScoredPoint) -> Match:
    vectors = cast("Mapping[str, Vector] | None", found.vector)
    return Match(
        entry=read_entry(str(found.id), found.payload or {}),
        similarity=cosine_of_score(found.score),
        dense=vectors[DENSE] if vectors else None,
    )


def _equals(field: str, value: str) -> models.FieldCondition:
    return models.FieldCondition(key=field, match=models.MatchValue(value=value))


def owned_by(scope: Scope) -> models.Filter:
    """Return the filter for the scope's points, in any collection."""
    return models.Filter(must=_within(scope))


def among(user_id: str, ids: Sequence[str]) -> models.Filter:
    """Return the filter for the user's points with these ids."""
    return models.Filter(must=[_equals(USER, user_id), models.HasIdCondition(has_id=list(ids))])


def _within(scope: Scope) -> list[models.Condition]:
    must: list[models.Condition] = [_equals(USER, scope.user_id)]
    if scope.thread_id is not None:
        must.append(_equals(THREAD, scope.thread_id))
    return must


def _searched(query: Query) -> models.Filter:
    of_kind = models.FieldCondition(key=KIND, match=models.MatchAny(any=list(query.kinds)))
    must: list[models.Condition] = [*_within(query.scope), of_kind]
    if query.ids is not None:
        must.append(models.HasIdCondition(has_id=list(query.ids)))
    if query.period is not None:
        within = models.Range(gte=to_ms(query.period.begin), lt=to_ms(query.period.end))
        must.append(models.FieldCondition(key=CREATED, range=within))
    if query.documents is not None:
        must.append(models.FieldCondition(key=DOCUMENT, match=models.MatchAny(any=list(query.documents))))
    if query.allowed is not None:
        must.append(allowed_by(query.allowed))
    must_not: list[models.Condition] | None = None
    if query.exclude_turns:
        must_not = [models.FieldCondition(key=TURN, match=models.MatchAny(any=list(query.exclude_turns)))]
    return models.Filter(must=must, must_not=must_not)
