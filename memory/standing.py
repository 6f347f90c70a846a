"""Standing: which candidates the documents stand behind now, with the documents' text."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memory.candidate import Candidate
from memory.documents import Documents
from memory.fact import Fact
from memory.hit import Traced


@dataclass(frozen=True, slots=True)
class Standing:
    """The candidates that stand, and the ways of those that do not."""

    candidates: Sequence[Candidate]
    fallen: Sequence[Traced]


async def standing(
    documents: Documents, user_id: str, candidates: Sequence[Candidate], *, now: datetime, given_apart: bool
) -> Standing:
    """Facts and summaries (at most 500) as the documents have them now; messages, which never change, as they are.

    A fact stands if it holds at `now`. `given_apart`: the caller gets the keyed and the pinned ones in any case, so
    they are no candidates.

    Raises:
        StoreUnavailable: nobody knows.
    """
    derived = [one.entry for one in candidates if one.entry.kind in {"fact", "summary"}]
    if not derived:
        return Standing(candidates, [])
    facts = await _facts(documents, user_id, [entry.id for entry in derived if entry.kind == "fact"])
    threads = [entry.thread_id for entry in derived if entry.kind == "summary" and entry.thread_id]
    texts = await _summaries(documents, user_id, threads)
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
