"""A search by words through the newest items of the store, for while the index is down."""

from collections.abc import Sequence
from datetime import datetime

from recollect.memory.background.long_texts import off_loop
from recollect.memory.ports.store import Store
from recollect.memory.recall.candidate_filter import CandidateFilter
from recollect.memory.recall.coverage.covering import covering
from recollect.memory.recall.hit import CandidateTrace, Hit, Recalled
from recollect.memory.recall.query import PreparedQuery
from recollect.memory.recall.ranking import recency, within
from recollect.memory.recall.request import Request
from recollect.memory.recall.unranked.newest import newest_entries
from recollect.memory.recall.unranked.unranked_hits import merged, newest_hits

LOOKED_THROUGH = 2_000
"""How many of the newest items a search looks through."""


async def search_by_words(store: Store, request: Request, query: PreparedQuery, now: datetime) -> Recalled:
    """Return the newest items that have words of the query: those with the most first, or those that cover the subject.

    Raises:
        StoreUnavailable: the store cannot be reached.
    """
    options = request.options
    entries = await newest_entries(store, request, now, limit=LOOKED_THROUGH, is_index_down=True)
    looked_through = entries
    if query.period is not None and options.time == "filter":
        period = query.period
        looked_through = [entry for entry in entries if within(period, entry.created_at) == 1]

    def ranked() -> tuple[list[Hit], list[CandidateTrace]]:
        found = [
            Hit(entry, query.relevance(entry.content), 0.0, recency(entry.created_at, now)) for entry in looked_through
        ]
        hits, dropped = merged([hit for hit in found if hit.score > 0])
        return sorted(hits, key=lambda hit: (-hit.score, -hit.recency)), dropped

    contents = [entry.content for entry in entries]
    found, dropped = await off_loop(ranked, contents)
    filtered, why = CandidateFilter([], dropped), request.why_covered
    is_complete = None if options.filter is None else False
    if found and why is not None:
        covered = await covering(store.timeline, request, filtered, found, why, query)
        return Recalled(covered, filtered.trace, is_complete, is_degraded=True)
    hits: Sequence[Hit] = found[: options.top_k]
    if not hits and options.fallback_recent:
        hits = await off_loop(lambda: newest_hits(entries, options, now), contents)
    filtered.add("recent", hits)
    if options.token_budget is not None:
        hits = await filtered.fit(hits, options.token_budget, relevance=query.relevance)
    return Recalled(hits, filtered.trace, is_complete, is_degraded=True)
