"""Retrieves the candidates of one search from the index, each with its raw score in every channel."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from recollect.memory.ports.vector_index import Channel, Entry, Kind, Match, Query, SparseVector, Vector, VectorIndex
from recollect.memory.recall.candidate import Candidate
from recollect.memory.recall.filtering import Allowed
from recollect.memory.values.period import Period
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import derived_id

CHANNEL_LIMIT = 150
"""How many candidates each channel names."""
MOST_SCORED = 200
"""How many of the named candidates are scored in all channels, and read."""
LISTING: tuple[Channel, ...] = ("dense", "bm25")
"""The channels that name candidates. `context` only scores them: reading all of its vectors took a third of a large
user's search, and what it alone named changed no figure of LoCoMo by 0.1."""
LISTED = 0.05
"""The bonus that a candidate gets from each channel that names it, beside its score there in [0, 1]."""
FROM_THREAD = 50
"""How many candidates the preferred thread names of its own: as many as there can be hits.

They are for a user of many messages, whose own lists may lack the thread. Those nearest by meaning are enough: of
LoCoMo's memories, of some 600 messages, even none of them changed no figure by more than 0.1.
"""
FACT_LIMIT = 100
"""How many facts are read, as candidates of their own and as pointers to the messages that they were learned from."""


@dataclass(frozen=True, slots=True)
class CandidateQuery:
    """A query for candidates by the vectors `dense` and `bm25`: in `scope`, of `kinds`, outside `exclude_turns`.

    All of the user's facts are searched, because each leads to the message that it was learned from. A fact is itself a
    candidate where it lives in one of `fact_homes` (a thread's id, or None for the user's own; None in place of the set
    allows all). `fact_points` limits the facts to these points, `documents` the passages to those of these documents.
    `allowed` limits everything but passages to what a filter allows. `period` asks for more candidates from within it,
    or with `only_period` for no others. Without `has_context` the index holds no context vectors. `with_vectors` asks
    for the candidates' dense vectors. `preferred` is a thread that names candidates of its own, so that the user's
    other threads do not take all places.
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
            FACT_LIMIT,
            ("fact",),
            exclude_turns=self.exclude_turns,
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
    def channels(self) -> tuple[Channel, ...]:
        """Return the channels beside `dense`."""
        return ("context", "bm25") if self.has_context else ("bm25",)

    def _query(self, channel: Channel, kinds: tuple[Kind, ...], period: Period | None) -> Query:
        vector, without = self.bm25 if channel == "bm25" else self.dense, self.exclude_turns
        return Query(
            self.scope,
            vector,
            CHANNEL_LIMIT,
            kinds,
            exclude_turns=without,
            channel=channel,
            allowed=None if self.allowed is None else self.allowed.of("episode"),
            period=period,
            documents=self.documents,
        )


async def named_by_words(index: VectorIndex, query: CandidateQuery) -> Mapping[str, float] | None:
    """Return the candidates that `bm25` names, with their scores there; None where that channel names none."""
    asked = query.listing_by_words()
    return (await index.rank(asked))[0] if asked else None


async def retrieve(
    index: VectorIndex, query: CandidateQuery, words: Mapping[str, float] | None = None
) -> list[Candidate]:
    """Return the candidates that any channel names, with their exact scores in all channels, in no order.

    The first round lets channels name candidates; the second scores the most promising of them in every channel that
    has not named them. `words` is what `named_by_words` gave, where it was asked before.

    Raises:
        IndexUnavailable: the index cannot be reached.
    """
    lists: Sequence[Mapping[str, float]]
    if query.kinds == ("document",):  # no passage leads to a message, and no fact to a passage
        lists, facts, here = await index.rank(query.listing()), list[Match](), list[dict[str, float]]()
    else:
        asked = [one for one in query.listing() if words is None or one.channel != "bm25"]
        ranked, facts = await asyncio.gather(
            index.rank([*asked, *query.listing_of_thread()]), index.search(query.facts())
        )
        lists, here = ranked[: len(asked)], ranked[len(asked) :]
        if words is not None:
            place = LISTING.index("bm25")
            lists = [*lists[:place], words, *lists[place:]]
    source_facts = _source_facts(facts) if "episode" in query.kinds else {}
    if query.allowed is not None and source_facts:
        (allowed,) = await index.rank([query.checking(list(source_facts))])
        source_facts = {key: score for key, score in source_facts.items() if key in allowed}
    own = {match.entry.id: match.similarity for match in facts if query.holds(match.entry)}
    ids = list(dict.fromkeys([*_promising([*lists, source_facts]), *_promising(here), *own]))
    if not ids:
        return []
    by_channel, entries = await asyncio.gather(
        _scores(index, query, ids, lists=lists, here=here, facts=own), _read(index, query, ids, facts)
    )
    dense, context, bm25 = by_channel["dense"], by_channel.get("context", {}), by_channel["bm25"]
    # A fact may lead to a message without a point, or outside the scope or period: `dense` lacks it, and it is dropped.
    return [
        Candidate(
            entry=entry,
            dense=dense[entry.id],
            context=context.get(entry.id),
            bm25=bm25.get(entry.id),
            fact=source_facts.get(entry.id),
            vector=vector,
        )
        for entry, vector in entries
        if entry.id in dense and query.holds(entry)
    ]


async def _scores(
    index: VectorIndex,
    query: CandidateQuery,
    ids: Sequence[str],
    *,
    lists: Sequence[Mapping[str, float]],
    here: Sequence[Mapping[str, float]],
    facts: Mapping[str, float],
) -> Mapping[Channel, Mapping[str, float]]:
    """Return each channel's scores of the points `ids`.

    The first round's scores are exact, so only the others are asked for: `lists` and `here` are its lists, and `facts`
    the facts among `ids` with their cosines. A list that names fewer than its limit is complete: it lacks only what has
    no score there, and facts, which no list names.
    """
    listed = dict(zip(LISTING, lists, strict=False))
    by_meaning = [*lists[:1], *lists[len(LISTING) :], *here, facts]  # a third list is a period's, by meaning
    known: dict[Channel, Mapping[str, float]] = {
        "dense": {found: score for scores in by_meaning for found, score in scores.items()},
        "bm25": listed.get("bm25", {}),
    }
    lacking: dict[Channel, list[str]] = {}
    for channel in ("dense", *query.channels):
        is_complete = channel in listed and len(listed[channel]) < CHANNEL_LIMIT
        there = known.get(channel, {})
        lacking[channel] = [found for found in (facts if is_complete else ids) if found not in there]
    asked: list[Channel] = [channel for channel, wanted in lacking.items() if wanted]
    scores = await index.rank([query.scoring(channel, lacking[channel]) for channel in asked]) if asked else []
    found = dict(zip(asked, scores, strict=True))
    return {channel: {**known.get(channel, {}), **found.get(channel, {})} for channel in lacking}


async def _read(
    index: VectorIndex, query: CandidateQuery, ids: Sequence[str], facts: Sequence[Match]
) -> list[tuple[Entry, Vector | None]]:
    """Return the entries of the points `ids`; those of `facts` have come with them."""
    if not query.with_vectors:
        known = {match.entry.id: match.entry for match in facts}
        read = await index.entries([found for found in ids if found not in known])
        return [(entry, None) for entry in (*read, *(known[found] for found in ids if found in known))]
    return [(match.entry, match.dense) for match in await index.search(query.scoring("dense", ids))]


def _promising(lists: Sequence[Mapping[str, float]]) -> list[str]:
    """Return the ids with the highest sums over all lists, each scaled to [0, 1]; an id that a list lacks gets 0."""
    sums = defaultdict[str, float](float)
    for scores in lists:
        low, high = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
        width = (high - low) or 1.0
        for found, score in scores.items():
            sums[found] += (score - low) / width + LISTED
    return sorted(sums, key=lambda found: (-sums[found], found))[:MOST_SCORED]


def _source_facts(facts: Sequence[Match]) -> dict[str, float]:
    """Map the id of each user's message to the similarity of the nearest fact that was learned from it."""
    source_facts: dict[str, float] = {}
    for match in facts:
        entry = match.entry
        if entry.turn_id is not None:
            source = derived_id(entry.user_id, entry.turn_id, "user")
            source_facts[source] = max(match.similarity, source_facts.get(source, -1.0))
    return source_facts
