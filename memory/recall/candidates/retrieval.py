"""Retrieves the candidates of one search from the index, each with its raw score in every channel."""

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from recollect.memory.ports.vector_index import Channel, Entry, Match, Vector, VectorIndex
from recollect.memory.recall.candidates.candidate import Candidate
from recollect.memory.recall.candidates.candidate_query import (
    FACT_LIMIT,
    LISTING,
    MESSAGES_OF_A_TURN,
    CandidateQuery,
)
from recollect.memory.recall.candidates.choosing import promising
from recollect.memory.values.turn import derived_id


class _Named(NamedTuple):
    """Holds what the first round names: the `lists` of the channels and of a period, and what is `here`, in the thread.

    `contexts` scores all of a small memory; None for others.
    """

    lists: Sequence[Mapping[str, float]]
    here: Sequence[Mapping[str, float]] = ()
    contexts: Mapping[str, float] | None = None


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
    first, facts = _without_dropped(query, *await _first_round(index, query, words))
    source_facts = _source_facts(facts) if "episode" in query.kinds else {}
    if query.allowed is not None and source_facts:
        (allowed,) = await index.rank([query.checking(list(source_facts))])
        source_facts = {key: score for key, score in source_facts.items() if key in allowed}
    own = {match.entry.id: match.similarity for match in facts if query.holds(match.entry)}
    beside = [*itertools.chain(*first.here), *own]
    ids = list(dict.fromkeys([*promising([*first.lists, source_facts], query.depth), *beside]))
    if not ids:
        return []
    by_channel, entries = await asyncio.gather(_scores(index, query, ids, first, own), _read(index, query, ids, facts))
    dropped = {*query.dropped_turns}
    dense, context, bm25 = by_channel["dense"], by_channel.get("context", {}), by_channel["bm25"]
    # A fact may lead to a message without a point, or outside the scope or period: `dense` lacks it, and it is dropped.
    return [
        Candidate(
            entry,
            dense[entry.id],
            context.get(entry.id),
            bm25.get(entry.id),
            source_facts.get(entry.id),
            vector,
        )
        for entry, vector in entries
        if entry.id in dense and query.holds(entry) and entry.turn_id not in dropped
    ]


async def _first_round(
    index: VectorIndex, query: CandidateQuery, words: Mapping[str, float] | None
) -> tuple[_Named, list[Match]]:
    """Return what the channels name, and the nearest facts; `words` is what `named_by_words` gave before."""
    if query.kinds == ("document",):  # no passage leads to a message, and no fact to a passage
        return _Named(await index.rank(query.listing())), []
    asked = [one for one in query.listing() if words is None or one.channel != "bm25"]
    here, contexts = query.listing_of_thread(), query.scoring_contexts()
    ranked, facts = await asyncio.gather(index.rank([*asked, *here, *contexts]), index.search(query.facts()))
    lists, rest = ranked[: len(asked)], ranked[len(asked) :]
    if words is not None:
        place = LISTING.index("bm25")
        lists = [*lists[:place], words, *lists[place:]]
    return _Named(lists, rest[: len(here)], rest[-1] if contexts else None), facts


def _without_dropped(query: CandidateQuery, first: _Named, facts: Sequence[Match]) -> tuple[_Named, Sequence[Match]]:
    """Return what the first round found without the turns that the query drops itself.

    Messages beside a turn's two have other ids; they are dropped when they are read.
    """
    turns, user_id = query.dropped_turns, query.scope.user_id
    if not turns:
        return first, facts
    ids = {derived_id(user_id, turn, role) for turn in turns for role in MESSAGES_OF_A_TURN}

    def left(scores: Mapping[str, float]) -> Mapping[str, float]:
        return {found: score for found, score in scores.items() if found not in ids}

    contexts = None if first.contexts is None else left(first.contexts)
    named = _Named([left(scores) for scores in first.lists], [left(scores) for scores in first.here], contexts)
    return named, [match for match in facts if match.entry.turn_id not in turns][:FACT_LIMIT]


async def _scores(
    index: VectorIndex, query: CandidateQuery, ids: Sequence[str], first: _Named, facts: Mapping[str, float]
) -> Mapping[Channel, Mapping[str, float]]:
    """Return each channel's scores of the points `ids`.

    The first round's scores are exact, so only the others are asked for; `facts` are the facts among `ids` with their
    cosines. A list that names fewer than its limit is complete: it lacks only what has no score there, and facts, which
    no list names. A fact has no context.
    """
    listed: dict[Channel, Mapping[str, float]] = dict(zip(LISTING, first.lists, strict=False))
    by_meaning = [*first.lists[:1], *first.lists[len(LISTING) :], *first.here, facts]  # a third list is a period's
    known: dict[Channel, Mapping[str, float]] = {
        "dense": {found: score for scores in by_meaning for found, score in scores.items()},
        "bm25": listed.get("bm25", {}),
    }
    if first.contexts is not None:
        known["context"] = listed["context"] = first.contexts
    lacking: dict[Channel, list[str]] = {}
    for channel in ("dense", *query.channels):
        is_complete = channel in listed and len(listed[channel]) < query.named
        there = known.get(channel, {})
        wanted = facts if is_complete else ids
        lacking[channel] = [one for one in wanted if one not in there and (channel != "context" or one not in facts)]
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


def _source_facts(facts: Sequence[Match]) -> dict[str, float]:
    """Map the id of each user's message to the similarity of the nearest fact that was learned from it."""
    source_facts: dict[str, float] = {}
    for match in facts:
        entry = match.entry
        if entry.turn_id is not None:
            source = derived_id(entry.user_id, entry.turn_id, "user")
            source_facts[source] = max(match.similarity, source_facts.get(source, -1.0))
    return source_facts
