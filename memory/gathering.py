"""Gathering: the candidates of one search, each with its raw score in every channel."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from memory.candidate import Candidate
from memory.dates import Period
from memory.scope import Scope
from memory.turn import derived_id
from memory.vector_index import Channel, Entry, Kind, Match, Query, SparseVector, Vector, VectorIndex

CHANNEL_LIMIT = 200
"""How many candidates each channel names."""
FACT_LIMIT = 100
"""How many facts are looked at, as memories of their own and as keys to the messages that taught them."""


@dataclass(frozen=True, slots=True)
class Sought:
    """What is looked for: by these vectors, in this scope, of these kinds, outside these turns.

    Facts are looked for among all of the user's, because each leads to the message that taught it; as candidates of
    their own count those that live in one of `fact_homes` (a thread, or None for the user's; None: all); `fact_ids`:
    no others. `period`: more candidates from within it, or with `only_period` no others. Without `has_context` the
    index holds no context vectors.
    """

    scope: Scope
    dense: Vector
    bm25: SparseVector
    kinds: tuple[Kind, ...]
    exclude_turns: Sequence[str] = ()
    fact_homes: frozenset[str | None] | None = None
    fact_ids: Sequence[str] | None = None
    period: Period | None = None
    only_period: bool = False
    has_context: bool = True
    with_vectors: bool = False

    def listing(self) -> list[Query]:
        """The first round: what each channel names, of all kinds but facts."""
        kinds: tuple[Kind, ...] = tuple(kind for kind in self.kinds if kind != "fact")
        if not kinds:
            return []
        period = self.period if self.only_period else None
        channels: tuple[Channel, ...] = ("dense", *self.channels)
        asked = [self._query(channel, kinds, period) for channel in channels]
        if self.period is not None and not self.only_period:
            asked.append(self._query("dense", kinds, self.period))
        return asked

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
        """The second round: what one channel says of these points."""
        return Query(
            Scope(self.scope.user_id),
            self.bm25 if channel == "bm25" else self.dense,
            limit=len(ids),
            kinds=tuple({*self.kinds, "fact"}),
            exclude_turns=self.exclude_turns,
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
        return Query(self.scope, vector, CHANNEL_LIMIT, kinds, exclude_turns=without, channel=channel, period=period)


async def gather(index: VectorIndex, sought: Sought) -> list[Candidate]:
    """The candidates that any channel names, with their exact scores in all of them, in any order.

    Two rounds: what each channel finds, then what the others say of it.

    Raises:
        IndexUnavailable: nothing was found out.
    """
    lists, facts = await asyncio.gather(index.rank(sought.listing()), index.search(sought.facts()))
    leads = _leads(facts) if "episode" in sought.kinds else {}
    own = [match.entry.id for match in facts if sought.holds(match.entry)]
    ids = list(dict.fromkeys([*(found for scores in lists for found in scores), *leads, *own]))
    if not ids:
        return []
    matches, scores = await asyncio.gather(
        index.search(sought.scoring("dense", ids)),
        index.rank([sought.scoring(channel, ids) for channel in sought.channels]),
    )
    by_channel = dict(zip(sought.channels, scores, strict=True))
    context, bm25 = by_channel.get("context", {}), by_channel["bm25"]
    return [
        Candidate(
            entry=match.entry,
            dense=match.similarity,
            context=context.get(match.entry.id),
            bm25=bm25.get(match.entry.id),
            fact=leads.get(match.entry.id),
            vector=match.dense,
        )
        for match in matches
        if sought.holds(match.entry)
    ]


def _leads(facts: Sequence[Match]) -> dict[str, float]:
    """By the id of a user's message: the similarity of the nearest fact that it taught."""
    leads: dict[str, float] = {}
    for match in facts:
        entry = match.entry
        if entry.turn_id is not None:
            source = derived_id(entry.user_id, entry.turn_id, "user")
            leads[source] = max(match.similarity, leads.get(source, -1.0))
    return leads
