"""Chooses of a search's hits those that cover what is asked for, and packs them into the token budget."""

from collections.abc import Sequence

from recollect.memory.background.long_texts import off_loop
from recollect.memory.ports.timeline import Timeline
from recollect.memory.ports.vector_index import SparseVector
from recollect.memory.recall.candidate_filter import CandidateFilter
from recollect.memory.recall.coverage.coverage import MOST_COVERED, Coverable, best_of, cover, in_order
from recollect.memory.recall.hit import Hit
from recollect.memory.recall.query import PreparedQuery
from recollect.memory.recall.ranking import within
from recollect.memory.recall.recall_options import RecallOptions
from recollect.memory.recall.request import Request
from recollect.memory.recall.surroundings import expanded


async def covering(
    timeline: Timeline,
    request: Request,
    filtered: CandidateFilter,
    found: Sequence[Hit],
    why: str,
    query: PreparedQuery | None = None,
) -> Sequence[Hit]:
    """Choose of the hits that were `found` those that cover them, in order of time; see `coverage.cover`.

    With a `query`, they are ranked, best first, and only its subject is covered. `why` is the trace's reason. Where the
    request asks for sessions, those of the chosen hits are read from `timeline` and given with them.
    """
    options = request.options
    count = _places(options)
    if query is not None:
        if query.period is not None:
            period = query.period
            found = [hit for hit in found if within(period, hit.entry.created_at) == 1] or found
        found = [found[place] for place in best_of([hit.score for hit in found], count)]
    coverable = [Coverable(hit.entry, hit.score) for hit in found]
    places = await off_loop(lambda: cover(coverable, count), [hit.entry.content for hit in found])
    chosen = [found[place] for place in places]
    filtered.cover(sorted(chosen, key=lambda hit: in_order(hit.entry)), why)
    hits = sorted(await expanded(timeline, request, filtered, chosen), key=lambda hit: in_order(hit.entry))
    if options.token_budget is None:
        return hits
    relevance = PreparedQuery("", SparseVector((), ())).relevance if query is None else query.relevance
    first = [hit.entry.id for hit in chosen]
    return await filtered.fit(hits, options.token_budget, relevance=relevance, first=first)


def _places(options: RecallOptions) -> int:
    """Return how many hits may cover what is asked for: `top_k`, and more where a budget bounds them."""
    return options.top_k if options.token_budget is None else max(options.top_k, MOST_COVERED)
