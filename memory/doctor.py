"""Compares documents and index, user by user, and says what is wrong and what to do about it."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from shlex import quote
from typing import Any

from memory.documents import Documents
from memory.embedder import Embedder
from memory.expected import called_for, differing, expected, orphans
from memory.vector_index import Entry, Kind, VectorIndex

LOOKED_AT_AGAIN = 1_000
"""Up to so many differences of a user are looked at a second time: while it serves, the two stores move apart for an
instant."""
OWED = 500
"""So many facts and so many thread records that wait for the index are counted; more count as that many."""
_BATCH = 500


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found of one user, or of all.

    `messages`, `facts`, `summaries` and `passages` (of documents) are those that the index must hold, `points` those
    that it holds. `pending` are turns, facts, summaries and passages still on their way, `failed` turns whose update
    was given up.
    """

    messages: int = 0
    facts: int = 0
    summaries: int = 0
    passages: int = 0
    points: int = 0
    missing: int = 0
    orphaned: int = 0
    wrong_fingerprint: int = 0
    pending: int = 0
    failed: int = 0
    oldest_pending_seconds: float | None = None

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong. What is pending is not wrong."""
        return not (self.missing or self.orphaned or self.wrong_fingerprint or self.failed)


@dataclass(frozen=True, slots=True)
class Report:
    """What the doctor found: per user, in all, and collections that other embedders left."""

    users: dict[str, Findings]
    totals: Findings
    other_collections: tuple[str, ...] = ()

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong."""
        return self.totals.healthy

    @property
    def advice(self) -> list[str]:
        """What to do, a sentence each."""
        found = self.totals
        differs = [user_id for user_id, said in self.users.items() if not _agrees(said)]
        said = list[str]()
        if len(differs) == 1 and len(self.users) > 1:
            command = f"recollect reindex --user {quote(differs[0])}"
            said.append(f"The index differs from the documents for one user: run `{command}`.")
        elif differs:
            said.append("The index differs from the documents: run `recollect reindex`.")
        if found.failed:
            said.append(f"{found.failed} turns were not learned from: run `recollect learn --failed`.")
        if found.pending:
            said.append(f"{found.pending} updates are pending: a running service works them off by itself.")
        if self.other_collections:
            names = ", ".join(self.other_collections)
            said.append(
                f"Other embedders' collections are never searched; delete them when you need them no more: {names}."
            )
        return said

    def as_json(self) -> dict[str, Any]:
        """As the HTTP contract shows it."""
        return {
            "healthy": self.healthy,
            "advice": self.advice,
            "totals": asdict(self.totals),
            "users": [{"user_id": user_id, **asdict(found)} for user_id, found in self.users.items()],
            "other_collections": list(self.other_collections),
        }


async def examine(documents: Documents, index: VectorIndex, embedder: Embedder, *, now: datetime) -> Report:
    """Compare all that the documents call for with all that the index holds.

    Raises:
        StoreUnavailable, ModelUnavailable: a store, or the embedder that the index waits for, cannot be reached.
    """
    examination = _Examination(documents, index, embedder, now)
    ids = set[str]()
    users = dict[str, Findings]()
    async for user_id in _each(documents):
        users[user_id] = await examination.of_user(user_id, ids)
    strays = Counter(await examination.strays(ids))
    for user_id, orphaned in sorted(strays.items()):
        found = users.get(user_id) or Findings(points=await index.count(user_id=user_id))
        users[user_id] = _with(found, orphaned=orphaned)
    return Report(users, _total(list(users.values())), tuple(await index.other_collections()))


async def _each(documents: Documents) -> AsyncIterator[str]:
    async for batch in documents.users():
        for user_id in batch:
            yield user_id


@dataclass(frozen=True, slots=True)
class _Examination:
    documents: Documents
    index: VectorIndex
    embedder: Embedder
    now: datetime

    async def of_user(self, user_id: str, ids: set[str]) -> Findings:
        """What there is to say of a user whom the documents know, apart from orphans; `ids` takes up the expected."""
        kinds, missing, wrong = Counter[Kind](), list[Entry](), list[Entry]()
        async for entries in expected(self.documents, user_id=user_id):
            ids.update(entry.id for entry in entries)
            kinds.update(entry.kind for entry in entries)
            found = await self._differing(entries)
            missing += found[0]
            wrong += found[1]
        missing, wrong = await self._looked_at_again(missing, wrong)
        backlog = await self.documents.updates.backlog(user_id)
        owed = await self.documents.facts.owed(user_id=user_id, limit=OWED)
        owed_records = await self.documents.threads.owed(user_id=user_id, limit=OWED)
        owed_passages = await self.documents.library.passages.count_owed(user_id)
        waits = max(0.0, (self.now - backlog.oldest).total_seconds()) if backlog.oldest is not None else None
        return Findings(
            messages=kinds["episode"],
            facts=kinds["fact"],
            summaries=kinds["summary"],
            passages=kinds["document"],
            points=await self.index.count(user_id=user_id),
            missing=len(missing),
            wrong_fingerprint=len(wrong),
            pending=backlog.pending + len(owed) + len(owed_records) + owed_passages,
            failed=backlog.failed,
            oldest_pending_seconds=waits,
        )

    async def strays(self, ids: set[str]) -> list[str]:
        """The users of the points that no document calls for, one for each point."""
        found = [entry async for entry in orphans(self.documents, self.index, ids)]
        if len(found) <= LOOKED_AT_AGAIN:
            there = set[str]()
            for start in range(0, len(found), _BATCH):
                there.update(await self.index.fingerprints([entry.id for entry in found[start : start + _BATCH]]))
            found = [entry for entry in found if entry.id in there]
        return [entry.user_id for entry in found]

    async def _differing(self, entries: Sequence[Entry]) -> tuple[list[Entry], list[Entry]]:
        dimension = await self.embedder.dimension()
        return await differing(self.index, entries, model=self.embedder.model, dimension=dimension)

    async def _looked_at_again(self, missing: list[Entry], wrong: list[Entry]) -> tuple[list[Entry], list[Entry]]:
        suspects = [*missing, *wrong]
        if len(suspects) > LOOKED_AT_AGAIN:
            return missing, wrong
        entries = list[Entry]()
        for suspect in suspects:
            said = await called_for(self.documents, suspect)
            if isinstance(said, Entry):
                entries.append(said)
        missing, wrong = [], []
        for start in range(0, len(entries), _BATCH):
            found = await self._differing(entries[start : start + _BATCH])
            missing += found[0]
            wrong += found[1]
        return missing, wrong


def _agrees(found: Findings) -> bool:
    return not (found.missing or found.orphaned or found.wrong_fingerprint)


def _with(found: Findings, *, orphaned: int) -> Findings:
    return Findings(**{**asdict(found), "orphaned": orphaned})


def _total(found: Sequence[Findings]) -> Findings:
    names = [item.name for item in fields(Findings) if item.name != "oldest_pending_seconds"]
    sums = {name: sum(getattr(item, name) for item in found) for name in names}
    waits = [item.oldest_pending_seconds for item in found if item.oldest_pending_seconds is not None]
    return Findings(**sums, oldest_pending_seconds=max(waits, default=None))
