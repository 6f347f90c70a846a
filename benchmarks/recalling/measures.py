"""Measures of found evidence: recall at k, and within a budget of tokens. Pure."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import median, quantiles
from typing import Any

from benchmarks.recalling.locomo import CATEGORIES
from recollect.memory.evaluation.measures import percent, recall_at
from recollect.memory.recall.hit import Hit
from recollect.memory.recall.packing import cost

AT = (5, 10, 25, 50)
SESSIONS_AT = (5, 10)
BUDGET = 1_000
"""The budget in tokens."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of the search for one question.

    `evidence` is the number of messages that answer it, `places` their places among the hits, from 0; `tokens` is the
    cost of the hits up to each of them, itself included. `gold` is the number of sessions that hold evidence,
    `sessions` their places among the sessions of the hits, each session at its first hit.
    """

    talk: str
    category: str
    evidence: int
    places: Sequence[int]
    tokens: Sequence[int]
    milliseconds: float = 0.0
    sessions: Sequence[int] = ()
    gold: int = 0

    def at(self, k: int) -> float:
        """Return the share of all evidence among the first `k` hits, in [0, 1]."""
        return recall_at(k, self.places, wanted=self.evidence)

    def any_session(self, k: int) -> float:
        """Return 1 if one of the gold sessions is among the first `k` sessions of the hits, else 0."""
        return float(any(place < k for place in self.sessions))

    def all_sessions(self, k: int) -> float:
        """Return 1 if all gold sessions are among the first `k` sessions of the hits, else 0."""
        return float(sum(place < k for place in self.sessions) == self.gold)

    def within(self, budget: int) -> float:
        """Return the share of all evidence among the hits, in order, that fit into `budget` tokens, in [0, 1]."""
        return self.at(bisect_right(self.tokens, budget))


def outcome(hits: Sequence[Hit], evidence: Sequence[str], *, talk: str, category: str, milliseconds: float) -> Outcome:
    """Match hits to evidence by `message_id`; a hit costs ceil(characters / 4) of `[date] speaker: text`.

    Evidence is named like "conv-26/D1:3": what is before its last colon is its session.
    """
    wanted = set(evidence)
    places = [place for place, hit in enumerate(hits) if hit.entry.message_id in wanted]
    tokens = list(accumulate(cost(hit.entry) for hit in hits))
    gold = set(map(_session, evidence))
    sessions = dict.fromkeys(_session(hit.entry.message_id or "") for hit in hits)
    found = [place for place, session in enumerate(sessions) if session in gold]
    return Outcome(talk, category, len(evidence), places, tokens, milliseconds, found, len(gold))


def _session(message_id: str) -> str:
    return message_id.rpartition(":")[0]


@dataclass(frozen=True, slots=True)
class Figures:
    """Averages over questions, in percent; times in milliseconds. `by_category` is recall at 10."""

    at: dict[int, float]
    within: float
    by_category: dict[str, float]
    p50: float
    p95: float
    any_session: dict[int, float]
    all_sessions: dict[int, float]

    def as_json(self) -> dict[str, Any]:
        """Return the figures for the JSON file."""
        return {
            **{f"R@{k}": round(value, 2) for k, value in self.at.items()},
            f"R in {BUDGET} tokens": round(self.within, 2),
            "R@10 by category": {name: round(value, 2) for name, value in self.by_category.items()},
            **{f"any session in {k}": round(value, 2) for k, value in self.any_session.items()},
            **{f"all sessions in {k}": round(value, 2) for k, value in self.all_sessions.items()},
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
        any_session={k: _percent(outcomes, lambda one, k=k: one.any_session(k)) for k in SESSIONS_AT},
        all_sessions={k: _percent(outcomes, lambda one, k=k: one.all_sessions(k)) for k in SESSIONS_AT},
    )


def curve(outcomes: Sequence[Outcome], budgets: Sequence[int]) -> list[float]:
    """Return recall within each budget of tokens, in percent."""
    return [_percent(outcomes, lambda one, budget=budget: one.within(budget)) for budget in budgets]


def _percent(outcomes: Sequence[Outcome], share: Callable[[Outcome], float]) -> float:
    return percent(map(share, outcomes))
