"""Finding: one search from its text to its hits. Each step is a pure function of another file; this is their order."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from memory.candidate import Candidate
from memory.dates import Period
from memory.documents import Documents, FactFilter
from memory.embedder import Embedder
from memory.errors import InvalidRequest, Problem
from memory.gathering import Sought, gather
from memory.hit import Hit, Recalled
from memory.interval_questions import asks_for_nothing_else
from memory.mem_config import MemoryConfig
from memory.packing import Packed, pack
from memory.query import PreparedQuery, prepare
from memory.ranking import RELEVANT, Scored, blend, is_relevant, mmr, rank, recency
from memory.recall_options import RecallOptions
from memory.reranker import Reranker
from memory.scope import Scope
from memory.shelf import NOTHING, Reach
from memory.sieve import Sieve
from memory.standing import standing
from memory.surroundings import neighbours_of, sessions_of
from memory.temporal import MOST_CHARACTERS, Found, find_interval, read_timezone
from memory.time_languages import languages_of
from memory.turn import Message
from memory.vector_index import VectorIndex, episode

MOST_NAMES = 32
"""So many speakers' names are looked for in a query."""
SMALL = 5
"""A memory of at most so many items is given whole."""
RERANKED = 3
"""How many candidates the reranker reads, as a multiple of top_k."""
MMR_CANDIDATES = 4
"""How many candidates MMR chooses from, as a multiple of top_k."""
RECENT = 5
"""How many messages `fallback_recent` gives at most."""
MOST_TAGGED = 500
"""How many facts with the wanted tags are looked through, newest first."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be found. `scope` is where; `shown` are turns that the caller has in view already.

    `for_turn`: a turn asks, of the thread `thread_id` where it has one: its own summary and the keyed and pinned facts
    are given to it in any case, so they are no hits, and the user's own facts count as well as the thread's. `reach`
    says which documents are looked into, `given` which of them the caller has in view.
    """

    scope: Scope
    text: str
    options: RecallOptions
    shown: Sequence[str] = ()
    for_turn: bool = False
    thread_id: str | None = None
    reach: Reach = NOTHING
    given: frozenset[str] = frozenset()

    @property
    def fact_homes(self) -> frozenset[str | None] | None:
        """Whose facts may be hits; see `Sought`."""
        if self.for_turn:
            return frozenset({None, self.thread_id})
        return None if self.scope.thread_id is None else frozenset({self.scope.thread_id})


@dataclass(frozen=True, slots=True)
class Finding:
    """Searches over open stores; holds no state of its own."""

    documents: Documents
    index: VectorIndex
    embedder: Embedder
    config: MemoryConfig
    reranker: Reranker | None = None

    async def find(self, request: Request, *, now: datetime) -> Recalled:
        """The hits, best first: at most `top_k`, unless sessions or, within a budget, neighbours are asked for.

        Raises:
            InvalidRequest: there is no such time zone.
            IndexUnavailable, StoreUnavailable, ModelUnavailable: nothing was found out.
        """
        options = request.options
        named = await _named_time(request.text, options, now=now)
        if options.top_k == 0 or not options.kinds:
            return Recalled()
        if named is not None and "episode" in options.kinds and asks_for_nothing_else(named.rest):
            return await self._within(request, named.period, now)
        names = await self.documents.timeline.names(request.scope.user_id, limit=MOST_NAMES)
        query = prepare(request.text, names=names, period=named.period if named is not None else None)
        candidates = await self._gathered(request, await self._sought(request, query, now))
        candidates = [one for one in candidates if not _is_in_view(one, request)]
        stood = await standing(
            self.documents,
            request.scope.user_id,
            candidates,
            now=now,
            given_apart=request.for_turn,
        )
        scored = rank(stood.candidates, query, knows_meaning=self.embedder.knows_meaning)
        sieve = Sieve(scored, stood.fallen)
        if not self._is_small(request, scored):
            self._keep_relevant(sieve, options)
        await self._order(request, sieve, now)
        hits = await self._packed(request, query, sieve, [_hit(one, now) for one in sieve.left])
        if not hits and options.fallback_recent:
            hits = await self._recent(request, sieve, now)
        return Recalled(hits, sieve.trace)

    async def _gathered(self, request: Request, sought: Sought) -> list[Candidate]:
        """The candidates of the user's own memory, and of the documents that the search reaches."""
        kinds = tuple(kind for kind in sought.kinds if kind != "document")
        places = [replace(sought, kinds=kinds)] if kinds else []
        if "document" in sought.kinds:
            reached = request.reach.documents.items()
            places += [sought.passages(owner, ids) for owner, ids in reached if ids is None or ids]
        if len(places) == 1:
            return await gather(self.index, places[0])
        found = await asyncio.gather(*(gather(self.index, place) for place in places))
        return [one for candidates in found for one in candidates]

    async def _sought(self, request: Request, query: PreparedQuery, now: datetime) -> Sought:
        options, fact_ids = request.options, None
        if options.tags:
            fact_ids = await self._tagged(request, options.tags, now)
        return Sought(
            scope=request.scope,
            dense=await self.embedder.embed_query(query.dense_text),
            bm25=query.bm25,
            kinds=("fact",) if options.tags else options.kinds,
            exclude_turns=request.shown,
            fact_homes=request.fact_homes,
            fact_ids=fact_ids,
            period=query.period,
            only_period=options.time == "filter",
            has_context=self.embedder.knows_meaning,
            with_vectors=options.mmr_lambda is not None,
        )

    async def _tagged(self, request: Request, tags: Sequence[str], now: datetime) -> list[str]:
        """The facts with one of the tags."""
        found = dict[str, None]()
        for tag in tags:
            shown = FactFilter(now, tag=tag)
            facts = await self.documents.facts.page(request.scope.user_id, shown, limit=MOST_TAGGED)
            found |= dict.fromkeys(fact.id for fact in facts)
        return list(found)

    def _keep_relevant(self, sieve: Sieve, options: RecallOptions) -> None:
        """Leave out what is below the threshold that was asked for or configured, else what is plainly irrelevant."""
        asked = self.config.score_threshold if options.score_threshold is None else options.score_threshold
        if asked is not None:
            sieve.keep(lambda one: one.similarity >= asked, "threshold", f"its similarity is below {asked}")
            return
        reason = f"its similarity is below {RELEVANT}, and it shares no word with the query"
        sieve.keep(lambda one: is_relevant(one.candidate), "threshold", reason)

    def _is_small(self, request: Request, scored: Sequence[Scored]) -> bool:
        """Whether all of the memory can be given. What the caller has in view counts: two messages a turn."""
        return request.options.score_threshold is None and len(scored) + 2 * len(request.shown) <= SMALL

    async def _order(self, request: Request, sieve: Sieve, now: datetime) -> None:
        """Leave the best `top_k`, in their final order."""
        options = request.options
        if self.reranker is not None:
            sieve.first(RERANKED * options.top_k, "rank", "not among those that the reranker reads")
            texts = [one.candidate.entry.content for one in sieve.left]
            relevance = await self.reranker.relevance(request.text, texts) if texts else []
            sieve.rescore("relevance", relevance)
        if options.recency_weight:
            weight = options.recency_weight
            fresh = [recency(one.candidate.entry.created_at, now) for one in sieve.left]
            mixed = [blend(one.score, new, weight) for one, new in zip(sieve.left, fresh, strict=True)]
            sieve.rescore("blended", mixed)
        if options.mmr_lambda is not None:
            sieve.first(MMR_CANDIDATES * options.top_k, "rank", "not among those that MMR chooses from")
            chosen = mmr(
                [one.score for one in sieve.left],
                [one.candidate.vector or () for one in sieve.left],
                limit=options.top_k,
                trade_off=options.mmr_lambda,
            )
            sieve.choose(chosen, "mmr", "too like those chosen before it")
        else:
            sieve.first(options.top_k, "rank", f"{options.top_k} others score higher")

    async def _packed(self, request: Request, query: PreparedQuery, sieve: Sieve, hits: Sequence[Hit]) -> Sequence[Hit]:
        """The hits with what belongs to them, within the budget where there is one."""
        options, timeline = request.options, self.documents.timeline
        if options.expand == "thread":
            given = {hit.entry.id for hit in hits}
            shown = set(request.shown)
            hits = [hit for hit in await sessions_of(timeline, hits) if hit.entry.turn_id not in shown]
            sieve.add("session", [hit for hit in hits if hit.entry.id not in given])
        if options.token_budget is None:
            return hits
        neighbours = {} if options.expand else await neighbours_of(timeline, hits, shown=request.shown)
        packed = pack(hits, options.token_budget, relevance=query.relevance, neighbours=neighbours)
        return _fitting(packed, options.token_budget, sieve)

    async def _recent(self, request: Request, sieve: Sieve, now: datetime) -> list[Hit]:
        """The newest few messages, newest first, in place of hits."""
        few = min(RECENT, request.options.top_k)
        latest = await self.documents.timeline.latest(request.scope, limit=few + 2 * len(request.shown))
        hits = _unranked(latest, request, now)[:few]
        sieve.add("recent", hits)
        return hits

    async def _within(self, request: Request, period: Period, now: datetime) -> Recalled:
        """The period's messages in their order, in place of a search."""
        options, sieve = request.options, Sieve([])
        most = options.top_k + 2 * len(request.shown)
        said = await self.documents.timeline.during(request.scope, period, limit=most)
        hits: Sequence[Hit] = _unranked(said, request, now)[: options.top_k]
        sieve.add("period", hits)
        if options.token_budget is not None:
            packed = pack(hits, options.token_budget, relevance=lambda _: 0.0, neighbours={})
            hits = _fitting(packed, options.token_budget, sieve)
        return Recalled(hits, sieve.trace)


async def _named_time(text: str, options: RecallOptions, *, now: datetime) -> Found | None:
    """The time that the text names. Time zones and further languages are read from files: not on the event loop."""
    if options.time == "ignore":
        return None
    if options.timezone == "UTC" and not languages_of(text[:MOST_CHARACTERS]):
        return find_interval(text, now=now, timezone=UTC)
    return await asyncio.to_thread(_in_zone, text, options.timezone, now)


def _in_zone(text: str, name: str, now: datetime) -> Found | None:
    try:
        zone = read_timezone(name)
    except ValueError as error:
        problem = Problem("timezone", "is no IANA time zone such as Europe/Berlin")
        raise InvalidRequest("The request is not valid: see timezone.", problems=[problem]) from error
    return find_interval(text, now=now, timezone=zone)


def _fitting(packed: Packed, budget: int, sieve: Sieve) -> Sequence[Hit]:
    """The hits that fit, once the sieve knows of those that do not, and of the neighbours."""
    sieve.drop(packed.left_out, "budget", f"does not fit into {budget} tokens")
    sieve.add("neighbour", [hit for hit in packed.hits if hit.entry.id in packed.neighbours])
    return packed.hits


def _is_in_view(candidate: Candidate, request: Request) -> bool:
    """Whether it is of a document that is given whole, or the summary of the thread that asks."""
    entry = candidate.entry
    if entry.origin is not None:
        return entry.origin.id in request.given
    return entry.kind == "summary" and request.thread_id is not None and entry.thread_id == request.thread_id


def _hit(one: Scored, now: datetime) -> Hit:
    entry = one.candidate.entry
    return Hit(entry, one.score, one.similarity, recency(entry.created_at, now))


def _unranked(messages: Sequence[Message], request: Request, now: datetime) -> list[Hit]:
    """Messages that no search has found, in their order: their score and similarity are 0."""
    shown = set(request.shown)
    return [
        Hit(episode(message), 0.0, 0.0, recency(message.created_at, now))
        for message in messages
        if message.turn_id not in shown
    ]
