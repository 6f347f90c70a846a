"""The waterfall of a search: from its candidates, step by step, to its hits. Pure."""

from collections.abc import Sequence
from itertools import groupby

from recollect.memory.recall.hit import CandidateTrace
from recollect.memory.values.frozen import frozen

STEPS = {
    "gone": "Not confirmed by the store",
    "repeat": "Said again",
    "threshold": "Not relevant enough",
    "rank": "Ranked too low",
    "mmr": "Too like another",
    "budget": "Over the token budget",
}
BESIDE = {
    "neighbour": "neighbours of hits",
    "session": "the hits' whole sessions",
    "recent": "the newest messages, for want of a hit",
    "period": "said in the time that is asked for",
    "coverage": "chosen to cover a period or a subject",
}


@frozen
class WaterfallStep:
    """One step: how many candidates it dropped, why, and how many were left."""

    name: str
    reason: str | None
    dropped: int
    left: int


@frozen
class Waterfall:
    """The steps of a search in their order. `beside` counts what was returned without being ranked, by why."""

    candidates: int
    steps: Sequence[WaterfallStep]
    beside: Sequence[tuple[str, int]]


def waterfall_of(traces: Sequence[CandidateTrace]) -> Waterfall:
    """Return the waterfall of a search; its traces name the latest step first."""
    dropped = [trace for trace in traces if not trace.is_hit]
    selected = sum(trace.stage == "selected" for trace in traces)
    left = candidates = len(dropped) + selected
    steps = list[WaterfallStep]()
    for (stage, reason), out in groupby(reversed(dropped), _step_of):
        count = sum(1 for _ in out)
        left -= count
        steps.append(WaterfallStep(STEPS.get(stage, stage), reason, count, left))
    beside = [(told, sum(trace.stage == stage for trace in traces)) for stage, told in BESIDE.items()]
    return Waterfall(candidates, steps, [(told, count) for told, count in beside if count])


def _step_of(trace: CandidateTrace) -> tuple[str, str | None]:
    """Return the step's stage and reason; the reason of a repeat names the one memory that says it again."""
    return trace.stage, None if trace.stage == "repeat" else trace.reason
