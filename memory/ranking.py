"""Ranking steps as pure functions: the clock and the options are arguments, thresholds act on raw similarity."""

import math
from collections.abc import Sequence
from datetime import datetime

from memory.vector_index import Match, Vector

RECENCY_HALF_LIFE_DAYS = 30.0


def recency(created_at: datetime, now: datetime) -> float:
    """How fresh a memory is, in [0, 1]: 1 now, 0.5 after 30 days (exponential decay); the future counts as now."""
    days = max(0.0, (now - created_at).total_seconds() / 86_400)
    return 0.5 ** (days / RECENCY_HALF_LIFE_DAYS)


def above(matches: Sequence[Match], threshold: float) -> list[Match]:
    """The matches whose raw similarity reaches the threshold, in their order."""
    return [match for match in matches if match.similarity >= threshold]


def blend(similarity: float, fresh: float, weight: float) -> float:
    """The score that orders: (1 - weight) · similarity + weight · recency, all in their own ranges."""
    return (1 - weight) * similarity + weight * fresh


def mmr(relevance: Sequence[float], vectors: Sequence[Vector], *, limit: int, trade_off: float) -> list[int]:
    """Maximal marginal relevance: the places of `limit` items, chosen greedily.

    Each step takes the item with the highest λ · relevance - (1 - λ) · (its greatest cosine to those already chosen), λ
    being `trade_off` in [0, 1] (Carbonell & Goldstein, SIGIR 1998). Ties go to the earlier item.
    """
    closest = [0.0] * len(vectors)
    left, chosen = list(range(len(vectors))), list[int]()
    while left and len(chosen) < limit:
        best = max(left, key=lambda place: trade_off * relevance[place] - (1 - trade_off) * closest[place])
        left.remove(best)
        chosen.append(best)
        for place in left:
            alike = cosine(vectors[place], vectors[best])
            closest[place] = alike if len(chosen) == 1 else max(closest[place], alike)
    return chosen


def cosine(left: Vector, right: Vector) -> float:
    """The cosine of two vectors, in [-1, 1]; 0 where one of them is zero."""
    norm = math.sqrt(math.fsum(a * a for a in left) * math.fsum(b * b for b in right))
    return math.fsum(a * b for a, b in zip(left, right, strict=True)) / norm if norm else 0.0
