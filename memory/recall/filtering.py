"""Finds out what a filter lets a search find: by terms where these say enough, and by looking at the newest items."""

import sys
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from heapq import nlargest

from recollect.memory.background.scanning import MOST_CHECKED, PAGE
from recollect.memory.ports.store import Store
from recollect.memory.ports.timeline import Timeline
from recollect.memory.ports.vector_index import Allowance, Kind, fact_point_id
from recollect.memory.recall.known_terms import KnownTerms
from recollect.memory.values.filtering.filter import Filter
from recollect.memory.values.filtering.items import document_item, fact_item, message_item, summary_item
from recollect.memory.values.filtering.keys import FilterKeys
from recollect.memory.values.filtering.narrow import ALL, NONE, Narrow
from recollect.memory.values.filtering.narrowing import narrowing
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Message

MESSAGES_AT_ONCE = 150
"""How many messages are read at a time: checking them holds the event loop for about two milliseconds."""
_Checked = tuple[datetime, str, bool]
"""A time, the id of a point, and whether its item fulfils the filter."""


@frozen
class Allowed:
    """Holds what a filter lets a search find, apart from passages. `is_complete`: no item was left unchecked.

    `points` are the ids of points whose items were looked at; `messages` and `facts` are what the terms of other points
    must fulfil.
    """

    points: frozenset[str]
    is_complete: bool
    messages: Narrow = NONE
    facts: Narrow = NONE

    def of(self, kind: Kind) -> Allowance:
        """Return what is allowed of this kind, and of those that have no terms."""
        return Allowance(self.points, self.facts if kind == "fact" else self.messages)


async def allowed_points(
    store: Store, scope: Scope, kinds: Sequence[Kind], asked: Filter, known: KnownTerms
) -> Allowed:
    """Return what `asked` allows of messages, facts and summaries; `known` are the terms of the scope's user.

    Raises:
        StoreUnavailable: the store cannot be reached.
    """
    parts = list[Allowed]()
    if "episode" in kinds:
        parts.append(await _messages(store.timeline, scope, asked, known))
    if "fact" in kinds:
        parts.append(await _facts(store, scope.user_id, asked, known))
    if "summary" in kinds:
        parts.append(await _summaries(store, scope.user_id, asked, known.keys))
    points = frozenset(point for part in parts for point in part.points)
    messages = next((part.messages for part in parts if part.messages != NONE), NONE)
    facts = next((part.facts for part in parts if part.facts != NONE), NONE)
    return Allowed(points, all(part.is_complete for part in parts), messages, facts)


async def pages_of_messages(timeline: Timeline, scope: Scope, where: Narrow = ALL) -> AsyncIterator[Sequence[Message]]:
    """Yield the newest messages of the scope in pages, one more than are checked, without their texts."""
    before: Message | None = None
    left = MOST_CHECKED + 1
    while left and (
        page := await timeline.described(scope, limit=min(MESSAGES_AT_ONCE, left), before=before, where=where)
    ):
        yield page
        before, left = page[-1], left - len(page)


async def allowed_documents(store: Store, owner: str, asked: Filter, keys: FilterKeys) -> tuple[list[str], bool]:
    """Return the ids of the owner's documents that fulfil `asked`, newest first, and whether all were checked."""
    narrowed = await KnownTerms(store.filter_terms, owner, keys).meant(asked, "document")
    before: tuple[datetime, str] | None = None
    found, failed = list[str](), 0
    while page := await store.documents.page(owner, limit=PAGE, before=before, where=narrowed.perhaps):
        fitting = [one.id for one in page if asked.fulfilled(document_item(one))]
        failed += len(page) - (len(fitting) if narrowed.is_whole else 0)
        if failed > MOST_CHECKED:
            return found, False
        found += fitting
        before = (page[-1].created_at, page[-1].id)
    return found, True


async def _messages(timeline: Timeline, scope: Scope, asked: Filter, known: KnownTerms) -> Allowed:
    terms, unclear = await known.narrowed(asked, "episode")
    found, seen = set[str](), 0
    async for page in pages_of_messages(timeline, scope, unclear):
        checked = page[: MOST_CHECKED - seen]
        seen += len(page)
        spoken = (one for message in checked for one in message.spoken)
        found.update(one.id for one in spoken if asked.fulfilled(message_item(one)))
    return Allowed(frozenset(found), seen <= MOST_CHECKED, messages=terms)


async def _facts(store: Store, user_id: str, asked: Filter, known: KnownTerms) -> Allowed:
    terms, unclear = await known.narrowed(asked, "fact")
    seen = list[_Checked]()
    async for facts in store.facts.indexed(user_id=user_id, where=unclear):
        seen += [(fact.created_at, fact_point_id(user_id, fact.id), asked.fulfilled(fact_item(fact))) for fact in facts]
    points, is_complete = _newest(seen)
    return Allowed(points, is_complete, facts=terms)


async def _summaries(store: Store, user_id: str, asked: Filter, keys: FilterKeys) -> Allowed:
    seen = list[_Checked]()
    async for records in store.threads.indexed(user_id=user_id):
        items = [(record.point_id, summary_item(record)) for record in records]
        seen += [(item.created_at, point_id, asked.fulfilled(item)) for point_id, item in items]
    is_whole = narrowing(asked, keys, "episode").is_whole
    return Allowed(*_newest(seen, most=sys.maxsize if is_whole else MOST_CHECKED))


def _newest(seen: Sequence[_Checked], *, most: int = MOST_CHECKED) -> tuple[frozenset[str], bool]:
    newest = nlargest(most, seen) if len(seen) > most else seen
    return frozenset(point_id for _, point_id, fits in newest if fits), len(seen) <= most
