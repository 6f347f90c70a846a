"""Writes queries, and what narrows them, as the engine's requests and filters."""

from collections.abc import Sequence

import qdrant_edge as edge

from recollect.memory.ports.vector_index import Kind, Query, SparseVector
from recollect.memory.stores.edge.allowed import allowed_by
from recollect.memory.stores.edge.shard import OWNER
from recollect.memory.stores.points import BM25, CREATED, DENSE, DOCUMENT, THREAD, USER
from recollect.memory.values.scope import Scope
from recollect.memory.values.times import to_ms

OVERSAMPLING = 3.0
"""How many vectors are compared whole for each wanted one: those whose codes are nearest.

With 20,000 random vectors, which codes tell apart worst, no list of 100 or 150 lacked one that comparing all would have
named (60 queries of 384 and of 1,024 numbers).
"""
LEAST_COMPARED = 300
"""How many vectors are compared whole at least, so that a short list is as sure."""


def request_of(
    query: Query, vector: list[float] | SparseVector, *, limit: int, params: edge.SearchParams
) -> edge.QueryRequest:
    """Return the request for the best `limit` points of `query`."""
    return edge.QueryRequest(
        limit=limit,
        query=edge.Query.Nearest(named(vector), using=query.channel),
        filter=_searched(query),
        params=params,
        with_payload=False,
        with_vector=[DENSE] if query.with_vectors else False,
    )


def params_of(query: Query, limit: int) -> edge.SearchParams:
    """Return how the query's vector is compared with others for the best `limit` points; their scores are exact."""
    if query.channel == BM25:
        return edge.SearchParams(idf=edge.IdfParams(corpus=owned_by(Scope(query.scope.user_id))))
    if query.ids is not None:
        return edge.SearchParams(exact=True)
    by_codes = edge.QuantizationSearchParams(rescore=True, oversampling=max(OVERSAMPLING, LEAST_COMPARED / limit))
    return edge.SearchParams(quantization=by_codes)


def named(vector: list[float] | SparseVector) -> "edge.NamedVector":
    """Return the vector in the engine's own form."""
    return edge.SparseVector(list(vector.indices), list(vector.values)) if isinstance(vector, SparseVector) else vector


def equals(field: str, value: str) -> edge.FieldCondition:
    """Return the condition that the payload's `field` has the `value`."""
    return edge.FieldCondition(field, match=edge.MatchValue(value))


def owner_of(user_id: str, kind: Kind) -> str:
    """Return the value of the field `OWNER`."""
    return f"{user_id}/{kind}"  # neither ids nor kinds hold a slash


def owned_by(scope: Scope) -> edge.Filter:
    """Return the filter for the scope's points, in any collection."""
    must: list[edge.ConditionType] = [equals(USER, scope.user_id)]
    if scope.thread_id is not None:
        must.append(equals(THREAD, scope.thread_id))
    return edge.Filter(must=must)


def among(user_id: str, ids: Sequence[str]) -> edge.Filter:
    """Return the filter for the user's points with these ids, in any collection."""
    return edge.Filter(must=[equals(USER, user_id), edge.HasIdCondition(set(ids))])


def _searched(query: Query) -> edge.Filter:
    must: list[edge.ConditionType] = []
    if query.scope.thread_id is not None:
        must.append(equals(THREAD, query.scope.thread_id))
    if query.ids is not None:
        must.append(edge.HasIdCondition(set(query.ids)))
    if query.period is not None:
        within = edge.RangeFloat(gte=to_ms(query.period.begin), lt=to_ms(query.period.end))
        must.append(edge.FieldCondition(CREATED, range=within))
    if query.documents is not None:
        must.append(edge.FieldCondition(DOCUMENT, match=edge.MatchAny(list(query.documents))))
    if query.allowed is not None:
        must.append(allowed_by(query.allowed))
    # One condition per kind is faster than one `MatchAny`.
    return edge.Filter(must=must, should=[equals(OWNER, owner_of(query.scope.user_id, kind)) for kind in query.kinds])
