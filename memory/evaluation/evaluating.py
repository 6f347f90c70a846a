"""Asks a memory's own search each case, and measures what it finds."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from recollect.memory.evaluation.cases import Case
from recollect.memory.evaluation.expected_ids import ExpectedIds
from recollect.memory.evaluation.outcome import DEPTH, Outcome, judge_case
from recollect.memory.recall.hit import Hit
from recollect.memory.recall.recall import Recall
from recollect.memory.recall.recall_options import KINDS
from recollect.memory.recall.turn_options import read_options
from recollect.memory.values.errors import IndexUnavailable
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope


@frozen
class Evaluating:
    """Runs cases through `recall`, one after the other, so that other searches hardly notice."""

    recall: Recall

    async def run(self, cases: Sequence[Case], *, now: datetime) -> list[Outcome]:
        """Return the outcome of each case. A case without a time of its own is asked at `now`.

        Raises:
            IndexUnavailable, StoreUnavailable, ModelUnavailable: a search is not possible now. The search by words that
                stands in for the index measures nothing.
        """
        expected = ExpectedIds(self.recall.store, self.recall.vector_search.index)
        return [await self._outcome(case, expected, now) for case in cases]

    async def _outcome(self, case: Case, expected: ExpectedIds, now: datetime) -> Outcome:
        options = replace(read_options({}, self.recall.config), top_k=DEPTH, kinds=KINDS, filter=case.filter)
        recalled = await self.recall.find(Scope(case.user_id), case.query, options, now=case.now or now)
        if recalled.is_degraded:
            raise IndexUnavailable
        known = await expected.known(case.user_id, case.expect, asked=case.filter)
        return judge_case(case, known, [_stands_for(hit) for hit in recalled.hits], list(recalled.trace()))


def _stands_for(hit: Hit) -> frozenset[str]:
    """Return the ids of the memories that a hit stands for: its own, and those that say the same."""
    return frozenset({hit.entry.memory_id, *(hit.repeats.ids if hit.repeats is not None else ())})
