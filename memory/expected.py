"""What the index must hold, as the documents say it, and where an index differs from that.

Messages have a point once their index step is done; facts, thread records and passages as their `indexed` flag says.
What the index has yet to follow is *pending*: its point is neither missing nor an orphan.
"""

from collections.abc import AsyncIterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Literal, NamedTuple

from memory.documents import Documents
from memory.fact import Fact
from memory.library import Passage
from memory.scope import Scope
from memory.thread_record import ThreadRecord
from memory.times import from_ms
from memory.vector_index import Entry, Origin, PointStore, episode, fingerprint

Pending = Literal["pending"]


def fact_entry(fact: Fact) -> Entry:
    """The entry of an open fact; one of a thread is found in that thread alone."""
    return Entry(
        id=fact.id,
        user_id=fact.user_id,
        thread_id=fact.home,
        turn_id=fact.turn_id,
        kind="fact",
        content=fact.statement,
        created_at=fact.created_at,
    )


def summary_entry(record: ThreadRecord) -> Entry:
    """The entry of an archived thread's summary."""
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
    """The entry of a document's passage; where it stands in the document is not part of it, because that changes."""
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


async def expected(documents: Documents, *, user_id: str | None = None) -> AsyncIterator[list[Entry]]:
    """What the index must hold of one user, or of all, in batches of at most 500."""
    async for messages in documents.conversations.indexed_messages(user_id=user_id):
        yield [episode(message) for message in messages]
    async for facts in documents.facts.indexed(user_id=user_id):
        yield [fact_entry(fact) for fact in facts]
    async for records in documents.threads.indexed(user_id=user_id):
        yield [summary_entry(record) for record in records]
    async for passages in documents.library.passages.indexed(user_id=user_id):
        yield [passage_entry(passage) for passage in passages]


async def count_expected(documents: Documents, *, user_id: str | None = None) -> int:
    """How many entries `expected` yields; of all users without reading them."""
    if user_id is not None:
        return sum([len(entries) async for entries in expected(documents, user_id=user_id)])
    messages = await documents.conversations.count_indexed_messages()
    facts, records = await documents.facts.count_indexed(), await documents.threads.count_indexed()
    return messages + facts + records + await documents.library.passages.count_indexed()


async def called_for(documents: Documents, entry: Entry) -> Entry | Pending | None:
    """What the documents say now of this entry's point: what it must be, "pending", or that there is to be none."""
    match entry.kind:
        case "episode":
            return await _episode(documents, entry)
        case "fact":
            fact = await documents.facts.fact(user_id=entry.user_id, fact_id=entry.id)
            if fact is None or (fact.indexed and not fact.is_open):
                return None
            return fact_entry(fact) if fact.indexed else "pending"
        case "summary":
            return await _summary(documents, entry)
        case "document":
            found = await documents.library.passages.passages(user_id=entry.user_id, passage_ids=[entry.id])
            if not found:
                return None
            return passage_entry(found[0]) if found[0].indexed else "pending"


async def _episode(documents: Documents, entry: Entry) -> Entry | Pending | None:
    turn = await documents.conversations.turn(user_id=entry.user_id, turn_id=entry.turn_id or "")
    if turn is None or turn.reply is None or turn.update is None:
        return None
    message = next((message for message in turn.messages if message.id == entry.id), None)
    step = turn.update.steps.get("index")
    if message is None or step is None or step.status == "skipped":
        return None
    return episode(message) if step.status == "done" else "pending"


async def _summary(documents: Documents, entry: Entry) -> Entry | Pending | None:
    if entry.thread_id is None:
        return None
    record = await documents.threads.record(Scope(entry.user_id, entry.thread_id))
    if record is None or record.point_id != entry.id or (record.indexed and not record.has_point):
        return None
    return summary_entry(record) if record.indexed else "pending"


class Differing(NamedTuple):
    """Entries without a point, and those whose point was made by another embedder or scheme, or from another text."""

    missing: list[Entry]
    wrong: list[Entry]


async def differing(points: PointStore, entries: Sequence[Entry], *, model: str, dimension: int) -> Differing:
    """Which of these entries (at most 500) the index does not hold as it should."""
    found = await points.fingerprints([entry.id for entry in entries])
    missing = [entry for entry in entries if entry.id not in found]
    wrong = [
        entry
        for entry in entries
        if entry.id in found and found[entry.id] != fingerprint(entry, model=model, dimension=dimension)
    ]
    return Differing(missing, wrong)


async def orphans(
    documents: Documents, points: PointStore, ids: AbstractSet[str], *, user_id: str | None = None
) -> AsyncIterator[Entry]:
    """The points outside `ids` (what was expected) that no document calls for now: of one user, or of all."""
    after = None
    while page := await points.ids(after=after):
        after = page[-1]
        strangers = [point for point in page if point not in ids]
        for entry in await points.entries(strangers) if strangers else ():
            if user_id in (None, entry.user_id) and await called_for(documents, entry) is None:
                yield entry
