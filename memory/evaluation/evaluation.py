"""The verbs of a measure: run cases, compare two settings by them, and propose some."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from recollect.memory.evaluation.bootstrap import Interval, mean_intervals
from recollect.memory.evaluation.cases import Case
from recollect.memory.evaluation.evaluating import Evaluating
from recollect.memory.evaluation.outcome import MEASURES, Outcome, report
from recollect.memory.evaluation.proposing import propose_cases
from recollect.memory.recall.recall import Recall
from recollect.memory.temporal.temporal import read_timezone
from recollect.memory.values.errors import ConfigurationError, InvalidRequest, Problem
from recollect.memory.values.frozen import frozen

Json = dict[str, Any]
OpenRecall = Callable[[Mapping[str, Any], Sequence[str]], AbstractAsyncContextManager[Recall]]
"""Opens the recall with changes of its configuration over the same data, ready for searches of these users."""


@frozen
class Evaluation:
    """Measures `recall`, the search that serves; `other` opens the search that it is compared with."""

    recall: Recall
    other: OpenRecall

    async def run(self, cases: Sequence[Case]) -> Json:
        """Run the cases, and return the report of the HTTP contract.

        Raises:
            IndexUnavailable, StoreUnavailable, ModelUnavailable: a search is not possible now.
        """
        return report(await Evaluating(self.recall).run(cases, now=self.recall.clock()))

    async def compare(self, cases: Sequence[Case], changes: Mapping[str, Any]) -> Json:
        """Run the cases twice: as the service searches, and with `changes` of its configuration.

        Return the report of `run` with `intervals`; `compared` is the second one, and `difference` is by measure the
        mean of the second less the first, over cases, with its interval.

        Raises:
            InvalidRequest: a change is not possible; the error says why.
            IndexUnavailable, StoreUnavailable, ModelUnavailable: a search is not possible now.
        """
        now = self.recall.clock()
        users = list(dict.fromkeys(case.user_id for case in cases))
        try:
            async with self.other(changes, users) as recall:
                second = await Evaluating(recall).run(cases, now=now)
        except ConfigurationError as error:
            raise InvalidRequest(error.message, problems=[Problem("compare", error.message)]) from error
        first = await Evaluating(self.recall).run(cases, now=now)
        return await asyncio.to_thread(_compared, first, second)

    async def propose(self, user_id: str, *, count: int) -> list[Case]:
        """Return up to `count` cases of the user's own history; see `propose_cases`."""
        zone = read_timezone(self.recall.config.timezone)
        return await propose_cases(self.recall.store, user_id, count=count, zone=zone)


def _compared(first: Sequence[Outcome], second: Sequence[Outcome]) -> Json:
    """Return both reports, and the differences of their measures, case by case."""
    columns = [_columns(first), _columns(second)]
    gained = [[b - a for a, b in zip(one, two, strict=True)] for one, two in zip(*columns, strict=True)]
    intervals = iter(mean_intervals([*columns[0], *columns[1], *gained]))
    shown = [{name: _in_percent(next(intervals)) for name in MEASURES} for _ in range(3)]
    reports = report(first), report(second)
    difference = {name: {"mean": round(reports[1][name] - reports[0][name], 2), **shown[2][name]} for name in MEASURES}
    return {
        **reports[0],
        "intervals": shown[0],
        "compared": {**reports[1], "intervals": shown[1]},
        "difference": difference,
    }


def _columns(outcomes: Sequence[Outcome]) -> list[tuple[float, ...]]:
    return list(zip(*(outcome.shares() for outcome in outcomes), strict=True))


def _in_percent(interval: Interval) -> dict[str, float]:
    return {"low": round(100 * interval.low, 2), "high": round(100 * interval.high, 2)}
