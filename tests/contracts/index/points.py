from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid4

import numpy as np

from recollect.memory.ports.vector_index import Entry, Point, Vector
from recollect.memory.values.turn import derived_id

MODEL, DIMENSION = "test/model-é", 8
WHEN = datetime(2026, 3, 4, 5, 6, 7, 891_000, tzinfo=UTC)


def vector(seed: int, dimension: int = DIMENSION) -> list[float]:
    return np.random.default_rng(seed).standard_normal(dimension).tolist()


def cosine(left: Vector, right: Vector) -> float:
    a, b = np.asarray(left), np.asarray(right)
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def entry(user_id: str = "ada", thread_id: str | None = "t1", turn_id: str | None = None, **changes: Any) -> Entry:
    turn_id = turn_id or str(uuid4())
    said: dict[str, Any] = {
        "id": derived_id(user_id, turn_id, "user"),
        "kind": "episode",
        "content": f"said in {turn_id}",
        "created_at": WHEN,
        "role": "user",
    }
    return Entry(user_id=user_id, thread_id=thread_id, turn_id=turn_id, **{**said, **changes})


def point(
    seed: int, user_id: str = "ada", thread_id: str | None = "t1", turn_id: str | None = None, **changes: Any
) -> Point:
    return Point(entry(user_id, thread_id, turn_id, **changes), dense=vector(seed))


def ids_of(points: Sequence[Point]) -> set[str]:
    return {item.entry.id for item in points}


def ordered(ids: Sequence[str]) -> bool:
    numbers = [UUID(item).int for item in ids]
    return all(left < right for left, right in pairwise(numbers))
