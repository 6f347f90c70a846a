"""Finds out what a filter lets a search find, by looking at the newest items of the scope in the store."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import nlargest

from recollect.memory.background.scanning import MOST_CHECKED, PAGE
from recollect.memory.ports.documents import Documents
from recollect.memory.ports.store import Store
from recollect.memory.ports.timeline import Timeline
from recollect.memory.ports.vector_index import Kind, fact_point_id
from recollect.memory.values.filter import Filter
from recollect.memory.values.filter_items import document_item, fact_item, message_item, summary_item
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Message

MESSAGES_AT_ONCE = 150
"""How many messages are read at a time: checking them holds the event loop for about two milliseconds."""
_Checked = tuple[datetime, str, bool]
"""A time, the id of a point, and whether its item fulfils the filter."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """The ids of the points that a filter lets a search find. `is_complete`: no item was left unchecked."""

    points: frozenset[str]
    is_complete: bool


async def allowed_points(store: Store, scope: Scope, kinds: Sequence[Kind], asked: Filter) -> Allowed:
    """Return the points of messages, facts and summaries that fulfil `asked`.

    Raises:
        StoreUnavailable: the store cannot be reached.
    """
    parts = list[Allowed]()
    if "episode" in kinds:
        parts.append(await _messages(store.timeline, scope, asked))
    if "fact" in kinds:
        parts.append(await _facts(store, scope.user_id, asked))
    if "summary" in kinds:
        parts.append(await _summaries(store, scope.user_id, asked))
    points = frozenset(point for part in parts for point in part.points)
    return Allowed(points, all(part.is_complete for part in parts))


async def pages_of_messages(timeline: Timeline, scope: Scope) -> AsyncIterator[Sequence[Message]]:
    """Yield the newest messages of the scope in pages, one more than are checked, without their texts."""
    before: Message | None = None
    left = MOST_CHECKED + 1
    while left and (page := await timeline.described(scope, limit=min(MESSAGES_AT_ONCE, left), before=before)):
        yield page
        before, left = page[-1], left - len(page)


async def allowed_documents(documents: Documents, owner: str, asked: Filter) -> tuple[list[str], bool]:
    """Return the ids of the owner's documents that fulfil `asked`, newest first, and whether all were checked."""
    before: tuple[datetime, str] | None = None
    found, seen = list[str](), 0
    while page := await documents.page(owner, limit=PAGE, before=before):
        seen += len(page)
        if seen > MOST_CHECKED:
            return found, False
        found += [one.id for one in page if asked.fulfilled(document_item(one))]
        before = (page[-1].created_at, page[-1].id)
    return found, True


async def _messages(timeline: Timeline, scope: Scope, asked: Filter) -> Allowed:
    found, seen = set[str](), 0
    async for page in pages_of_messages(timeline, scope):
        checked = page[: MOST_CHECKED - seen]
        seen += len(page)
        spoken = (one for message in checked for one in message.spoken)
        found.update(one.id for one in spoken if asked.fulfilled(message_item(one)))
    return Allowed(frozenset(found), seen <= MOST_CHECKED)


async def _facts(store: Store, user_id: str, asked: Filter) -> Allowed:
    seen = list[_Checked]()
    async for facts in store.facts.indexed(user_id=user_id):
        seen += [(fact.created_at, fact_point_id(user_id, fact.id), asked.fulfilled(fact_item(fact))) for fact in facts]
    return _newest(seen)


async def _summaries(store: Store, user_id: str, asked: Filter) -> Allowed:
    seen = list[_Checked]()
    async for records in store.threads.indexed(user_id=user_id):
        items = [(record.point_id, summary_item(record)) for record in records]
        seen += [(item.created_at, point_id, asked.fulfilled(item)) for point_id, item in items]
    return _newest(seen)


def _newest(seen: Sequence[_Checked]) -> Allowed:
    newest = nlargest(MOST_CHECKED, seen) if len(seen) > MOST_CHECKED else seen
    return Allowed(frozenset(point_id for _, point_id, fits in newest if fits), len(seen) <= MOST_CHECKED)
