"""What both Qdrant implementations agree on: the names of vectors and payload fields, and what a point may hold."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar
from zlib import crc32

from memory.times import from_ms
from memory.vector_index import Entry, Origin, Point, Query, SparseVector, Vector

DENSE, CONTEXT, BM25 = "dense", "context", "bm25"
USER, THREAD, TURN, KIND = "metadata.user_id", "metadata.thread_id", "metadata.turn_id", "metadata.kind"
FINGERPRINT, CREATED = "metadata.fingerprint", "metadata.created_at"
DOCUMENT = "metadata.document_id"

_WORD_IDS = 2**32

Item = TypeVar("Item")


def read_entry(point_id: str, payload: Mapping[str, Any]) -> Entry:
    """The entry that `Entry.payload` wrote: its inverse, in whole milliseconds."""
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
    )


def checked(vector: Vector, dimension: int) -> list[float]:
    """The vector as a list of `dimension` finite numbers; zeros are allowed and are alike to nothing (similarity 0).

    Raises:
        ValueError: the vector is of another model, or holds NaN or infinity; waiting would not mend it.
    """
    if len(vector) != dimension:
        raise ValueError(f"A vector has {len(vector)} dimensions where the index has {dimension}.")
    if not all(map(math.isfinite, vector)):
        raise ValueError("A vector holds NaN or infinity.")
    return list(vector)


def checked_vectors(point: Point, dimension: int) -> dict[str, list[float]]:
    """The point's dense vectors by name."""
    vectors = {DENSE: checked(point.dense, dimension)}
    if point.context is not None:
        vectors[CONTEXT] = checked(point.context, dimension)
    return vectors


def checked_words(vector: SparseVector, user_id: str) -> SparseVector | None:
    """The vector with word ids of the user's own; None of one without words, which no point has and no query finds.

    The engines keep a list of points for each word, and walk all of it. XOR with a number of the user's maps ids one to
    one, so a user's weights remain what they are, and no list holds other users' points but by chance.

    Raises:
        ValueError: it is no sparse vector: lengths that differ, an id twice or outside 32 bits, NaN or infinity.
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
    """The vector that the query's channel is searched with; None where it can find nothing.

    Raises:
        ValueError: it does not fit the channel.
    """
    is_sparse = isinstance(query.vector, SparseVector)
    if is_sparse != (query.channel == BM25):
        raise ValueError(f"A {'sparse' if is_sparse else 'dense'} vector does not fit the channel {query.channel}.")
    if isinstance(query.vector, SparseVector):
        vector = checked_words(query.vector, query.scope.user_id)
    else:
        vector = checked(query.vector, dimension)
    finds_nothing = not query.kinds or any(chosen is not None and not chosen for chosen in (query.ids, query.documents))
    return None if finds_nothing else vector


def checked_search(query: Query, dimension: int) -> list[float] | None:
    """The same for a query that asks for similarity.

    Raises:
        ValueError: it does not fit the channel, or the channel has no similarity.
    """
    vector = checked_query(query, dimension)
    if query.channel == BM25 or isinstance(vector, SparseVector):
        raise ValueError("The channel bm25 has no similarity; rank it.")
    return vector


def cosine(score: float) -> float:
    """The engine's score as a cosine in [-1, 1]: single precision overshoots by a hair."""
    return max(-1.0, min(1.0, score))


def raw_score(query: Query, score: float) -> float:
    """The engine's score as `rank` gives it."""
    return score if query.channel == BM25 else cosine(score)


def batches(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """The items in runs of at most `size`."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def read_fingerprint(payload: Mapping[str, Any]) -> str | None:
    """What `Point.payload` says the point was made from; None of a point from before there were fingerprints."""
    said: str | None = payload.get("metadata", {}).get("fingerprint")
    return said


def generation_name(name: str, number: int) -> str:
    """The collection of a name's `number`-th generation, from 1; a rebuild makes the next one."""
    return name if number == 1 else f"{name}.r{number}"


def generation_of(collection: str, *, name: str) -> int | None:
    """Which generation of `name` the collection is, or None where it is none."""
    found = re.fullmatch(re.escape(name) + r"(?:\.r([1-9][0-9]{0,8}))?", collection)
    return int(found[1] or 1) if found else None


def siblings(base: str, *, names: Sequence[str], own: str) -> list[str]:
    """The names that `collection_name` gives the base for other embedders, each once for all its generations."""
    shape = re.compile("(" + re.escape(base) + r"__[A-Za-z0-9.-]*-[0-9a-f]{8}-[0-9]+)(?:\.r[0-9]+)?")
    found = {match[1] for match in map(shape.fullmatch, names) if match}
    return sorted(found - {own})
