"""Recall: what of the past a message calls for, beyond the window."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from memory.documents import Documents
from memory.embedder import Embedder
from memory.fact import Fact, by_weight, fact_dict
from memory.mem_config import MemoryConfig
from memory.ranking import above, blend, mmr, recency
from memory.scope import Scope
from memory.thread_record import ThreadRecord
from memory.times import Clock, iso
from memory.turn import Exchange
from memory.vector_index import Entry, Match, Query, VectorIndex
from memory.window import read_window

MMR_CANDIDATES = 4
"""How many candidates MMR chooses from, as a multiple of top_k."""
WORKING_MEMORY_IMPORTANCE = 0.7
"""How important a thread's own fact must be to enter the prompt."""
MOST_FACTS = 5_000
"""How many living facts a turn looks at, newest first."""


@dataclass(frozen=True, slots=True)
class RecallOptions:
    """What to recall for a turn.

    `window` counts turns, 0-50; `top_k` 0-50; `score_threshold` is a raw cosine in [-1, 1]; the weights are in [0, 1],
    and None leaves their step out.
    """

    enabled: bool = True
    scope: Literal["thread", "user"] = "thread"
    window: int = MemoryConfig.window
    top_k: int = MemoryConfig.top_k
    score_threshold: float = MemoryConfig.score_threshold
    recency_weight: float | None = None
    mmr_lambda: float | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """One recalled memory. `similarity` is the raw cosine, `recency` in [0, 1], `score` what ordered it."""

    entry: Entry
    score: float
    similarity: float
    recency: float

    def as_json(self) -> dict[str, Any]:
        """The HIT of the HTTP contract."""
        entry = self.entry
        return {
            "id": entry.id,
            "kind": entry.kind,
            "role": entry.role,
            "name": entry.name,
            "content": entry.content,
            "score": round(self.score, 6),
            "similarity": round(self.similarity, 6),
            "recency": round(self.recency, 6),
            "created_at": iso(entry.created_at),
            "thread_id": entry.thread_id,
            "turn_id": entry.turn_id,
            "message_id": entry.message_id,
        }


@dataclass(frozen=True, slots=True)
class KnownFacts:
    """The facts that hold: the keyed ones as a dict, the free-text ones as statements, the weightiest first."""

    facts: Mapping[str, str]
    notes: Sequence[str]


@dataclass(frozen=True, slots=True)
class Recall:
    """The whole read path: window, facts and search, each on its own, so that each can fail on its own."""

    documents: Documents
    index: VectorIndex
    embedder: Embedder
    config: MemoryConfig
    clock: Clock

    async def window(self, scope: Scope, options: RecallOptions, *, before: int | None = None) -> list[Exchange]:
        """The thread's last turns within the window's token budget, oldest first. `before`: see `read_window`."""
        return await read_window(
            self.documents.conversations,
            scope,
            turns=options.window,
            tokens=self.config.window_tokens,
            before=before,
        )

    async def facts(self, scope: Scope, *, with_global: bool = False) -> KnownFacts:
        """The facts that hold for the user, and with a thread the weighty ones of that thread's working memory."""
        now = self.clock()
        living = await self.documents.facts.living(scope, at=now, limit=MOST_FACTS, with_global=with_global)
        known = [fact for fact in living if fact.holds(now) and _is_weighty(fact)]
        return KnownFacts(
            facts=fact_dict(known),
            notes=[fact.statement for fact in by_weight(fact for fact in known if fact.key is None)],
        )

    async def thread(self, scope: Scope) -> ThreadRecord | None:
        """The thread's record, with the summary of what left the window."""
        return await self.documents.threads.record(scope)

    async def search(self, scope: Scope, text: str, options: RecallOptions, *, before: int | None = None) -> list[Hit]:
        """Past messages, and summaries of other archived threads, that `text` calls for, best first: at most `top_k`.

        None that the window shows.

        Where nothing lies beyond the window, nothing is embedded and nothing searched.
        """
        if options.top_k == 0:
            return []
        shown = await self.window(scope, options, before=before)
        sought = scope if options.scope == "thread" else Scope(scope.user_id)
        turns = await self.documents.conversations.count_turns(sought, at_most=len(shown) + 1)
        if turns <= len(shown):
            return []
        several = MMR_CANDIDATES if options.mmr_lambda is not None or options.recency_weight else 1
        # This thread's own summary is given anyway, so it may take a place that is not wanted.
        matches = await self.index.search(
            Query(
                scope=sought,
                dense=await self.embedder.embed_query(text),
                limit=options.top_k * several + 1,
                kinds=("episode", "summary"),
                exclude_turns=[exchange.user.turn_id for exchange in shown],
                with_vectors=options.mmr_lambda is not None,
            )
        )
        others = [match for match in matches if not _is_own_summary(match, scope)]
        return rank(others[: options.top_k * several], options, now=self.clock())


def _is_own_summary(match: Match, scope: Scope) -> bool:
    return match.entry.kind == "summary" and match.entry.thread_id == scope.thread_id


def _is_weighty(fact: Fact) -> bool:
    """Working memory enters the prompt where it matters; the rest serves to tell what is known already."""
    return fact.scope != "thread" or fact.importance >= WORKING_MEMORY_IMPORTANCE


def rank(matches: Sequence[Match], options: RecallOptions, *, now: datetime) -> list[Hit]:
    """Matches to hits: threshold on the raw similarity, recency share, order by score, then MMR where asked for."""
    weight = options.recency_weight or 0.0
    kept = above(matches, options.score_threshold)
    scored = [(match, _hit(match, weight, now)) for match in kept]
    scored.sort(key=lambda pair: (-pair[1].score, pair[1].entry.id))
    if options.mmr_lambda is None:
        return [hit for _, hit in scored[: options.top_k]]
    chosen = mmr(
        [hit.score for _, hit in scored],
        [match.dense or () for match, _ in scored],
        limit=options.top_k,
        trade_off=options.mmr_lambda,
    )
    return [scored[place][1] for place in chosen]


def _hit(match: Match, weight: float, now: datetime) -> Hit:
    fresh = recency(match.entry.created_at, now)
    return Hit(match.entry, blend(match.similarity, fresh, weight), match.similarity, fresh)
