"""Measures of found evidence: recall at k, and within a budget of tokens. Pure."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import median, quantiles
from typing import Any

from benchmarks.locomo import CATEGORIES
from recollect.memory.evaluation.measures import percent, recall_at
from recollect.memory.recall.hit import Hit
from recollect.memory.recall.packing import cost

AT = (5, 10, 25, 50)
BUDGET = 1_000
"""The budget in tokens."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of the search for one question.

    `evidence` is the number of messages that answer it, `places` their places among the hits, from 0; `tokens` is the
    cost of the hits up to each of them, itself included.
    """

    talk: str
    category: str
    evidence: int
    places: Sequence[int]
    tokens: Sequence[int]
    milliseconds: float = 0.0

    def at(self, k: int) -> float:
        """Return the share of all evidence among the first `k` hits, in [0, 1]."""
        return recall_at(k, self.places, wanted=self.evidence)

    def within(self, budget: int) -> float:
        """Return the share of all evidence among the hits, in order, that fit into `budget` tokens, in [0, 1]."""
        return self.at(bisect_right(self.tokens, budget))


def outcome(hits: Sequence[Hit], evidence: Sequence[str], *, talk: str, category: str, milliseconds: float) -> Outcome:
    """Match hits to evidence by `message_id`; a hit costs ceil(characters / 4) of `[date] speaker: text`."""
    wanted = set(evidence)
    places = [place for place, hit in enumerate(hits) if hit.entry.message_id in wanted]
    tokens = list(accumulate(cost(hit.entry) for hit in hits))
    return Outcome(talk, category, len(evidence), places, tokens, milliseconds)


@dataclass(frozen=True, slots=True)
class Figures:
    """Averages over questions, in percent; times in milliseconds. `by_category` is recall at 10."""

    at: dict[int, float]
    within: float
    by_category: dict[str, float]
    p50: float
    p95: float

    def as_json(self) -> dict[str, Any]:
        """Return the figures for the JSON file."""
        return {
            **{f"R@{k}": round(value, 2) for k, value in self.at.items()},
            f"R in {BUDGET} tokens": round(self.within, 2),
            "R@10 by category": {name: round(value, 2) for name, value in self.by_category.items()},
            "search ms": {"p50": round(self.p50, 2), "p95": round(self.p95, 2)},
        }


def figures(outcomes: Sequence[Outcome]) -> Figures:
    """Average the outcomes."""
    times = [one.milliseconds for one in outcomes]
    names = [name for name in CATEGORIES.values() if any(one.category == name for one in outcomes)]
    return Figures(
        at={k: _percent(outcomes, lambda one, k=k: one.at(k)) for k in AT},
        within=_percent(outcomes, lambda one: one.within(BUDGET)),
        by_category={
            name: _percent([one for one in outcomes if one.category == name], lambda one: one.at(10)) for name in names
        },
        p50=median(times),
        p95=quantiles(times, n=20)[-1] if len(times) > 1 else times[0],
    )


def curve(outcomes: Sequence[Outcome], budgets: Sequence[int]) -> list[float]:
    """Return recall within each budget of tokens, in percent."""
    return [_percent(outcomes, lambda one, budget=budget: one.within(budget)) for budget in budgets]


def _percent(outcomes: Sequence[Outcome], share: Callable[[Outcome], float]) -> float:
    return percent(map(share, outcomes))
