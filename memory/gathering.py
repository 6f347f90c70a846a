"""Gathering: the candidates of one search, each with its raw score in every channel."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from memory.candidate import Candidate
from memory.dates import Period
from memory.scope import Scope
from memory.turn import derived_id
from memory.vector_index import Channel, Entry, Kind, Match, Query, SparseVector, Vector, VectorIndex

CHANNEL_LIMIT = 150
"""How many candidates each channel names."""
MOST_SCORED = 200
"""How many of what the channels name are scored in all of them, and read."""
LISTING: tuple[Channel, ...] = ("dense", "bm25")
"""The channels that name candidates. `context` only scores them: reading all of its vectors took a third of a large
user's search, and what it alone named changed no figure of LoCoMo by 0.1."""
LISTED = 0.05
"""What it counts to be named by a channel at all."""
FACT_LIMIT = 100
"""How many facts are looked at, as memories of their own and as keys to the messages that taught them."""


@dataclass(frozen=True, slots=True)
class Sought:
    """What is looked for: by these vectors, in this scope, of these kinds, outside these turns.

    Facts are looked for among all of the user's, because each leads to the message that taught it; as candidates of
    their own count those that live in one of `fact_homes` (a thread, or None for the user's; None: all); `fact_ids`:
    no others; `documents`: passages of these alone. `period`: more candidates from within it, or with `only_period` no
    others. Without `has_context` the index holds no context vectors.
    """

    scope: Scope
    dense: Vector
    bm25: SparseVector
    kinds: tuple[Kind, ...]
    exclude_turns: Sequence[str] = ()
    fact_homes: frozenset[str | None] | None = None
    fact_ids: Sequence[str] | None = None
    documents: Sequence[str] | None = None
    period: Period | None = None
    only_period: bool = False
    has_context: bool = True
    with_vectors: bool = False

    def listing(self) -> list[Query]:
        """The first round: what the listing channels name, of all kinds but facts."""
        kinds: tuple[Kind, ...] = tuple(kind for kind in self.kinds if kind != "fact")
        if not kinds:
            return []
        period = self.period if self.only_period else None
        asked = [self._query(channel, kinds, period) for channel in LISTING]
        if self.period is not None and not self.only_period:
            asked.append(self._query("dense", kinds, self.period))
        return asked

    def passages(self, owner: str, documents: Sequence[str] | None) -> "Sought":
        """The same looked for in an owner's documents alone: in these, or in all."""
        return replace(
            self,
            scope=Scope(owner),
            kinds=("document",),
            exclude_turns=(),
            fact_ids=None,
            documents=documents,
            period=self.period if self.only_period else None,
            has_context=False,
        )

    def facts(self) -> Query:
        """The facts that are nearest, of whichever thread."""
        period = self.period if self.only_period else None
        user = Scope(self.scope.user_id)
        return Query(
            user,
            self.dense,
            FACT_LIMIT,
            ("fact",),
            exclude_turns=self.exclude_turns,
            ids=self.fact_ids,
            period=period,
        )

    def scoring(self, channel: Channel, ids: Sequence[str]) -> Query:
        """The second round: what one channel says of these points, none of which is of an excluded turn."""
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

    def holds(self, entry: Entry) -> bool:
        """Whether the entry is one of those that are sought."""
        if entry.kind not in self.kinds:
            return False
        if entry.kind == "fact":
            return self.fact_homes is None or entry.thread_id in self.fact_homes
        return self.scope.thread_id in {None, entry.thread_id}

    @property
    def channels(self) -> tuple[Channel, ...]:
        """Those beside `dense`."""
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
            period=period,
            documents=self.documents,
        )


async def gather(index: VectorIndex, sought: Sought) -> list[Candidate]:
    """The candidates that any channel names, with their exact scores in all of them, in any order.

    Two rounds: what each channel finds, then what the others say of the most promising of it.

    Raises:
        IndexUnavailable: nothing was found out.
    """
    if sought.kinds == ("document",):  # no passage leads to a message, and no fact to a passage
        lists, facts = await index.rank(sought.listing()), list[Match]()
    else:
        lists, facts = await asyncio.gather(index.rank(sought.listing()), index.search(sought.facts()))
    leads = _leads(facts) if "episode" in sought.kinds else {}
    own = [match.entry.id for match in facts if sought.holds(match.entry)]
    ids = list(dict.fromkeys([*_promising([*lists, leads]), *own]))
    if not ids:
        return []
    by_channel = await _scores(index, sought, ids, own, lists)
    dense, context, bm25 = by_channel["dense"], by_channel.get("context", {}), by_channel["bm25"]
    # Only what the scope's own query has found is read.
    return [
        Candidate(
            entry=entry,
            dense=dense[entry.id],
            context=context.get(entry.id),
            bm25=bm25.get(entry.id),
            fact=leads.get(entry.id),
            vector=vector,
        )
        for entry, vector in await _read(index, sought, [found for found in ids if found in dense])
        if sought.holds(entry)
    ]


async def _scores(
    index: VectorIndex, sought: Sought, ids: Sequence[str], own: Sequence[str], lists: Sequence[Mapping[str, float]]
) -> Mapping[Channel, Mapping[str, float]]:
    """What each channel says of these points; `own` are the facts among them.

    Where the scope is small, the lists of the first round say it already, but of facts.
    """
    is_whole = bool(lists) and all(len(scores) < CHANNEL_LIMIT for scores in lists)
    known: dict[Channel, Mapping[str, float]] = {}
    if is_whole:
        known = dict(zip(LISTING, lists, strict=False))
    channels: tuple[Channel, ...] = ("dense", *sought.channels)
    lacking: dict[Channel, Sequence[str]] = {channel: own if channel in known else ids for channel in channels}
    asked: list[Channel] = [channel for channel in channels if lacking[channel]]
    scores = await index.rank([sought.scoring(channel, lacking[channel]) for channel in asked]) if asked else []
    found = dict(zip(asked, scores, strict=True))
    return {channel: {**known.get(channel, {}), **found.get(channel, {})} for channel in channels}


async def _read(index: VectorIndex, sought: Sought, ids: Sequence[str]) -> list[tuple[Entry, Vector | None]]:
    if not sought.with_vectors:
        return [(entry, None) for entry in await index.entries(ids)]
    return [(match.entry, match.dense) for match in await index.search(sought.scoring("dense", ids))]


def _promising(lists: Sequence[Mapping[str, float]]) -> list[str]:
    """The ids that are best by the sum of all lists, each spread over [0, 1]; one that a list lacks has 0 of it."""
    sums = defaultdict[str, float](float)
    for scores in lists:
        low, high = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
        width = (high - low) or 1.0
        for found, score in scores.items():
            sums[found] += (score - low) / width + LISTED
    return sorted(sums, key=lambda found: (-sums[found], found))[:MOST_SCORED]


def _leads(facts: Sequence[Match]) -> dict[str, float]:
    """By the id of a user's message: the similarity of the nearest fact that it taught."""
    leads: dict[str, float] = {}
    for match in facts:
        entry = match.entry
        if entry.turn_id is not None:
            source = derived_id(entry.user_id, entry.turn_id, "user")
            leads[source] = max(match.similarity, leads.get(source, -1.0))
    return leads
