"""Runs one search from its text to its hits. The steps are pure functions of other files; this is their order."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from recollect.memory.background.long_texts import off_loop
from recollect.memory.background.scanning import MOST_CHECKED
from recollect.memory.ports.embedder import Embedder
from recollect.memory.ports.facts import FactFilter
from recollect.memory.ports.reranker import Reranker
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import Entry, SparseVector, VectorIndex, episode, fact_point_id
from recollect.memory.recall.attachments import NOTHING, SearchableDocuments
from recollect.memory.recall.candidate import Candidate
from recollect.memory.recall.candidate_filter import CandidateFilter
from recollect.memory.recall.coverage import (
    MOST_COVERED,
    MOST_READ,
    SLICES,
    Coverable,
    best_of,
    cover,
    in_order,
    slices,
)
from recollect.memory.recall.coverage_questions import WANTED, WHOLE_PERIOD, why_covered
from recollect.memory.recall.filtering import Allowed, allowed_points
from recollect.memory.recall.hit import Hit, Recalled
from recollect.memory.recall.newest import newest_facts, newest_first, newest_messages, unindexed_messages
from recollect.memory.recall.packing import Packed, pack
from recollect.memory.recall.query import PreparedQuery, prepare
from recollect.memory.recall.ranking import RELEVANT, Scored, blend, is_relevant, mmr, rank, recency, within
from recollect.memory.recall.recall_options import RecallOptions
from recollect.memory.recall.repeats import Repeats, equal, most_repeated
from recollect.memory.recall.retrieval import CHANNEL_LIMIT, CandidateQuery, retrieve
from recollect.memory.recall.surroundings import neighbours_of, sessions_of
from recollect.memory.recall.verification import verify
from recollect.memory.temporal.interval_questions import asks_for_nothing_else
from recollect.memory.temporal.temporal import MOST_CHARACTERS, Found, find_interval, read_timezone
from recollect.memory.temporal.time_languages import languages_of
from recollect.memory.values.errors import IndexUnavailable, InvalidRequest, Problem
from recollect.memory.values.filter_items import message_item
from recollect.memory.values.mem_config import MemoryConfig
from recollect.memory.values.period import Period
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Message

logger = logging.getLogger(__name__)

MOST_NAMES = 32
"""How many speakers' names are looked for in a query at most."""
SMALL = 5
"""A memory of at most this many items is returned whole."""
RERANKED = 3
"""How many candidates the reranker reads, as a multiple of top_k."""
MMR_CANDIDATES = 4
"""How many candidates MMR chooses from, as a multiple of top_k."""
MOST_ROUNDS = 4
"""How often candidates are retrieved again at most, because repeats took the places."""
RECENT = 5
"""How many memories `fallback_recent` returns at most."""
LOOKED_THROUGH = 2_000
"""How many of the newest items a search looks through while the index is down."""
MOST_TAGGED = 500
"""How many facts with each wanted tag are read at most, newest first."""


@dataclass(frozen=True, slots=True)
class Request:
    """A search for `text` in `scope`. `shown` are the ids of turns that the caller shows already.

    `for_turn`: a turn asks, of the thread `thread_id` where it has one. It gets the thread's summary and the keyed and
    pinned facts in any case, so they are no hits; the user's own facts count as well as the thread's. `preferred` is
    the thread whose hits go before those of the user's other threads, unless these score more by `scope_margin`:
    `scope` is the user's then. `searchable` are the documents to search, `given` the ids of those that the caller shows
    already.
    """

    scope: Scope
    text: str
    options: RecallOptions
    shown: Sequence[str] = ()
    for_turn: bool = False
    thread_id: str | None = None
    preferred: str | None = None
    searchable: SearchableDocuments = NOTHING
    given: frozenset[str] = frozenset()

    @property
    def fact_homes(self) -> frozenset[str | None] | None:
        """Return the homes of the facts that may be hits; see `CandidateQuery`."""
        if self.for_turn:
            return frozenset({None, self.thread_id})
        return None if self.scope.thread_id is None else frozenset({self.scope.thread_id})


@dataclass(frozen=True, slots=True)
class Search:
    """Searches open stores; holds no state of its own."""

    store: Store
    index: VectorIndex
    embedder: Embedder
    config: MemoryConfig
    reranker: Reranker | None = None

    async def find(self, request: Request, *, now: datetime) -> Recalled:
        """Return the hits, best first: at most `top_k`, and sessions or (within a budget) neighbours beside them.

        Raises:
            InvalidRequest: the options' time zone does not exist.
            IndexUnavailable, StoreUnavailable, ModelUnavailable: the search is not possible now.
        """
        options = request.options
        named = await _named_time(request.text, options, now=now)
        if options.top_k == 0 or not options.kinds:
            return Recalled()
        if named is not None and "episode" in options.kinds and asks_for_nothing_else(named.rest):
            return await self._within(request, named.period, now)
        why = _why_covered(request)
        allowed = await self._allowed(request)
        names = await self.store.timeline.names(request.scope.user_id, limit=MOST_NAMES)
        period = named.period if named is not None else None
        query = await off_loop(lambda: prepare(request.text, names=names, period=period), [request.text])
        asked = await self._candidate_query(request, query, allowed, now)
        try:
            candidates = await self._uncrowded(request, asked)
        except IndexUnavailable:
            if request.for_turn:
                raise  # a turn goes on without its search
            return await self._by_words(request, query, now)
        candidates = [one for one in candidates if not _is_in_view(one, request)]
        # Verified before the ranking: a dropped candidate must not set the scale on which the others are scored.
        verification = await verify(
            self.store,
            request.scope.user_id,
            candidates,
            now=now,
            given_apart=request.for_turn,
        )
        scored = rank(verification.candidates, query, knows_meaning=self.embedder.knows_meaning)
        filtered = CandidateFilter(scored, verification.dropped)
        filtered.merge()
        if not self._is_small(request, filtered.left):
            self._keep_relevant(filtered, options)
        if why is None:
            await self._order(request, filtered, now)
            hits = await self._packed(request, query, filtered, [_hit(one, now) for one in filtered.left])
        else:
            hits = await self._covered(request, filtered, [_hit(one, now) for one in filtered.left], why, query)
        if not hits and options.fallback_recent:
            hits = await self._recent(request, filtered, now)
        logger.debug(
            "searched",
            extra={"action": "searched", "user_id": request.scope.user_id, "thread_id": request.scope.thread_id}
            | {"candidates": len(candidates), "hits": len(hits)},
        )
        is_complete = None if allowed is None else allowed.is_complete and request.searchable.is_complete
        return Recalled(hits, filtered.trace, is_complete)

    async def _allowed(self, request: Request) -> Allowed | None:
        """Return what the request's filter lets the search find; None without one."""
        asked = request.options.filter
        if asked is None:
            return None
        return await allowed_points(self.store, request.scope, request.options.kinds, asked)

    async def _uncrowded(self, request: Request, query: CandidateQuery) -> list[Candidate]:
        """Retrieve candidates; where repeats take most places, retrieve again without their turns.

        Who says the same a thousand times would otherwise leave no place for anything else.
        """
        found = {one.entry.id: one for one in await self._retrieved(request, query)}
        for _ in range(MOST_ROUNDS):
            repeated = most_repeated(one.entry for one in found.values())
            turns = dict.fromkeys(entry.turn_id for entry in repeated if entry.turn_id)
            if 2 * len(repeated) < CHANNEL_LIMIT:
                break
            apart = replace(query, exclude_turns=[*request.shown, *turns])
            more = [one for one in await self._retrieved(request, apart) if one.entry.id not in found]
            if not more:
                break
            found |= {one.entry.id: one for one in more}
        return list(found.values())

    async def _retrieved(self, request: Request, query: CandidateQuery) -> list[Candidate]:
        """Retrieve candidates from the user's own memory and from the documents that the request reaches."""
        kinds = tuple(kind for kind in query.kinds if kind != "document")
        places = [replace(query, kinds=kinds)] if kinds else []
        if "document" in query.kinds:
            owners = request.searchable.documents.items()
            places += [query.passages(owner, ids) for owner, ids in owners if ids is None or ids]
        if len(places) == 1:
            return await retrieve(self.index, places[0])
        found = await asyncio.gather(*(retrieve(self.index, place) for place in places))
        return [one for candidates in found for one in candidates]

    async def _candidate_query(
        self, request: Request, query: PreparedQuery, allowed: Allowed | None, now: datetime
    ) -> CandidateQuery:
        options, fact_points = request.options, None
        if options.tags:
            fact_points = await self._tagged(request, options.tags, now)
        return CandidateQuery(
            scope=request.scope,
            dense=await self.embedder.embed_query(query.dense_text),
            bm25=query.bm25,
            kinds=("fact",) if options.tags else options.kinds,
            exclude_turns=request.shown,
            fact_homes=request.fact_homes,
            fact_points=fact_points,
            allowed=None if allowed is None else allowed.points,
            period=query.period,
            only_period=options.time == "filter",
            has_context=self.embedder.knows_meaning,
            with_vectors=options.mmr_lambda is not None,
            preferred=request.preferred,
        )

    async def _tagged(self, request: Request, tags: Sequence[str], now: datetime) -> list[str]:
        """Return the ids of the points of the facts that have one of `tags`."""
        found = dict[str, None]()
        for tag in tags:
            shown = FactFilter(now, tag=tag)
            facts = await self.store.facts.page(request.scope.user_id, shown, limit=MOST_TAGGED)
            found |= dict.fromkeys(fact_point_id(fact.user_id, fact.id) for fact in facts)
        return list(found)

    def _keep_relevant(self, filtered: CandidateFilter, options: RecallOptions) -> None:
        """Drop what is below the threshold; without one, what is plainly irrelevant."""
        asked = options.score_threshold
        if asked is not None:
            filtered.keep(lambda one: one.similarity >= asked, "threshold", f"its similarity is below {asked}")
            return
        reason = f"its similarity is below {RELEVANT}, and it shares no word with the query"
        filtered.keep(lambda one: is_relevant(one.candidate), "threshold", reason)

    def _is_small(self, request: Request, scored: Sequence[Scored]) -> bool:
        """Tell whether the memory is small enough to be returned whole; what the caller shows does not count."""
        return request.options.score_threshold is None and len(scored) <= SMALL

    async def _order(self, request: Request, filtered: CandidateFilter, now: datetime) -> None:
        """Rerank, blend with recency and diversify where asked for, then keep the best `top_k` in their final order."""
        options = request.options
        if self.reranker is not None:
            filtered.first(RERANKED * options.top_k, "rank", "not among those that the reranker reads")
            texts = [one.candidate.entry.content for one in filtered.left]
            relevance = await self.reranker.relevance(request.text, texts) if texts else []
            filtered.rescore("relevance", relevance)
        if options.recency_weight:
            weight = options.recency_weight
            fresh = [recency(one.candidate.entry.created_at, now) for one in filtered.left]
            mixed = [blend(one.score, new, weight) for one, new in zip(filtered.left, fresh, strict=True)]
            filtered.rescore("blended", mixed)
        if request.preferred is not None:
            filtered.shift("scope", _behind(filtered.left, request.preferred, self.config.scope_margin))
        if options.mmr_lambda is not None:
            filtered.first(MMR_CANDIDATES * options.top_k, "rank", "not among those that MMR chooses from")
            chosen = mmr(
                [one.score for one in filtered.left],
                [one.candidate.vector or () for one in filtered.left],
                limit=options.top_k,
                trade_off=options.mmr_lambda,
            )
            filtered.choose(chosen, "mmr", "too like those chosen before it")
        else:
            filtered.first(options.top_k, "rank", f"{options.top_k} others score higher")

    async def _packed(
        self, request: Request, query: PreparedQuery, filtered: CandidateFilter, hits: Sequence[Hit]
    ) -> Sequence[Hit]:
        """Add sessions or neighbours to the hits, and pack them into the token budget where there is one."""
        options, timeline = request.options, self.store.timeline
        if options.expand == "thread":
            given = {hit.entry.id for hit in hits}
            shown = set(request.shown)
            found = await sessions_of(timeline, hits, asked=options.filter)
            hits = [hit for hit in found if hit.entry.turn_id not in shown]
            filtered.add("session", [hit for hit in hits if hit.entry.id not in given])
        if options.token_budget is None:
            return hits
        neighbours = (
            {} if options.expand else await neighbours_of(timeline, hits, shown=request.shown, asked=options.filter)
        )
        budget = options.token_budget
        contents = [hit.entry.content for hit in hits]
        packed = await off_loop(lambda: pack(hits, budget, relevance=query.relevance, neighbours=neighbours), contents)
        return _fitting(packed, budget, filtered)

    async def _recent(self, request: Request, filtered: CandidateFilter, now: datetime) -> list[Hit]:
        """Return the newest few memories, newest first, in place of hits."""
        few = min(RECENT, request.options.top_k)
        entries = await self._newest(request, now, limit=_most_read(request, few))
        hits = [Hit(entry, 0.0, 0.0, recency(entry.created_at, now)) for entry in entries[:few]]
        filtered.add("recent", hits)
        return hits

    async def _newest(self, request: Request, now: datetime, *, limit: int, is_down: bool = False) -> list[Entry]:
        """Return the newest messages and facts, newest first; `is_down`: those that wait for the index, too."""
        options, scope = request.options, request.scope
        messages = list[Message]()
        if "episode" in options.kinds and not options.tags:
            messages = await newest_messages(self.store, scope, limit=limit, asked=options.filter)
            if is_down:
                messages += await unindexed_messages(self.store, scope, asked=options.filter)
        facts = list[Entry]()
        if "fact" in options.kinds:
            facts = await newest_facts(
                self.store,
                Scope(scope.user_id, request.thread_id or scope.thread_id),
                options,
                now=now,
                homes=request.fact_homes,
                given_apart=request.for_turn,
            )
        shown = set(request.shown)
        messages = [message for message in messages if message.turn_id not in shown]
        return newest_first(messages, facts, options.kinds)[:limit]

    async def _by_words(self, request: Request, query: PreparedQuery, now: datetime) -> Recalled:
        """Search the newest items of the store by words, because the index is down."""
        options = request.options
        entries = await self._newest(request, now, limit=LOOKED_THROUGH, is_down=True)
        if query.period is not None and options.time == "filter":
            period = query.period
            entries = [entry for entry in entries if within(period, entry.created_at) == 1]

        def ranked() -> list[Hit]:
            found = [
                Hit(entry, query.relevance(entry.content), 0.0, recency(entry.created_at, now)) for entry in entries
            ]
            return sorted(_once([hit for hit in found if hit.score > 0]), key=lambda hit: (-hit.score, -hit.recency))

        hits: Sequence[Hit] = (await off_loop(ranked, [entry.content for entry in entries]))[: options.top_k]
        filtered = CandidateFilter([])
        filtered.add("recent", hits)
        if options.token_budget is not None:
            packed = pack(hits, options.token_budget, relevance=query.relevance, neighbours={})
            hits = _fitting(packed, options.token_budget, filtered)
        return Recalled(hits, filtered.trace, None if options.filter is None else False, is_degraded=True)

    async def _covered(
        self,
        request: Request,
        filtered: CandidateFilter,
        found: Sequence[Hit],
        why: str,
        query: PreparedQuery | None = None,
    ) -> Sequence[Hit]:
        """Choose of the hits that were `found` those that cover them, in order of time; see `coverage.cover`.

        With a `query`, they are ranked, best first, and only its subject is covered.
        """
        options, count = request.options, _places(request.options)
        if query is not None:
            if query.period is not None:
                period = query.period
                found = [hit for hit in found if within(period, hit.entry.created_at) == 1] or found
            found = [found[place] for place in best_of([hit.score for hit in found], count)]
        coverable = [Coverable(hit.entry, hit.score) for hit in found]
        places = await off_loop(lambda: cover(coverable, count), [hit.entry.content for hit in found])
        chosen = [found[place] for place in places]
        hits: Sequence[Hit] = sorted(chosen, key=lambda hit: in_order(hit.entry))
        filtered.cover(hits, why)
        if options.token_budget is None:
            return hits
        budget, first = options.token_budget, [hit.entry.id for hit in chosen]
        contents = [hit.entry.content for hit in hits]
        relevance = PreparedQuery("", SparseVector((), ())).relevance if query is None else query.relevance
        packed = await off_loop(lambda: pack(hits, budget, relevance=relevance, neighbours={}, first=first), contents)
        return _fitting(packed, budget, filtered)

    async def _throughout(self, scope: Scope, period: Period, *, limit: int) -> list[Message]:
        """Read up to `limit` messages of the period; where it has more, they are from all over it."""
        timeline = self.store.timeline
        said = await timeline.during(scope, period, limit=limit)
        if len(said) < limit:
            return said
        parts = await asyncio.gather(*(timeline.during(scope, part, limit=limit // SLICES) for part in slices(period)))
        return [message for part in parts for message in part]

    async def _within(self, request: Request, period: Period, now: datetime) -> Recalled:
        """Return messages of `period` in their order, in place of a search: those that cover it, or its first ones."""
        options, filtered = request.options, CandidateFilter([])
        is_covered = options.coverage != "off"
        most = max(_most_read(request, options.top_k), MOST_READ) if is_covered else _most_read(request, options.top_k)
        read = self._throughout if is_covered else self.store.timeline.during
        said = await read(request.scope, period, limit=most)
        found = await off_loop(lambda: _once(_unranked(said, request, now)), [message.content for message in said])
        # Where all of it is given, nothing has to be chosen.
        is_whole = options.coverage == "auto" and options.token_budget is None and len(found) <= options.top_k
        if is_covered and not is_whole:
            hits = await self._covered(request, filtered, found, WHOLE_PERIOD)
            return Recalled(hits, filtered.trace, None if options.filter is None else len(said) < most)
        hits: Sequence[Hit] = found[: options.top_k]
        filtered.add("period", hits)
        if options.token_budget is not None:
            packed = pack(hits, options.token_budget, relevance=lambda _: 0.0, neighbours={})
            hits = _fitting(packed, options.token_budget, filtered)
        return Recalled(hits, filtered.trace, None if options.filter is None else len(said) < most)


async def _named_time(text: str, options: RecallOptions, *, now: datetime) -> Found | None:
    """Find the time that `text` names.

    Time zones, and languages other than English and German, are read from files: that runs in a thread.
    """
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


def _fitting(packed: Packed, budget: int, filtered: CandidateFilter) -> Sequence[Hit]:
    """Return the hits that fit, and record the dropped ones and the neighbours in `filtered`."""
    filtered.drop(packed.left_out, "budget", f"does not fit into {budget} tokens")
    filtered.add("neighbour", [hit for hit in packed.hits if hit.entry.id in packed.neighbours])
    return packed.hits


def _is_in_view(candidate: Candidate, request: Request) -> bool:
    """Tell whether the caller shows the candidate: a document given whole, or the summary of the asking thread."""
    entry = candidate.entry
    if entry.origin is not None:
        return entry.origin.id in request.given
    return entry.kind == "summary" and request.thread_id is not None and entry.thread_id == request.thread_id


def _behind(scored: Sequence[Scored], thread_id: str, margin: float) -> list[float]:
    """Return for each candidate what puts it behind those of the thread: -`margin` if it is of other threads alone.

    Where the thread has none, nothing is put behind.
    """
    threads = [{one.candidate.entry.thread_id, *(older.thread_id for older in one.older)} for one in scored]
    is_any = any(thread_id in named for named in threads)
    return [-margin if is_any and named.isdisjoint((None, thread_id)) else 0.0 for named in threads]


def _hit(one: Scored, now: datetime) -> Hit:
    entry = one.candidate.entry
    repeats = Repeats.of([entry, *one.older])
    return Hit(entry, one.score, one.similarity, recency(entry.created_at, now), repeats=repeats)


def _unranked(messages: Sequence[Message], request: Request, now: datetime) -> list[Hit]:
    """Make hits of messages that no search has ranked, in their order, with score and similarity 0."""
    shown, asked = set(request.shown), request.options.filter
    return [
        Hit(episode(message), 0.0, 0.0, recency(message.created_at, now))
        for message in messages
        if message.turn_id not in shown and (asked is None or asked.fulfilled(message_item(message)))
    ]


def _once(hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits, which are in order of time, with equal ones merged into the newest of them."""
    merged = list[Hit]()
    for places in equal([hit.entry for hit in hits]):
        newest = hits[places[0]]
        merged.append(replace(newest, repeats=Repeats.of([hits[place].entry for place in places])))
    return sorted(merged, key=lambda hit: in_order(hit.entry))


def _why_covered(request: Request) -> str | None:
    """Return why a search covers its subject over time, in place of the best few hits; None if it does not."""
    wanted = request.options.coverage
    if wanted == "off" or request.options.expand is not None:
        return None
    asked = why_covered(request.text)
    return asked if asked is not None or wanted == "auto" else WANTED


def _places(options: RecallOptions) -> int:
    """Return how many hits may cover what is asked for: `top_k`, and more where a budget bounds them."""
    return options.top_k if options.token_budget is None else max(options.top_k, MOST_COVERED)


def _most_read(request: Request, wanted: int) -> int:
    """Return how many messages are read for `wanted` unranked hits; of those that a filter drops, many."""
    return wanted + 2 * len(request.shown) if request.options.filter is None else MOST_CHECKED
