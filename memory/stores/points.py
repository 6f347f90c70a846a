"""Names the vectors and payload fields of a Qdrant point and checks its content, for engine and server."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

from recollect.memory.ports.vector_index import Entry, Origin, Point, Query, SparseVector, Vector
from recollect.memory.values.errors import PointTaken
from recollect.memory.values.filtering.keys import FilterKeys
from recollect.memory.values.filtering.terms import item_terms
from recollect.memory.values.times import from_ms

DENSE, CONTEXT, BM25 = "dense", "context", "bm25"
USER, THREAD, TURN, KIND = "metadata.user_id", "metadata.thread_id", "metadata.turn_id", "metadata.kind"
FINGERPRINT, CREATED = "metadata.fingerprint", "metadata.created_at"
DOCUMENT = "metadata.document_id"
METADATA, TERMS = "metadata", "metadata.terms"

TermsOwed = dict[tuple[str, tuple[str, ...]], list[str]]
"""The ids of points by their user, and by the terms that they lack."""

_WORD_IDS = 2**32


def read_entry(point_id: str, payload: Mapping[str, Any]) -> Entry:
    """Return the entry that `Entry.payload` wrote as `payload`, its times in whole milliseconds."""
    said = payload["metadata"]
    return Entry(
        id=point_id,
        user_id=said["user_id"],
        thread_id=said["thread_id"],
        turn_id=said["turn_id"],
        kind=said["kind"],
        content=payload["page_content"],
        created_at=from_ms(said["created_at"]),
        role=said["role"],
        name=said["name"],
        message_id=said["message_id"],
        position=said.get("position"),  # points from before there were positions
        origin=Origin(said["document_id"]) if said.get("document_id") else None,
        # A fact's point had the fact's id before it had one of its own.
        fact_id=said.get("fact_id") or (point_id if said["kind"] == "fact" else None),
    )


def payload_of(point: Point, keys: FilterKeys) -> dict[str, Any]:
    """Return the point's payload with the terms of what filters look at."""
    payload = point.payload()
    if point.entry.item is not None:
        payload["metadata"]["terms"] = list(item_terms(point.entry.item, keys))
    return payload


def read_terms(payload: Mapping[str, Any]) -> list[str]:
    """Return the terms of a payload; points of earlier versions have none."""
    return payload.get("metadata", {}).get("terms", [])


def terms_owed(entries: Sequence[Entry], stored: Mapping[str, Mapping[str, Any]], keys: FilterKeys) -> TermsOwed:
    """Return what has to be written to the points of these entries; `stored` are their payloads by id."""
    owed: TermsOwed = {}
    for entry in entries:
        if entry.item is not None and entry.id in stored:
            terms = item_terms(entry.item, keys)
            if read_terms(stored[entry.id]) != list(terms):
                owed.setdefault((entry.user_id, terms), []).append(entry.id)
    return owed


def checked_vector(vector: Vector, dimension: int) -> list[float]:
    """Return `vector` as a list of `dimension` finite numbers; a vector of zeros is allowed (similarity 0 to all).

    Raises:
        ValueError: the vector is of another model, or holds NaN or infinity; a retry would not help.
    """
    if len(vector) != dimension:
        raise ValueError(f"A vector has {len(vector)} dimensions where the index has {dimension}.")
    # NaN and infinity reach the sum, which takes a fifth of the time; numbers near the largest may exceed it too.
    if not math.isfinite(sum(vector)) and not all(map(math.isfinite, vector)):
        raise ValueError("A vector holds NaN or infinity.")
    return list(vector)


def checked_vectors(point: Point, dimension: int) -> dict[str, list[float]]:
    """Return the point's dense vectors by name."""
    vectors = {DENSE: checked_vector(point.dense, dimension)}
    if point.context is not None:
        vectors[CONTEXT] = checked_vector(point.context, dimension)
    return vectors


def checked_words(vector: SparseVector, user_id: str) -> SparseVector | None:
    """Return `vector` with word ids of the user's own; None if it has no words: it is then neither stored nor searched.

    The engines keep one list of points for each word id, and read all of it. XOR with a number derived from the user
    maps ids one to one, so a user's weights stay the same, and a list holds other users' points only by chance.

    Raises:
        ValueError: `vector` is no sparse vector: lengths that differ, an id twice or outside 32 bits, NaN or infinity.
    """
    ids, weights = vector.indices, vector.values
    if len(ids) != len(weights):
        raise ValueError("A sparse vector has more ids than weights, or fewer.")
    if len(set(ids)) != len(ids) or not all(0 <= number < _WORD_IDS for number in ids):
        raise ValueError("A sparse vector holds an id twice, or one outside 32 bits.")
    if not all(map(math.isfinite, weights)):
        raise ValueError("A sparse vector holds NaN or infinity.")
    own = crc32(user_id.encode())
    return SparseVector([number ^ own for number in ids], list(weights)) if ids else None


def checked_query(query: Query, dimension: int) -> list[float] | SparseVector | None:
    """Return the vector with which the query's channel is searched; None where it can find nothing.

    Raises:
        ValueError: it does not fit the channel.
    """
    is_sparse = isinstance(query.vector, SparseVector)
    if is_sparse != (query.channel == BM25):
        raise ValueError(f"A {'sparse' if is_sparse else 'dense'} vector does not fit the channel {query.channel}.")
    if isinstance(query.vector, SparseVector):
        vector = checked_words(query.vector, query.scope.user_id)
    else:
        vector = checked_vector(query.vector, dimension)
    finds_nothing = not query.kinds or any(chosen is not None and not chosen for chosen in (query.ids, query.documents))
    return None if finds_nothing else vector


def checked_search(query: Query, dimension: int) -> list[float] | None:
    """Return the dense vector of a query that asks for similarity; None where it can find nothing.

    Raises:
        ValueError: it does not fit the channel, or the channel has no similarity.
    """
    vector = checked_query(query, dimension)
    if query.channel == BM25 or isinstance(vector, SparseVector):
        raise ValueError("The channel bm25 has no similarity; rank it.")
    return vector


def cosine_of_score(score: float) -> float:
    """Return the engine's score as a cosine, cut off to [-1, 1]: single precision overshoots slightly."""
    return max(-1.0, min(1.0, score))


def raw_score(query: Query, score: float) -> float:
    """Return the engine's `score` in the form in which `rank` gives it."""
    return score if -1.0 <= score <= 1.0 or query.channel == BM25 else cosine_of_score(score)


def check_owners(points: Sequence[Point], owners: Mapping[str, str]) -> None:
    """Check that no stored point of these ids has another owner; `owners` maps stored ids to their users.

    Raises:
        PointTaken: one is another user's, or two points of one id have different users.
    """
    known = dict(owners)
    for entry in (point.entry for point in points):
        if known.setdefault(entry.id, entry.user_id) != entry.user_id:
            raise PointTaken


def read_user_id(payload: Mapping[str, Any]) -> str:
    """Return the id of the user who owns the point."""
    said: str = payload["metadata"]["user_id"]
    return said


def read_fingerprint(payload: Mapping[str, Any]) -> str | None:
    """Return the fingerprint of the text that the point was made from; None for a point older than fingerprints."""
    said: str | None = payload.get("metadata", {}).get("fingerprint")
    return said


def generation_name(name: str, number: int) -> str:
    """Return the name of the `number`-th generation of `name`, from 1; each rebuild makes the next one."""
    return name if number == 1 else f"{name}.r{number}"


def generation_of(collection: str, *, name: str) -> int | None:
    """Return the number of the generation of `name` that `collection` is, or None where it is none."""
    found = re.fullmatch(re.escape(name) + r"(?:\.r([1-9][0-9]{0,8}))?", collection)
    return int(found[1] or 1) if found else None


def siblings(base: str, *, names: Sequence[str], own: str) -> list[str]:
    """Return the names that `collection_name` gives `base` for other embedders, each once for all its generations."""
    shape = re.compile("(" + re.escape(base) + r"__[A-Za-z0-9.-]*-[0-9a-f]{8}-[0-9]+)(?:\.r[0-9]+)?")
    found = {match[1] for match in map(shape.fullmatch, names) if match}
    return sorted(found - {own})
