"""Intervals of means by the bootstrap (Efron, 1979): cases are drawn again, with replacement. Pure."""

import random
from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

DRAWS = 1_000
SURE = 0.95
"""The share of draws that lie within an interval."""
_SEED = 17


class Interval(NamedTuple):
    """Bounds of a mean, in the unit of its values."""

    low: float
    high: float


def mean_intervals(columns: Sequence[Sequence[float]]) -> list[Interval]:
    """Return the interval of the mean of each column; all have one value a case, and share the draws.

    The draws are the same at each call, so that equal values give equal intervals.
    """
    count = len(columns[0]) if columns else 0
    if count == 0:
        return [Interval(0.0, 0.0) for _ in columns]
    drawing = random.Random(_SEED)
    means: list[list[float]] = [[] for _ in columns]
    for _ in range(DRAWS):
        drawn = drawing.choices(range(count), k=count)
        for column, found in zip(columns, means, strict=True):
            found.append(fmean(map(column.__getitem__, drawn)))
    return [_middle(sorted(found)) for found in means]


def _middle(means: Sequence[float]) -> Interval:
    outside = round(len(means) * (1 - SURE) / 2)
    return Interval(means[outside], means[-1 - outside])
