"""What both Qdrant implementations agree on: the names of vectors and payload fields, and what a point may hold."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from memory.times import from_ms
from memory.vector_index import Entry, Point, Vector

DENSE, CONTEXT, BM25 = "dense", "context", "bm25"
USER, THREAD, TURN, KIND = "metadata.user_id", "metadata.thread_id", "metadata.turn_id", "metadata.kind"
INDEXED = (USER, THREAD, TURN, KIND)

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


def cosine(score: float) -> float:
    """The engine's score as a cosine in [-1, 1]: single precision overshoots by a hair."""
    return max(-1.0, min(1.0, score))


def batches(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """The items in runs of at most `size`."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def siblings(base: str, *, names: Sequence[str], own: str) -> list[str]:
    """Those of `names` that `collection_name` gives the same base for another embedder, in order."""
    shape = re.compile(re.escape(base) + r"__[A-Za-z0-9.-]*-[0-9a-f]{8}-[0-9]+")
    return sorted(name for name in names if name != own and shape.fullmatch(name))
