"""Hits of messages that no search has ranked. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from recollect.memory.ports.vector_index import episode
from recollect.memory.recall.coverage.coverage import in_order
from recollect.memory.recall.hit import Hit
from recollect.memory.recall.ranking import recency
from recollect.memory.recall.repeats import Repeats, equal
from recollect.memory.recall.request import Request
from recollect.memory.values.filtering.items import message_item
from recollect.memory.values.turn import Message


def unranked(messages: Sequence[Message], request: Request, now: datetime) -> list[Hit]:
    """Make hits of the messages that fulfil the request's filter, in their order, with score and similarity 0."""
    shown, asked = set(request.shown), request.options.filter
    return [
        Hit(episode(message), 0.0, 0.0, recency(message.created_at, now))
        for message in messages
        if message.turn_id not in shown and (asked is None or asked.fulfilled(message_item(message)))
    ]


def merged(hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits in order of time, with equal ones merged into the newest of them; ties keep their order."""
    found = list[Hit]()
    for places in equal([hit.entry for hit in hits]):
        newest = hits[places[0]]
        found.append(replace(newest, repeats=Repeats.of([hits[place].entry for place in places])))
    return sorted(found, key=lambda hit: in_order(hit.entry))
