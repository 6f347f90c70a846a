"""Compares store and index, user by user, and reports what is wrong and what to do about it."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, fields
from datetime import datetime
from shlex import quote
from typing import Any

from recollect.memory.background.batches import batches
from recollect.memory.index.expected import called_for, differing, expected, orphans
from recollect.memory.ports.embedder import Embedder
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import Entry, Kind, VectorIndex
from recollect.memory.updates.delays import Delay, delays_of, summed
from recollect.memory.values.frozen import frozen

LOOKED_AT_AGAIN = 1_000
"""Up to this many differences of a user are checked a second time, because store and index differ for an instant
at each write while the service runs."""
OWED = 500
"""How many facts, and how many thread records, that wait for the index are counted at most."""
_BATCH = 500


@frozen
class Findings:
    """The counts of one user, or of all.

    `messages`, `facts`, `summaries` and `passages` (of documents) are those that the index must hold; `points` are
    those that it holds. `missing`, `orphaned` and `wrong_fingerprint` are the differences. `pending` are turns, facts,
    summaries and passages that wait for the index; `failed` are turns whose update was given up.
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
        """Tell whether nothing is wrong. Pending work is not wrong."""
        return not (self.missing or self.orphaned or self.wrong_fingerprint or self.failed)


@frozen
class Report:
    """The doctor's findings by user and in all, other embedders' collections, and the reasons of delayed updates."""

    users: dict[str, Findings]
    totals: Findings
    other_collections: tuple[str, ...] = ()
    delays: tuple[Delay, ...] = ()

    @property
    def healthy(self) -> bool:
        """Tell whether nothing is wrong."""
        return self.totals.healthy

    @property
    def advice(self) -> list[str]:
        """Return what to do, one sentence for each problem."""
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
        said += [delay.sentence for delay in self.delays]
        if self.other_collections:
            names = ", ".join(self.other_collections)
            said.append(
                f"Other embedders' collections are never searched; delete them when you need them no more: {names}."
            )
        return said

    def as_json(self) -> dict[str, Any]:
        """Return the JSON of the HTTP contract."""
        return {
            "healthy": self.healthy,
            "advice": self.advice,
            "totals": asdict(self.totals),
            "users": [{"user_id": user_id, **asdict(found)} for user_id, found in self.users.items()],
            "other_collections": list(self.other_collections),
            "delays": [delay.as_json() for delay in self.delays],
        }


async def examine(store: Store, index: VectorIndex, embedder: Embedder, *, now: datetime) -> Report:
    """Compare all points that the store calls for with all that the index holds.

    Raises:
        StoreUnavailable, ModelUnavailable: a store, or the embedder that the index waits for, cannot be reached.
    """
    examination = _Examination(store, index, embedder, now)
    ids = set[str]()
    users, delays = dict[str, Findings](), list[Delay]()
    async for user_id in _each(store):
        users[user_id] = found = await examination.of_user(user_id, ids)
        if found.pending or found.failed:
            delays = summed([*delays, *await delays_of(store.updates, user_id)])
    strays = Counter(await examination.strays(ids))
    for user_id, orphaned in sorted(strays.items()):
        found = users.get(user_id) or Findings(points=await index.count(user_id=user_id))
        users[user_id] = _with(found, orphaned=orphaned)
    return Report(users, _total(list(users.values())), tuple(await index.other_collections()), tuple(delays))


async def _each(store: Store) -> AsyncIterator[str]:
    async for batch in store.users():
        for user_id in batch:
            yield user_id


@frozen
class _Examination:
    store: Store
    index: VectorIndex
    embedder: Embedder
    now: datetime

    async def of_user(self, user_id: str, ids: set[str]) -> Findings:
        """Return the findings of a user of the store, without orphans; add the ids of expected points to `ids`."""
        kinds, missing, wrong = Counter[Kind](), list[Entry](), list[Entry]()
        async for entries in expected(self.store, user_id=user_id):
            ids.update(entry.id for entry in entries)
            kinds.update(entry.kind for entry in entries)
            found = await self._differing(entries)
            missing += found[0]
            wrong += found[1]
        missing, wrong = await self._looked_at_again(missing, wrong)
        backlog = await self.store.updates.backlog(user_id)
        owed = await self.store.facts.owed(user_id=user_id, limit=OWED)
        owed_records = await self.store.threads.owed(user_id=user_id, limit=OWED)
        owed_passages = await self.store.documents.passages.count_owed(user_id)
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
        """Return the owners of orphans, once for each orphan. `ids` are those of all expected points."""
        found = [entry async for entry in orphans(self.store, self.index, ids)]
        if len(found) <= LOOKED_AT_AGAIN:
            there = set[str]()
            for batch in batches(found, _BATCH):
                there.update(await self.index.fingerprints([entry.id for entry in batch]))
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
            said = await called_for(self.store, suspect)
            if isinstance(said, Entry):
                entries.append(said)
        missing, wrong = [], []
        for batch in batches(entries, _BATCH):
            found = await self._differing(batch)
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
