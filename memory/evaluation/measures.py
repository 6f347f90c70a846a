"""Measures of a ranking: recall at k, and nDCG. Pure.

A ranking is given by `places`, the places from 0 at which wanted items stand in it, and by how many are `wanted` in
all. Shares are in [0, 1].
"""

from collections.abc import Iterable, Sequence
from math import log2
from statistics import fmean


def recall_at(k: int, places: Sequence[int], *, wanted: int) -> float:
    """Return the share of the wanted items that stand among the first `k`."""
    return sum(place < k for place in places) / wanted


def ndcg(places: Sequence[int], *, wanted: int, depth: int) -> float:
    """Return the normalised discounted cumulative gain of the first `depth` (Järvelin & Kekäläinen, 2002).

    Each wanted item gains 1 / log2(place + 2); the sum is divided by that of a ranking with all of them in front.
    Items that share a place, because one hit stands for all of them, count as if they followed each other.
    """
    best = sum(1 / log2(place + 2) for place in range(min(wanted, depth)))
    gained, free = 0.0, 0
    for place in sorted(places):
        counted = max(place, free)
        gained += 1 / log2(counted + 2) if counted < depth else 0.0
        free = counted + 1
    return gained / best


def percent(shares: Iterable[float]) -> float:
    """Return the mean of shares, in percent."""
    return 100 * fmean(shares)
