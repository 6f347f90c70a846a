"""Writes the queries by which a search asks the index: those that name candidates, and those that score them."""

from collections.abc import Sequence
from dataclasses import replace

from recollect.memory.ports.vector_index import Channel, Entry, Kind, Query, SparseVector, Vector
from recollect.memory.recall.filtering import Allowed
from recollect.memory.values.frozen import frozen
from recollect.memory.values.period import Period
from recollect.memory.values.scope import Scope

CHANNEL_LIMIT = 150
"""How many candidates each channel names at most."""
SMALL_MEMORY = CHANNEL_LIMIT // 2
"""Of so many turns each channel may name every message, two a turn: its list lacks none then."""
WHOLE_DEPTH = 200
"""How many of the named candidates are scored in all channels, and read, at most."""
LISTING: tuple[Channel, ...] = ("dense", "bm25")
"""The channels that name candidates. `context` only scores them: reading all of its vectors took a third of a large
user's search, and what it alone named changed no figure of LoCoMo by 0.1."""
FROM_THREAD = 50
"""How many candidates the preferred thread names of its own: as many as there can be hits.

They are for a user of many messages, whose own lists may lack the thread. Those nearest by meaning are enough: of
LoCoMo's memories, of some 600 messages, even none of them changed no figure by more than 0.1.
"""
MESSAGES_OF_A_TURN = ("user", "assistant")
_FACTS_OF_A_TURN = 5
FACT_LIMIT = 100
"""How many facts are read, as candidates of their own and as pointers to the messages that they were learned from."""


def depth_for(hits: int) -> int:
    """Return how many of the named candidates a search for so many hits scores and reads; from 30 on `WHOLE_DEPTH`.

    Reading 200 took a user of 20,000 messages a third of a search's time. LoCoMo's recall at 5, from 80 candidates, and
    at 10, from 100, is that from 200, within 0.2 points.
    """
    return min(WHOLE_DEPTH, 50 + 5 * hits)


@frozen
class CandidateQuery:
    """A query for candidates by the vectors `dense` and `bm25`: in `scope`, of `kinds`, outside `exclude_turns`.

    All of the user's facts are searched, because each leads to the message that it was learned from. A fact is itself a
    candidate where it lives in one of `fact_homes` (a thread's id, or None for the user's own; None in place of the set
    allows all). `fact_points` limits the facts to these points, `documents` the passages to those of these documents.
    `allowed` limits everything but passages to what a filter allows. `period` asks for more candidates from within it,
    or with `only_period` for no others. Without `has_context` the index holds no context vectors. `with_vectors` asks
    for the candidates' dense vectors. `preferred` is a thread that names candidates of its own, so that the user's
    other threads do not take all places. `depth` limits all candidates but facts and those of that thread. Of a memory
    that `is_small` each channel names all, and `context` scores all at once.
    """

    scope: Scope
    dense: Vector
    bm25: SparseVector
    kinds: tuple[Kind, ...]
    exclude_turns: Sequence[str] = ()
    fact_homes: frozenset[str | None] | None = None
    fact_points: Sequence[str] | None = None
    documents: Sequence[str] | None = None
    allowed: Allowed | None = None
    period: Period | None = None
    only_period: bool = False
    has_context: bool = True
    with_vectors: bool = False
    preferred: str | None = None
    depth: int = WHOLE_DEPTH
    is_small: bool = False

    def listing(self) -> list[Query]:
        """Return the queries of the first round, in which the listing channels name candidates other than facts."""
        kinds: tuple[Kind, ...] = tuple(kind for kind in self.kinds if kind != "fact")
        if not kinds:
            return []
        period = self.period if self.only_period else None
        asked = [self._query(channel, kinds, period) for channel in LISTING]
        if self.period is not None and not self.only_period:
            asked.append(self._query("dense", kinds, self.period))
        return asked

    def listing_by_words(self) -> list[Query]:
        """Return the one of the first round's queries that needs no vector of the text."""
        return [query for query in self.listing() if query.channel == "bm25"]

    def listing_of_thread(self) -> list[Query]:
        """Return the query in which the preferred thread names candidates of its own; none where there is no thread."""
        if self.preferred is None:
            return []
        here = Scope(self.scope.user_id, self.preferred)
        return [replace(query, scope=here, limit=FROM_THREAD) for query in self.listing()[:1]]

    def scoring_contexts(self) -> list[Query]:
        """Return the query of the first round in which `context` scores all of a small memory; none for others."""
        if not (self.is_small and self.has_context):
            return []
        return [replace(query, channel="context") for query in self.listing()[:1]]

    def passages(self, owner: str, documents: Sequence[str] | None) -> "CandidateQuery":
        """Return this query over the passages of `owner` alone: of these `documents`, or of all with None."""
        return replace(
            self,
            scope=Scope(owner),
            kinds=("document",),
            exclude_turns=(),
            fact_points=None,
            allowed=None,
            preferred=None,
            depth=WHOLE_DEPTH,
            is_small=False,
            documents=documents,
            period=self.period if self.only_period else None,
            has_context=False,
        )

    def facts(self) -> Query:
        """Return the query for the nearest facts of the user, in all threads."""
        period = self.period if self.only_period else None
        user = Scope(self.scope.user_id)
        return Query(
            user,
            self.dense,
            FACT_LIMIT + _FACTS_OF_A_TURN * len(self.dropped_turns),
            ("fact",),
            exclude_turns=self.left_out_turns,
            ids=self.fact_points,
            allowed=None if self.allowed is None else self.allowed.of("fact"),
            period=period,
        )

    def scoring(self, channel: Channel, ids: Sequence[str]) -> Query:
        """Return the query of the second round: one channel's scores of the points `ids`.

        None of them is of an excluded turn, because the first round has left those out.
        """
        return Query(
            Scope(self.scope.user_id),
            self.bm25 if channel == "bm25" else self.dense,
            limit=len(ids),
            kinds=tuple({*self.kinds, "fact"}),
            with_vectors=self.with_vectors and channel == "dense",
            channel=channel,
            ids=ids,
            period=self.period if self.only_period else None,
        )

    def checking(self, ids: Sequence[str]) -> Query:
        """Return the query that names those of the messages `ids` that the filter allows."""
        query = self._query("dense", ("episode",), None)
        return replace(query, scope=Scope(self.scope.user_id), ids=ids, limit=len(ids))

    def holds(self, entry: Entry) -> bool:
        """Tell whether `entry` has a wanted kind and lies in the scope."""
        if entry.kind not in self.kinds:
            return False
        if entry.kind == "fact":
            return self.fact_homes is None or entry.thread_id in self.fact_homes
        return self.scope.thread_id in {None, entry.thread_id}

    @property
    def named(self) -> int:
        """Return how many candidates each channel names at most."""
        return CHANNEL_LIMIT if self.is_small else min(CHANNEL_LIMIT, self.depth)

    @property
    def channels(self) -> tuple[Channel, ...]:
        """Return the channels beside `dense`."""
        return ("context", "bm25") if self.has_context else ("bm25",)

    @property
    def left_out_turns(self) -> Sequence[str]:
        """Return the excluded turns that the index leaves out; see `dropped_turns`."""
        return () if self.is_small else self.exclude_turns

    @property
    def dropped_turns(self) -> Sequence[str]:
        """Return the excluded turns that the index is not told of: of a small memory the search drops them itself.

        To look up their points takes the index as long as to score the memory in a channel.
        """
        return self.exclude_turns if self.is_small else ()

    def _query(self, channel: Channel, kinds: tuple[Kind, ...], period: Period | None) -> Query:
        return Query(
            self.scope,
            self.bm25 if channel == "bm25" else self.dense,
            self.named + len(MESSAGES_OF_A_TURN) * len(self.dropped_turns),
            kinds,
            exclude_turns=self.left_out_turns,
            channel=channel,
            allowed=None if self.allowed is None else self.allowed.of("episode"),
            period=period,
            documents=self.documents,
        )
