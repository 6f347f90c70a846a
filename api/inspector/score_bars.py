"""Bars for the parts of scores: what a page draws of a candidate."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from recollect.memory.values.frozen import frozen

CHANNELS = ("dense", "context", "bm25", "fact")
"""The channels' raw scores; all other parts add up to a score, or replace it."""
LABELS: Mapping[str, str] = {
    "dense": "meaning",
    "context": "meaning in context",
    "bm25": "words",
    "fact": "nearest fact",
    "fused": "all channels",
    "thread": "its thread",
    "time": "names a time",
    "date": "said then",
    "user": "by the user",
    "speaker": "by that person",
    "question": "is a question",
    "length": "its length",
    "answer": "answers a question",
    "relevance": "reranker",
    "blended": "with recency",
}


@frozen
class Bar:
    """One bar: `most` is the value of a full one."""

    label: str
    value: float
    most: float


def bars_of(scores: Mapping[str, Any] | None, most: Mapping[str, float]) -> Sequence[Bar]:
    """Return a bar for each part; `most` (see `most_of`) makes the bars of several candidates comparable."""
    return [Bar(LABELS.get(name, name), value, most.get(name, 1.0)) for name, value in _numbers(scores)]


def most_of(all_scores: Iterable[Mapping[str, Any] | None]) -> dict[str, float]:
    """Return the value of a full bar by name: a channel's greatest, and one for all parts that add up to a score."""
    most, most_part = dict[str, float](), 0.0
    for scores in all_scores:
        for name, value in _numbers(scores):
            most[name] = max(most.get(name, 0.0), value)
            if name not in CHANNELS:
                most_part = max(most_part, value)
    cosines = {name: max(most[name], 1.0) for name in CHANNELS if name in most and name != "bm25"}
    return dict.fromkeys(most, most_part) | {name: most[name] for name in CHANNELS if name in most} | cosines


def _numbers(scores: Mapping[str, Any] | None) -> list[tuple[str, float]]:
    """Return the parts that are numbers: an import may hold anything."""
    found = (scores or {}).items()
    return [(name, float(value)) for name, value in found if isinstance(value, int | float) and math.isfinite(value)]
