"""Runs one search from its text to its hits. The steps are functions of other files; this is their order."""

import asyncio
import logging
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from recollect.memory.background.long_texts import INLINE_CHARACTERS, off_loop
from recollect.memory.background.unread import may_go_unread
from recollect.memory.ports.embedder import Embedder, embedder_name
from recollect.memory.ports.reranker import Reranker
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import VectorIndex
from recollect.memory.recall.candidate_filter import CandidateFilter
from recollect.memory.recall.candidates.gathering import Gathering
from recollect.memory.recall.coverage.covering import covering
from recollect.memory.recall.filtering import Allowed, allowed_points
from recollect.memory.recall.hit import Hit, Recalled
from recollect.memory.recall.known_terms import KnownTerms
from recollect.memory.recall.near_repeats import LOSS, Comparison
from recollect.memory.recall.preference import behind
from recollect.memory.recall.query import PreparedQuery, prepare_query
from recollect.memory.recall.ranking import RELEVANT, Scored, blend, is_relevant, mmr, rank, recency
from recollect.memory.recall.recall_options import RecallOptions
from recollect.memory.recall.repeats import Repeats
from recollect.memory.recall.request import Prepared, Request
from recollect.memory.recall.surroundings import expanded, neighbours_of
from recollect.memory.recall.unranked.newest import newest_entries
from recollect.memory.recall.unranked.period_messages import period_messages
from recollect.memory.recall.unranked.unranked_hits import newest_hits
from recollect.memory.recall.unranked.word_search import search_by_words
from recollect.memory.recall.verification import verify
from recollect.memory.temporal.named_time import named_time
from recollect.memory.temporal.temporal import Found
from recollect.memory.values.errors import IndexUnavailable
from recollect.memory.values.filtering.keys import read_filter_keys
from recollect.memory.values.filtering.narrow import ALL, Narrow
from recollect.memory.values.frozen import frozen
from recollect.memory.values.mem_config import MemoryConfig
from recollect.memory.values.scope import Scope

logger = logging.getLogger(__name__)

MOST_NAMES = 32
"""How many speakers' names are looked for in a query at most."""
SMALL = 5
"""A memory of at most this many messages, facts and summaries is returned whole."""
RERANKED = 3
"""How many candidates the reranker reads, as a multiple of top_k."""
MMR_CANDIDATES = 4
"""How many candidates MMR chooses from, as a multiple of top_k."""
RECENT_READ = 200
"""Of how many of the newest memories `fallback_recent` chooses its few: equal texts are one."""


@frozen
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
        if options.top_k == 0 or not options.kinds:
            await self._named_time(request.text, options, now)  # refuses a time zone that does not exist
            return Recalled(is_complete=None if options.filter is None else True)
        prepared = request.prepared
        if prepared is None:
            names = await self.names(request.scope.user_id)
            prepared = await self._prepare(request.text, options, names=names, now=now)
        named, query = prepared.named, prepared.query
        if named is not None and prepared.asks_for_time_alone(options):
            where = await self._where(request)
            return await period_messages(self.store.timeline, request, named.period, now, where=where)
        why = request.why_covered
        allowed = await self._allowed(request)
        gathering = Gathering(self.store, self.index, self.embedder)
        try:
            candidates = await gathering.candidates(request, query, allowed, now)
        except IndexUnavailable:
            if request.for_turn:
                raise  # a turn goes on without its search
            return await search_by_words(self.store, request, query, now)
        # Verified before the ranking: a dropped candidate must not set the scale on which the others are scored.
        verification = await verify(
            self.store,
            request.scope.user_id,
            candidates,
            now=now,
            given_apart=request.for_turn,
            given=request.given_facts,
        )
        scored = rank(verification.candidates, query, knows_meaning=self.embedder.knows_meaning)
        filtered = CandidateFilter(scored, verification.dropped)
        await filtered.merge_off_loop()
        self._keep_relevant(filtered, options)
        if why is None:
            await self._order(request, filtered, now)
            hits = await self._packed(request, query, filtered, [_hit(one, now) for one in filtered.left])
        else:
            found = [_hit(one, now) for one in filtered.left]
            hits = await covering(self.store.timeline, request, filtered, found, why, query)
        if not hits and options.fallback_recent:
            hits = await self._recent(request, filtered, now)
        logger.debug(
            "searched",
            extra={"action": "searched", "user_id": request.scope.user_id, "thread_id": request.scope.thread_id}
            | {"candidates": len(candidates), "hits": len(hits)},
        )
        is_complete = None if allowed is None else allowed.is_complete and request.searchable.is_complete
        return Recalled(hits, filtered.trace, is_complete)

    async def names(self, user_id: str) -> list[str]:
        """Return the speakers of the user's messages, as far as they are looked for in a query."""
        return await self.store.timeline.names(user_id, limit=MOST_NAMES)

    @contextmanager
    def beginning(
        self, text: str, options: RecallOptions, *, names: Sequence[str], now: datetime
    ) -> "Generator[asyncio.Future[Prepared]]":
        """Prepare a search beside the block, and ask for its vector where it will need one; see `Request.prepared`.

        What nobody has waited for is given up at the end of the block. The future raises InvalidRequest where the
        options' time zone does not exist.
        """
        begun = may_go_unread(asyncio.ensure_future(self._begin(text, options, names=names, now=now)))
        try:
            yield begun
        finally:
            if not begun.cancel() and not begun.cancelled() and begun.exception() is None:
                begun.result().end()

    async def _begin(self, text: str, options: RecallOptions, *, names: Sequence[str], now: datetime) -> Prepared:
        prepared = await self._prepare(text, options, names=names, now=now)
        if not options.kinds or prepared.asks_for_time_alone(options):
            return prepared
        embedded = asyncio.ensure_future(self.embedder.embed_query(prepared.query.dense_text))
        return replace(prepared, vector=may_go_unread(embedded))

    async def _prepare(self, text: str, options: RecallOptions, *, names: Sequence[str], now: datetime) -> Prepared:
        named = await self._named_time(text, options, now)
        period = named.period if named is not None else None
        return Prepared(await off_loop(lambda: prepare_query(text, names=names, period=period), [text]), named)

    async def _named_time(self, text: str, options: RecallOptions, now: datetime) -> Found | None:
        """Return the time that the text names, unless times are to be ignored."""
        return None if options.time == "ignore" else await named_time(text, now=now, zone=options.timezone)

    async def _allowed(self, request: Request) -> Allowed | None:
        """Return what the request's filter lets the search find; None without one."""
        asked = request.options.filter
        if asked is None:
            return None
        known = self._known(request.scope, embedder=await embedder_name(self.embedder))
        return await allowed_points(self.store, request.scope, request.options.kinds, asked, known)

    async def _where(self, request: Request) -> Narrow:
        """Return the condition that holds for all messages that fulfil the request's filter."""
        asked = request.options.filter
        return ALL if asked is None else (await self._known(request.scope).meant(asked, "episode")).perhaps

    def _known(self, scope: Scope, *, embedder: str | None = None) -> KnownTerms:
        keys = read_filter_keys(self.config.filter_keys)
        return KnownTerms(self.store.filter_terms, scope.user_id, keys, embedder=embedder)

    def _keep_relevant(self, filtered: CandidateFilter, options: RecallOptions) -> None:
        """Drop what is below the threshold; without one, what is plainly irrelevant, unless the memory is small.

        What the caller shows does not count as memory. Passages do not either, because a long document would hide the
        few memories beside it.
        """
        asked = options.score_threshold
        if asked is not None:
            filtered.keep(lambda one: one.similarity >= asked, "threshold", f"its similarity is below {asked}")
            return
        if len(filtered.left) <= SMALL:
            return
        is_small = sum(one.candidate.entry.kind != "document" for one in filtered.left) <= SMALL
        reason = f"its similarity is below {RELEVANT}, and it shares no word with the query"
        filtered.keep(
            lambda one: is_relevant(one.candidate) or (is_small and one.candidate.entry.kind != "document"),
            "threshold",
            reason,
        )

    async def _order(self, request: Request, filtered: CandidateFilter, now: datetime) -> None:
        """Rerank, blend with recency and diversify where asked for, then keep the best `top_k` in their final order.

        Near repeats lose last, because only those of the best few texts are looked for.
        """
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
            filtered.shift("scope", behind(filtered.left, request.preferred, self.config.scope_margin))
        count = options.top_k if options.mmr_lambda is None else MMR_CANDIDATES * options.top_k
        most = LOSS * (1 - (options.recency_weight or 0.0))  # of what a text means, not of how new it is
        repeated = Comparison(filtered.left, count=count, most=most)
        if not repeated.go_on(INLINE_CHARACTERS):  # few are compared, unless many repeat each other
            await asyncio.to_thread(repeated.go_on)
        filtered.shift("near_repeat", repeated.losses)
        if options.mmr_lambda is not None:
            filtered.first(count, "rank", "not among those that MMR chooses from")
            chosen = mmr(
                [one.score for one in filtered.left],
                [one.candidate.vector or () for one in filtered.left],
                limit=options.top_k,
                trade_off=options.mmr_lambda,
            )
            filtered.choose(chosen, "mmr", "too like those chosen before it")
        else:
            filtered.first(count, "rank", f"{count} others score higher")

    async def _packed(
        self, request: Request, query: PreparedQuery, filtered: CandidateFilter, hits: Sequence[Hit]
    ) -> Sequence[Hit]:
        """Add sessions or neighbours to the hits, and pack them into the token budget where there is one."""
        options, timeline = request.options, self.store.timeline
        hits = await expanded(timeline, request, filtered, hits)
        if options.token_budget is None:
            return hits
        neighbours = (
            {} if options.expand else await neighbours_of(timeline, hits, shown=request.shown, asked=options.filter)
        )
        return await filtered.fit(hits, options.token_budget, relevance=query.relevance, neighbours=neighbours)

    async def _recent(self, request: Request, filtered: CandidateFilter, now: datetime) -> list[Hit]:
        """Return the newest few memories, newest first, in place of hits."""
        most, where = request.most_read(RECENT_READ), await self._where(request)
        entries = (await newest_entries(self.store, request, now, limit=most, where=where))[:RECENT_READ]
        contents = [entry.content for entry in entries]
        hits = await off_loop(lambda: newest_hits(entries, request.options, now), contents)
        filtered.add("recent", hits)
        return hits


def _hit(one: Scored, now: datetime) -> Hit:
    entry = one.candidate.entry
    repeats = Repeats.of([entry, *one.older])
    return Hit(entry, one.score, one.similarity, recency(entry.created_at, now), repeats=repeats)
