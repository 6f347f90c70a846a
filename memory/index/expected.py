"""Derives from the store which points the index must hold, and finds where an index differs from that.

A message must have a point once its index step is done; a fact, thread record or passage once it is flagged `indexed`.
Until then it is *pending*: its point counts neither as missing nor as an orphan.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import Literal, NamedTuple, TypeVar

from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import Entry, Origin, PointStore, episode, fact_point_id, index_fingerprint
from recollect.memory.values.document import Passage
from recollect.memory.values.fact import Fact
from recollect.memory.values.filtering.items import fact_item
from recollect.memory.values.scope import Scope
from recollect.memory.values.thread_record import ThreadRecord
from recollect.memory.values.times import from_ms

Stored = TypeVar("Stored")
Pending = Literal["pending"]


def fact_entry(fact: Fact) -> Entry:
    """Make the entry of an open fact; a thread's own fact is found in that thread alone."""
    return Entry(
        id=fact_point_id(fact.user_id, fact.id),
        user_id=fact.user_id,
        thread_id=fact.home,
        turn_id=fact.turn_id,
        kind="fact",
        content=fact.statement,
        created_at=fact.created_at,
        fact_id=fact.id,
        item=fact_item(fact),
    )


def summary_entry(record: ThreadRecord) -> Entry:
    """Make the entry of an archived thread's summary."""
    return Entry(
        id=record.point_id,
        user_id=record.user_id,
        thread_id=record.thread_id,
        turn_id=None,
        kind="summary",
        content=record.summary or "",
        created_at=record.summarised_at or record.archived_at or from_ms(0),
    )


def passage_entry(passage: Passage) -> Entry:
    """Make the entry of a document's passage, without its place in the document, because that may change."""
    return Entry(
        id=passage.id,
        user_id=passage.user_id,
        thread_id=None,
        turn_id=None,
        kind="document",
        content=passage.said,
        created_at=passage.created_at,
        origin=Origin(passage.document_id),
    )


async def expected(store: Store, *, user_id: str | None = None) -> AsyncIterator[list[Entry]]:
    """Yield the entries that the index must hold for one user, or for all, in batches of at most 500."""
    for batches in _by_kind(store, user_id):
        async for entries in batches:
            yield entries


async def first_expected(store: Store) -> AsyncIterator[list[Entry]]:
    """Yield the first batch of each kind of the entries that the index must hold for all users."""
    for batches in _by_kind(store, None):
        async for entries in batches:
            yield entries
            break


def _by_kind(store: Store, user_id: str | None) -> Sequence[AsyncIterator[list[Entry]]]:
    return (
        _entries(store.conversations.indexed_messages(user_id=user_id), episode),
        _entries(store.facts.indexed(user_id=user_id), fact_entry),
        _entries(store.threads.indexed(user_id=user_id), summary_entry),
        _entries(store.documents.passages.indexed(user_id=user_id), passage_entry),
    )


async def _entries(
    batches: AsyncIterator[Sequence[Stored]], entry_of: Callable[[Stored], Entry]
) -> AsyncIterator[list[Entry]]:
    async for batch in batches:
        yield [entry_of(stored) for stored in batch]


async def count_expected(store: Store, *, user_id: str | None = None) -> int:
    """Count the entries that `expected` yields; for all users without reading them."""
    if user_id is not None:
        return sum([len(entries) async for entries in expected(store, user_id=user_id)])
    messages = await store.conversations.count_indexed_messages()
    facts, records = await store.facts.count_indexed(), await store.threads.count_indexed()
    return messages + facts + records + await store.documents.passages.count_indexed()


async def called_for(store: Store, entry: Entry) -> Entry | Pending | None:
    """Return the entry that the point with this id must be made from now, "pending", or None if it must not exist."""
    match entry.kind:
        case "episode":
            return await _episode(store, entry)
        case "fact":
            return await _fact(store, entry)
        case "summary":
            return await _summary(store, entry)
        case "document":
            found = await store.documents.passages.passages(user_id=entry.user_id, passage_ids=[entry.id])
            if not found:
                return None
            return passage_entry(found[0]) if found[0].indexed else "pending"


async def _fact(store: Store, entry: Entry) -> Entry | Pending | None:
    fact = await store.facts.fact(user_id=entry.user_id, fact_id=entry.memory_id)
    if fact is None or (fact.indexed and not fact.is_open):
        return None
    said = fact_entry(fact)
    if said.id != entry.id:  # an earlier version gave a fact's point the fact's own id
        return None
    return said if fact.indexed else "pending"


async def _episode(store: Store, entry: Entry) -> Entry | Pending | None:
    turn = await store.conversations.turn(user_id=entry.user_id, turn_id=entry.turn_id or "")
    if turn is None or turn.reply is None or turn.update is None:
        return None
    message = next((message for message in turn.spoken if message.id == entry.id), None)
    step = turn.update.steps.get("index")
    if message is None or step is None or step.status == "skipped":
        return None
    return episode(message) if step.status == "done" else "pending"


async def _summary(store: Store, entry: Entry) -> Entry | Pending | None:
    if entry.thread_id is None:
        return None
    record = await store.threads.record(Scope(entry.user_id, entry.thread_id))
    if record is None or record.point_id != entry.id or (record.indexed and not record.has_point):
        return None
    return summary_entry(record) if record.indexed else "pending"


class Differing(NamedTuple):
    """Entries without a point, and entries whose point was made by another embedder or scheme, or from another text."""

    missing: list[Entry]
    wrong: list[Entry]


async def differing(points: PointStore, entries: Sequence[Entry], *, model: str, dimension: int) -> Differing:
    """Return those of `entries` (at most 500) whose points are missing or have another fingerprint."""
    found = await points.fingerprints([entry.id for entry in entries])
    missing = [entry for entry in entries if entry.id not in found]
    wrong = [
        entry
        for entry in entries
        if entry.id in found and found[entry.id] != index_fingerprint(entry, model=model, dimension=dimension)
    ]
    return Differing(missing, wrong)


async def orphans(
    store: Store, points: PointStore, ids: AbstractSet[str], *, user_id: str | None = None
) -> AsyncIterator[Entry]:
    """Yield the points outside of `ids` (the expected ones) without a source in the store: of one user, or of all.

    Each is looked up in the store once more, because it may have been written after `ids` were collected.
    """
    after = None
    while page := await points.ids(after=after):
        after = page[-1]
        strangers = [point for point in page if point not in ids]
        for entry in await points.entries(strangers) if strangers else ():
            if user_id in (None, entry.user_id) and await called_for(store, entry) is None:
                yield entry
