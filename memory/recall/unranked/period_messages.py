"""The messages of a period, for a text that asks for a time and nothing else."""

import asyncio
from collections.abc import Sequence
from datetime import datetime

from recollect.memory.background.long_texts import off_loop
from recollect.memory.ports.timeline import Timeline
from recollect.memory.recall.candidate_filter import CandidateFilter
from recollect.memory.recall.coverage.coverage import MOST_READ, SLICES, slices
from recollect.memory.recall.coverage.coverage_questions import WHOLE_PERIOD
from recollect.memory.recall.coverage.covering import covering
from recollect.memory.recall.hit import Hit, Recalled
from recollect.memory.recall.request import Request
from recollect.memory.recall.surroundings import expanded
from recollect.memory.recall.unranked.unranked_hits import merged, unranked
from recollect.memory.values.filtering.filter import Filter
from recollect.memory.values.filtering.items import message_item
from recollect.memory.values.filtering.narrow import ALL, Narrow
from recollect.memory.values.period import Period
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Message


async def period_messages(
    timeline: Timeline, request: Request, period: Period, now: datetime, *, where: Narrow = ALL
) -> Recalled:
    """Return messages of `period` in their order, in place of a search: those that cover it, or its first ones.

    `where` holds for all messages that fulfil the request's filter.
    """
    options = request.options
    is_covered = options.coverage != "off"
    most = max(request.most_read(options.top_k), MOST_READ) if is_covered else request.most_read(options.top_k)
    if is_covered:
        said = await _throughout(timeline, request.scope, period, limit=most, where=where)
    else:
        said = await timeline.during(request.scope, period, limit=most, where=where)
    contents = [message.content for message in said]
    found, dropped = await off_loop(lambda: merged(unranked(said, request, now)), contents)
    filtered = CandidateFilter([], dropped)
    is_complete = _is_complete(said, options.filter, most)
    # Where all of it is given, nothing has to be chosen.
    is_whole = options.coverage == "auto" and options.token_budget is None and len(found) <= options.top_k
    if is_covered and not is_whole:
        covered = await covering(timeline, request, filtered, found, WHOLE_PERIOD)
        return Recalled(covered, filtered.trace, is_complete)
    hits: Sequence[Hit] = found[: options.top_k]
    filtered.add("period", hits)
    hits = await expanded(timeline, request, filtered, hits)
    if options.token_budget is not None:
        hits = await filtered.fit(hits, options.token_budget, relevance=lambda _: 0.0)
    return Recalled(hits, filtered.trace, is_complete)


def _is_complete(said: Sequence[Message], asked: Filter | None, most: int) -> bool | None:
    """Tell whether a filter left no message unread: where `most` were read, all of them must fulfil it."""
    if asked is None:
        return None
    return len(said) < most or all(asked.fulfilled(message_item(message)) for message in said)


async def _throughout(timeline: Timeline, scope: Scope, period: Period, *, limit: int, where: Narrow) -> list[Message]:
    """Read up to `limit` messages of the period; where it has more, they are from all over it."""
    said = await timeline.during(scope, period, limit=limit, where=where)
    if len(said) < limit:
        return said
    parts = await asyncio.gather(
        *(timeline.during(scope, part, limit=limit // SLICES, where=where) for part in slices(period))
    )
    return [message for part in parts for message in part]
