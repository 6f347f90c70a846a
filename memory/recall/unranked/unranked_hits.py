"""Hits of messages that no search has ranked. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from recollect.memory.ports.vector_index import Entry, episode
from recollect.memory.recall.coverage.coverage import in_order
from recollect.memory.recall.hit import CandidateTrace, Hit
from recollect.memory.recall.ranking import recency
from recollect.memory.recall.recall_options import RecallOptions
from recollect.memory.recall.repeats import Repeats, equal, says_the_same
from recollect.memory.recall.request import Request
from recollect.memory.values.filtering.items import message_item
from recollect.memory.values.turn import Message

RECENT = 5
"""How many memories `fallback_recent` returns at most."""


def unranked(messages: Sequence[Message], request: Request, now: datetime) -> list[Hit]:
    """Make hits of the messages that fulfil the request's filter, in their order, with score and similarity 0."""
    shown, asked = set(request.shown), request.options.filter
    return [
        Hit(episode(message), 0.0, 0.0, recency(message.created_at, now))
        for message in messages
        if message.turn_id not in shown and (asked is None or asked.fulfilled(message_item(message)))
    ]


def merged(hits: Sequence[Hit]) -> tuple[list[Hit], list[CandidateTrace]]:
    """Return the hits in order of time, with equal ones merged into the newest of them, and the others' traces.

    Ties keep their order.
    """
    found, dropped = list[Hit](), list[CandidateTrace]()
    for places in equal([hit.entry for hit in hits]):
        newest, entries = hits[places[0]], [hits[place].entry for place in places]
        found.append(replace(newest, repeats=Repeats.of(entries)))
        dropped += [CandidateTrace.of(older, {}, "repeat", says_the_same(newest.entry)) for older in entries[1:]]
    return sorted(found, key=lambda hit: in_order(hit.entry)), dropped


def newest_hits(entries: Sequence[Entry], options: RecallOptions, now: datetime) -> list[Hit]:
    """Make hits of the newest few of the entries, newest first, with equal ones merged; score and similarity are 0."""
    found, _ = merged([Hit(entry, 0.0, 0.0, recency(entry.created_at, now)) for entry in entries])
    return found[::-1][: min(RECENT, options.top_k)]
