"""Standing: which candidates the documents stand behind now, with the documents' text."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memory.candidate import Candidate
from memory.documents import Documents
from memory.expected import passage_entry
from memory.fact import Fact
from memory.hit import Traced
from memory.library import Library
from memory.vector_index import Entry, Origin

_MOST_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Standing:
    """The candidates that stand, and the ways of those that do not."""

    candidates: Sequence[Candidate]
    fallen: Sequence[Traced]


async def standing(
    documents: Documents, user_id: str, candidates: Sequence[Candidate], *, now: datetime, given_apart: bool
) -> Standing:
    """Facts, summaries and passages as the documents have them now; messages, which never change, as they are.

    At most 500 of each. A fact stands if it holds at `now`. `given_apart`: the caller gets the keyed and the pinned
    ones in any case, so they are no candidates.

    Raises:
        StoreUnavailable: nobody knows.
    """
    derived = [one.entry for one in candidates if one.entry.kind != "episode"]
    if not derived:
        return Standing(candidates, [])
    facts = await _facts(documents, user_id, [entry.id for entry in derived if entry.kind == "fact"])
    threads = [entry.thread_id for entry in derived if entry.kind == "summary" and entry.thread_id]
    texts = await _summaries(documents, user_id, threads)
    passages = await standing_passages(documents.library, [entry for entry in derived if entry.kind == "document"])
    kept, fallen = list[Candidate](), list[Traced]()
    for candidate in candidates:
        entry = candidate.entry
        if entry.kind == "fact":
            fact = facts.get(entry.id)
            text = fact.statement if fact is not None else ""
            reason = _why_not(fact, now, given_apart=given_apart)
        elif entry.kind == "summary":
            text = texts.get(entry.id, "")
            reason = None if text else "the thread is not archived now"
        elif entry.kind == "document":
            found = passages.get(entry.id)
            if found is not None:
                kept.append(replace(candidate, entry=found))
                continue
            text, reason = "", "the document does not say it now"
        else:
            kept.append(candidate)
            continue
        if reason is None:
            kept.append(replace(candidate, entry=replace(entry, content=text)))
        else:
            fallen.append(Traced(entry.id, {"dense": candidate.dense or 0.0}, "gone", reason))
    return Standing(kept, fallen)


def _why_not(fact: Fact | None, now: datetime, *, given_apart: bool) -> str | None:
    if fact is None or not fact.holds(now):
        return "the fact does not hold now"
    if given_apart and (fact.key is not None or fact.pinned):
        return "given with the user's facts"
    return None


async def _facts(documents: Documents, user_id: str, ids: Sequence[str]) -> dict[str, Fact]:
    found = await documents.facts.facts(user_id=user_id, fact_ids=ids) if ids else []
    return {fact.id: fact for fact in found}


async def _summaries(documents: Documents, user_id: str, threads: Sequence[str]) -> dict[str, str]:
    """Summaries of archived threads, by their points' ids."""
    records = await documents.threads.records(user_id=user_id, thread_ids=threads) if threads else []
    return {record.point_id: record.summary for record in records if record.has_point and record.summary}


async def standing_passages(library: Library, entries: Sequence[Entry]) -> dict[str, Entry]:
    """Those of these passages that their documents still have, by id: with their text, document and place of now."""
    found: dict[str, Entry] = {}
    for owner in dict.fromkeys(entry.user_id for entry in entries):
        ids = [entry.id for entry in entries if entry.user_id == owner]
        for start in range(0, len(ids), _MOST_AT_ONCE):
            passages = await library.passages.passages(user_id=owner, passage_ids=ids[start : start + _MOST_AT_ONCE])
            named = list({passage.document_id for passage in passages})
            documents = {each.id: each for each in await library.documents(user_id=owner, document_ids=named)}
            for passage in passages:
                if (document := documents.get(passage.document_id)) is not None:
                    origin = Origin(document.id, document.title, document.domain, document.source, passage.page)
                    entry = replace(passage_entry(passage), created_at=document.updated_at, origin=origin)
                    found[passage.id] = entry
    return found
