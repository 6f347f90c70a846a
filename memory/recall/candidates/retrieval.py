"""Retrieves the candidates of one search from the index, each with its raw score in every channel."""

import asyncio
import itertools
from collections.abc import Mapping, Sequence

from recollect.memory.ports.vector_index import Channel, Entry, Match, Vector, VectorIndex
from recollect.memory.recall.candidates.candidate import Candidate
from recollect.memory.recall.candidates.candidate_query import LISTING, CandidateQuery
from recollect.memory.recall.candidates.choosing import promising
from recollect.memory.values.turn import derived_id


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
    beside = [*itertools.chain(*here), *own]
    ids = list(dict.fromkeys([*promising([*lists, source_facts], query.depth), *beside]))
    if not ids:
        return []
    by_channel, entries = await asyncio.gather(
        _scores(index, query, ids, lists=lists, here=here, facts=own), _read(index, query, ids, facts)
    )
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
        is_complete = channel in listed and len(listed[channel]) < query.named
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


def _source_facts(facts: Sequence[Match]) -> dict[str, float]:
    """Map the id of each user's message to the similarity of the nearest fact that was learned from it."""
    source_facts: dict[str, float] = {}
    for match in facts:
        entry = match.entry
        if entry.turn_id is not None:
            source = derived_id(entry.user_id, entry.turn_id, "user")
            source_facts[source] = max(match.similarity, source_facts.get(source, -1.0))
    return source_facts
