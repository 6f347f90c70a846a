"""Gathers the candidates of a request from the index: the user's own memory, and the documents that it reaches."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from recollect.memory.ports.embedder import Embedder
from recollect.memory.ports.facts import FactFilter
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import VectorIndex, fact_point_id
from recollect.memory.recall.candidates.candidate import Candidate
from recollect.memory.recall.candidates.candidate_query import CHANNEL_LIMIT, WHOLE_DEPTH, CandidateQuery, depth_for
from recollect.memory.recall.candidates.retrieval import named_by_words, retrieve
from recollect.memory.recall.filtering import Allowed
from recollect.memory.recall.query import PreparedQuery
from recollect.memory.recall.repeats import most_repeated
from recollect.memory.recall.request import Request
from recollect.memory.values.frozen import frozen

MOST_ROUNDS = 4
"""How often candidates are retrieved again at most, because repeats took the places."""
MOST_TAGGED = 500
"""How many facts with each wanted tag are read at most, newest first."""


@frozen
class Gathering:
    """Asks the index for candidates; holds no state of its own."""

    store: Store
    index: VectorIndex
    embedder: Embedder

    async def candidates(
        self, request: Request, query: PreparedQuery, allowed: Allowed | None, now: datetime
    ) -> list[Candidate]:
        """Return the candidates that the caller does not show already, with their scores, in no order.

        `allowed` is what the request's filter lets the search find; None without one.

        Raises:
            IndexUnavailable, StoreUnavailable, ModelUnavailable: the search is not possible now.
        """
        asked, words = await self._candidate_query(request, query, allowed, now), None
        vector = request.prepared.vector if request.prepared is not None else None
        if vector is not None and not vector.done():  # what needs no vector is asked for while the embedder works
            dense, words = await asyncio.gather(vector, named_by_words(self.index, _own(asked)))
        else:
            dense = await (vector or self.embedder.embed_query(query.dense_text))
        found = await self._uncrowded(request, replace(asked, dense=dense), words)
        return [one for one in found if not request.shows(one.entry)]

    async def _uncrowded(
        self, request: Request, query: CandidateQuery, words: Mapping[str, float] | None
    ) -> list[Candidate]:
        """Retrieve candidates; where repeats take most places, retrieve again without their turns.

        Who says the same a thousand times would otherwise leave no place for anything else. `words` is what the user's
        own memory names by words, where that was asked for before.
        """
        found, known = {one.entry.id: one for one in await self._retrieved(request, query, words)}, 0
        for _ in range(MOST_ROUNDS):
            repeated = most_repeated(one.entry for one in found.values())
            if len(repeated) == known or not _is_crowded(len(repeated), len(found) - len(repeated), query):
                break
            known = len(repeated)
            turns = dict.fromkeys(entry.turn_id for entry in repeated if entry.turn_id)
            apart = replace(query, exclude_turns=[*request.shown, *turns])
            more = {one.entry.id: one for one in await self._retrieved(request, apart)}
            found = more | found
        return list(found.values())

    async def _retrieved(
        self, request: Request, query: CandidateQuery, words: Mapping[str, float] | None = None
    ) -> list[Candidate]:
        """Retrieve candidates from the user's own memory and from the documents that the request reaches."""
        own = _own(query)
        places: list[tuple[CandidateQuery, Mapping[str, float] | None]] = [(own, words)] if own.kinds else []
        if "document" in query.kinds:
            owners = request.searchable.documents.items()
            places += [(query.passages(owner, ids), None) for owner, ids in owners if ids is None or ids]
        if len(places) == 1:
            return await retrieve(self.index, *places[0])
        found = await asyncio.gather(*(retrieve(self.index, *place) for place in places))
        return [one for candidates in found for one in candidates]

    async def _candidate_query(
        self, request: Request, query: PreparedQuery, allowed: Allowed | None, now: datetime
    ) -> CandidateQuery:
        """Return the query, without its vector."""
        options, fact_points, depth = request.options, None, _depth(request)
        if options.tags:
            fact_points = await self._tagged(request, options.tags, now)
        return CandidateQuery(
            scope=request.scope,
            dense=(),
            bm25=query.bm25,
            kinds=("fact",) if options.tags else options.kinds,
            exclude_turns=request.shown,
            fact_homes=request.fact_homes,
            fact_points=fact_points,
            allowed=allowed,
            period=query.period,
            only_period=options.time == "filter",
            has_context=self.embedder.knows_meaning,
            with_vectors=options.mmr_lambda is not None,
            preferred=request.preferred if request.names_own else None,
            depth=depth,
            is_small=request.is_small,
        )

    async def _tagged(self, request: Request, tags: Sequence[str], now: datetime) -> list[str]:
        """Return the ids of the points of the facts that have one of `tags`."""
        found = dict[str, None]()
        for tag in tags:
            shown = FactFilter(now, tag=tag)
            facts = await self.store.facts.page(request.scope.user_id, shown, limit=MOST_TAGGED)
            found |= dict.fromkeys(fact_point_id(fact.user_id, fact.id) for fact in facts)
        return list(found)


def _is_crowded(repeated: int, others: int, query: CandidateQuery) -> bool:
    """Tell whether repeats take half of a channel's places, and so many that few others are left or not all are found.

    Of a text that takes half of the longest list some may not have been named, so that they would not be counted.
    """
    return 2 * repeated >= CHANNEL_LIMIT or (2 * repeated >= query.named and 3 * others < query.depth)


def _depth(request: Request) -> int:
    """Return how deep the search goes: a thread's own memory is small, and a threshold or a coverage keep late ones."""
    options = request.options
    if request.scope.thread_id is not None or options.score_threshold is not None or request.why_covered is not None:
        return WHOLE_DEPTH
    return depth_for(options.top_k)


def _own(query: CandidateQuery) -> CandidateQuery:
    """Return the query for the user's own memory."""
    return replace(query, kinds=tuple(kind for kind in query.kinds if kind != "document"))
