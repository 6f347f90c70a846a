"""Verifies candidates against the store, which is the truth: the index may lag behind it.

A point whose fact has ended, whose thread was reopened or whose document has changed is dropped here, so that no search
shows it. The text of a hit is the store's, never the index's.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from recollect.memory.background.batches import batches
from recollect.memory.index.expected import passage_entry
from recollect.memory.ports.documents import Documents
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import Entry, Origin
from recollect.memory.recall.candidates.candidate import Candidate
from recollect.memory.recall.hit import CandidateTrace
from recollect.memory.values.fact import Fact
from recollect.memory.values.frozen import frozen

_MOST_AT_ONCE = 500
_GIVEN = "given with the user's facts"


@frozen
class Verification:
    """The candidates that the store confirms, and the traces of the dropped ones."""

    candidates: Sequence[Candidate]
    dropped: Sequence[CandidateTrace]


async def verify(
    store: Store,
    user_id: str,
    candidates: Sequence[Candidate],
    *,
    now: datetime,
    given_apart: bool,
    given: Collection[str] = (),
) -> Verification:
    """Read facts, summaries and passages from the store, and drop the candidates that it does not confirm.

    Messages never change and are kept as they are. A fact is kept if it holds at `now`. `given_apart`: the caller shows
    keyed and pinned facts anyway, so they are dropped; those whose ids are `given` are not read for that. `candidates`
    has at most 500 facts and 500 summaries.

    Raises:
        StoreUnavailable: the store cannot be reached.
    """
    derived = [one.entry for one in candidates if one.entry.kind != "episode"]
    if not derived:
        return Verification(candidates, [])
    unread = [entry.memory_id for entry in derived if entry.kind == "fact" and entry.memory_id not in given]
    facts = await _facts(store, user_id, unread)
    threads = [entry.thread_id for entry in derived if entry.kind == "summary" and entry.thread_id]
    texts = await _summaries(store, user_id, threads)
    passages = await verified_passages(store.documents, [entry for entry in derived if entry.kind == "document"])
    kept, dropped = list[Candidate](), list[CandidateTrace]()
    for candidate in candidates:
        entry = candidate.entry
        if entry.kind == "fact":
            fact = facts.get(entry.memory_id)
            text = fact.statement if fact is not None else ""
            reason = _GIVEN if entry.memory_id in given else _why_not(fact, now, given_apart=given_apart)
        elif entry.kind == "summary":
            text = texts.get(entry.id, "")
            reason = None if text else "the thread is not archived now"
        elif entry.kind == "document":
            found = passages.get(entry.id)
            if found is not None:
                kept.append(candidate._replace(entry=found))
                continue
            text, reason = "", "the document does not say it now"
        else:
            kept.append(candidate)
            continue
        if reason is None:
            kept.append(candidate if text == entry.content else candidate._replace(entry=replace(entry, content=text)))
        else:
            dropped.append(CandidateTrace.of(entry, {"dense": candidate.dense or 0.0}, "gone", reason))
    return Verification(kept, dropped)


def _why_not(fact: Fact | None, now: datetime, *, given_apart: bool) -> str | None:
    if fact is None or not fact.holds(now):
        return "the fact does not hold now"
    if given_apart and (fact.key is not None or fact.pinned):
        return _GIVEN
    return None


async def _facts(store: Store, user_id: str, ids: Sequence[str]) -> dict[str, Fact]:
    found = await store.facts.facts(user_id=user_id, fact_ids=ids) if ids else []
    return {fact.id: fact for fact in found}


async def _summaries(store: Store, user_id: str, threads: Sequence[str]) -> dict[str, str]:
    """Return the summaries of those of `threads` that are archived, by the ids of their points."""
    records = await store.threads.records(user_id=user_id, thread_ids=threads) if threads else []
    return {record.point_id: record.summary for record in records if record.has_point and record.summary}


async def verified_passages(documents: Documents, entries: Sequence[Entry]) -> dict[str, Entry]:
    """Return by id those of the passages `entries` that are still in their documents.

    Text, title, domain, source and page are read from the store, because they may change without a new point.
    """
    found: dict[str, Entry] = {}
    for owner in dict.fromkeys(entry.user_id for entry in entries):
        ids = [entry.id for entry in entries if entry.user_id == owner]
        for batch in batches(ids, _MOST_AT_ONCE):
            passages = await documents.passages.passages(user_id=owner, passage_ids=batch)
            named = list({passage.document_id for passage in passages})
            owners_documents = {each.id: each for each in await documents.by_ids(user_id=owner, document_ids=named)}
            for passage in passages:
                if (document := owners_documents.get(passage.document_id)) is not None:
                    origin = Origin(document.id, document.title, document.domain, document.source, passage.page)
                    entry = replace(passage_entry(passage), created_at=document.updated_at, origin=origin)
                    found[passage.id] = entry
    return found
