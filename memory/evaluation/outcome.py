"""The outcome of a case: the places at which what it expects was found, and why the rest was not."""

from collections.abc import Mapping, Sequence
from typing import Any

from recollect.memory.evaluation.cases import Case
from recollect.memory.evaluation.expected_ids import Known
from recollect.memory.evaluation.measures import ndcg, percent, recall_at
from recollect.memory.recall.hit import CandidateTrace
from recollect.memory.values.frozen import frozen

AT = (5, 10, 25)
DEPTH = max(AT)
"""How many hits a case asks for, and how many of them nDCG looks at."""
FOUND_WITHIN = 10
"""An expected memory below so many hits is a miss."""
MEASURES = (*(f"R@{k}" for k in AT), "nDCG")

Figures = Mapping[str, float]


@frozen
class Miss:
    """An expected memory that is not among the first hits.

    `rank` counts from 1 where it was ranked; `stage` is the step that it reached last, or "unknown" for an id that
    names no memory of the user, "gone" for a fact that does not hold now, "filter" for what the case's filter excludes,
    "index" for a memory without a point, and "retrieval" where no channel named it.
    """

    id: str
    rank: int | None
    stage: str
    reason: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the JSON of the HTTP contract."""
        return {"id": self.id, "rank": self.rank, "stage": self.stage, "reason": self.reason}


@frozen
class Outcome:
    """The places from 0 of what the case expects, among the hits, and its misses."""

    case: Case
    places: tuple[int, ...]
    misses: tuple[Miss, ...]

    def shares(self) -> list[float]:
        """Return the case's `MEASURES`, each in [0, 1]."""
        wanted = len(self.case.expect)
        found = [recall_at(k, self.places, wanted=wanted) for k in AT]
        return [*found, ndcg(self.places, wanted=wanted, depth=DEPTH)]


def judge_case(
    case: Case, known: Mapping[str, Known], ranked: Sequence[frozenset[str]], traces: Sequence[CandidateTrace]
) -> Outcome:
    """Match what the case expects with the hits and the trace of its search.

    `ranked` are the ids that each hit stands for, best first; `known` are the expected memories that exist.
    """
    place_of = {memory: place for place, ids in reversed(list(enumerate(ranked))) for memory in ids}
    places, misses = list[int](), list[Miss]()
    below = _below(traces, len(ranked))
    for expected in case.expect:
        memory = known.get(expected)
        place = None if memory is None else place_of.get(memory.memory_id)
        if place is not None:
            places.append(place)
        if place is None or place >= FOUND_WITHIN:
            misses.append(_miss(expected, memory, place, below))
    return Outcome(case, tuple(sorted(places)), tuple(misses))


def _below(traces: Sequence[CandidateTrace], hits: int) -> dict[str, tuple[int | None, CandidateTrace]]:
    """Return the candidates that are no hits by id, with their rank where only their score kept them out."""
    found, rank = dict[str, tuple[int | None, CandidateTrace]](), hits
    for trace in traces:
        if trace.is_hit:
            continue
        if trace.stage == "rank":
            rank += 1
        found[trace.id] = (rank if trace.stage == "rank" else None, trace)
    return found


def _miss(
    expected: str, memory: Known | None, place: int | None, below: Mapping[str, tuple[int | None, CandidateTrace]]
) -> Miss:
    if memory is None:
        return Miss(expected, None, "unknown", "it is neither a message nor a fact of this user")
    if place is not None:
        return Miss(expected, place + 1, "selected")
    if memory.memory_id in below:
        rank, trace = below[memory.memory_id]
        return Miss(expected, rank, trace.stage, trace.reason)
    if memory.dropped is not None:
        return Miss(expected, None, *memory.dropped)
    if not memory.has_point:
        return Miss(expected, None, "index", "the index has no point of it; look at it with `recollect doctor`")
    return Miss(expected, None, "retrieval", "no channel named it among its candidates")


def mean_figures(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Return the means of the `MEASURES` over cases, in percent."""
    columns = zip(*(outcome.shares() for outcome in outcomes), strict=True)
    return {name: round(percent(column), 2) for name, column in zip(MEASURES, columns, strict=True)}


def report(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the JSON of the HTTP contract: the figures, and each miss with its case."""
    misses = [
        {"case": one.case.number, "user_id": one.case.user_id, "query": one.case.query, **miss.as_json()}
        for one in outcomes
        for miss in one.misses
    ]
    unknown = [
        {name: miss[name] for name in ("case", "user_id", "id")} for miss in misses if miss["stage"] == "unknown"
    ]
    return {"cases": len(outcomes), **mean_figures(outcomes), "misses": misses, "unknown": unknown}
