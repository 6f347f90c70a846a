"""Makes the index follow facts and thread records: each one written with `indexed=False` gets or loses its point."""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from recollect.memory.background.keyed_worker import KeyedWorker
from recollect.memory.background.sweep import Sweep
from recollect.memory.index.expected import fact_entry, summary_entry
from recollect.memory.index.indexing import EMBED_BATCH, make_points
from recollect.memory.ports.embedder import Embedder
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import Entry, VectorIndex, fact_point_id
from recollect.memory.values.errors import RecollectError, is_outage
from recollect.memory.values.fact import Fact
from recollect.memory.values.frozen import frozen
from recollect.memory.values.thread_record import ThreadRecord

logger = logging.getLogger(__name__)

SWEEP_USERS = 1_000
SOON_SECONDS = 5.0
"""How long a caller waits for points, in seconds, before they are left to the background."""
LATER_SECONDS = 1.5
"""How long facts of a turn wait for its index step, in seconds, which embeds them with the turn's messages."""
AT_ONCE = 8
"""How many users are worked on in the background at once."""


@dataclass(slots=True)
class _Later:
    """The `facts` that were written and wait for a turn's index step; `reads`: others may be owed beside them."""

    timer: asyncio.TimerHandle
    facts: dict[str, Fact] = field(default_factory=dict[str, Fact])
    reads: bool = False


@frozen
class _Owed:
    """A fact or thread record at one revision, and the entry of its point (None: the point must be removed)."""

    document: Fact | ThreadRecord
    point_id: str
    entry: Entry | None


class IndexOutbox:
    """Makes and removes the points of facts and thread records whose `indexed` flag is false.

    The flag is written with the record, so that a kill loses no point. Points have derived ids, so that to make one
    twice has the effect of making it once. If a record changes while its point is made, the point is made again from
    the new revision.
    """

    def __init__(self, store: Store, index: VectorIndex, embedder: Embedder, *, sweep_seconds: float = 5.0) -> None:
        self._store = store
        self._index = index
        self._embedder = embedder
        self._sweep = Sweep("points-sweep", self._see_to_owing, seconds=sweep_seconds)
        self._seen: set[str] | None = None
        self._locks = WeakValueDictionary[str, asyncio.Lock]()
        self._later: dict[str, _Later] = {}
        self._worker = KeyedWorker("points-user", self.sync, at_once=AT_ONCE, failed=_log_waiting)

    def start(self) -> None:
        """Start the sweep, which finds the records that another process, or an earlier one, left unindexed."""
        self._sweep.start()

    async def close(self) -> None:
        """Stop all work; unindexed records keep their flag."""
        for user_id in list(self._later):
            self._no_longer_later(user_id)
        await self._sweep.close()
        await self._worker.close()

    def notify(self, user_id: str) -> None:
        """Index this user's records in the background, and retry for as long as an outage lasts."""
        self._no_longer_later(user_id)
        self._worker.wake(user_id)

    def notify_later(self, user_id: str, written: Sequence[Fact] | None = None) -> None:
        """Index this user's records after `LATER_SECONDS`, unless `index_beside` has done so before.

        `written` are the facts that were just written, as they are stored: then `index_beside` reads no others.
        """
        later = self._later.get(user_id)
        if later is None:
            timer = asyncio.get_running_loop().call_later(LATER_SECONDS, self.notify, user_id)
            later = self._later[user_id] = _Later(timer)
        later.facts |= {fact.id: fact for fact in written or ()}
        later.reads = later.reads or written is None or len(later.facts) > EMBED_BATCH

    async def index_beside(
        self, user_id: str, entries: Sequence[Entry], preceding: Mapping[str, Sequence[str]]
    ) -> None:
        """Index `entries` of this user, and in the same calls the records of `notify_later`.

        `preceding` are texts as `make_points` takes them. A record that cannot be indexed now is left to the
        background, and holds up no entry.

        Raises:
            StoreUnavailable, ModelUnavailable, ValueError: the entries are not indexed.
        """
        later = self._no_longer_later(user_id)
        if later is None:
            await self._index.upsert(await make_points(entries, self._embedder, preceding=preceding))
            return
        try:
            async with self._lock(user_id):
                owed = await self._owed(user_id) if later.reads else _unindexed(later.facts.values())
                made = await make_points([*entries, *_entries_of(owed)], self._embedder, preceding=preceding)
                await self._index.upsert(made)
                await self._follow([await self._again(item) for item in await self._unfinished(owed)])
        except (RecollectError, ValueError) as error:
            self.notify(user_id)
            if is_outage(error):
                raise
            await self._index.upsert(await make_points(entries, self._embedder, preceding=preceding))

    async def sync(self, user_id: str) -> None:
        """Index all unindexed records of this user now.

        Raises:
            StoreUnavailable, ModelUnavailable: the remaining records stay unindexed.
            ValueError: the embedder's vector does not fit the index.
        """
        # One pass per user at a time in this process; another process may run one too, which `_follow` expects.
        async with self._lock(user_id):
            while owed := await self._owed(user_id):
                await self._settle(owed)
                if len(owed) < EMBED_BATCH:
                    return  # there were no more; whoever has written one since then notifies

    async def sync_soon(self, user_id: str) -> None:
        """Run `sync` at once, and wait for it at most `SOON_SECONDS`; the background does the rest after a failure."""
        await self._worker.hurry(user_id, seconds=SOON_SECONDS)

    async def settled(self, user_id: str) -> None:
        """Wait for the background work on this user, at most `SOON_SECONDS`."""
        if user_id in self._later:
            self.notify(user_id)
        await self._worker.settled(user_id, seconds=SOON_SECONDS)

    async def users(self) -> list[str]:
        """Return the users with unindexed records, of facts and of threads at most `SWEEP_USERS` each."""
        facts = await self._store.facts.owed_users(limit=SWEEP_USERS)
        return list(dict.fromkeys([*facts, *await self._store.threads.owed_users(limit=SWEEP_USERS)]))

    def _lock(self, user_id: str) -> asyncio.Lock:
        return self._locks.setdefault(user_id, asyncio.Lock())

    def _no_longer_later(self, user_id: str) -> _Later | None:
        """Take back a `notify_later`, and return what it was for; None if there was none."""
        later = self._later.pop(user_id, None)
        if later is not None:
            later.timer.cancel()
        return later

    async def _owed(self, user_id: str) -> list[_Owed]:
        facts = await self._store.facts.owed(user_id=user_id, limit=EMBED_BATCH)
        records = await self._store.threads.owed(user_id=user_id, limit=EMBED_BATCH)
        return [*map(_of_fact, facts), *map(_of_record, records)]

    async def _settle(self, owed: Sequence[_Owed]) -> None:
        """Make and remove these points. A text that the embedder refuses does not hold up the others."""
        try:
            await self._follow(owed)
        except (RecollectError, ValueError) as error:
            if is_outage(error) or len(owed) == 1:
                raise
        else:
            return
        refused: Exception | None = None
        for item in owed:
            try:
                await self._follow([item])
            except (RecollectError, ValueError) as error:
                if is_outage(error):
                    raise
                refused = error
        if refused is not None:
            raise refused

    async def _follow(self, owed: Sequence[_Owed]) -> None:
        # First the point, then the flag: after a kill between the two the point is made once more. The flag is set only
        # on the revision that the point was made from, so that a record which changed meanwhile goes through again.
        while owed:
            await self._index.upsert(await make_points(_entries_of(owed), self._embedder))
            owed = [await self._again(item) for item in await self._unfinished(owed)]

    async def _unfinished(self, owed: Sequence[_Owed]) -> list[_Owed]:
        """Remove the points that must not be, mark these revisions, and return the items that changed meanwhile.

        A record that is gone is not among them: it has no point any more.
        """
        removed = [item.point_id for item in owed if item.entry is None]
        if removed:
            await self._index.remove(user_id=owed[0].document.user_id, ids=removed)
        facts = [item.document for item in owed if isinstance(item.document, Fact)]
        marked = await self._store.facts.mark_indexed(facts) if facts else set[str]()
        changed: list[_Owed] = []
        for item in owed:
            if isinstance(item.document, Fact):
                is_marked = item.document.id in marked
            else:
                is_marked = await self._store.threads.mark_indexed(item.document)
            if not is_marked and (item.entry is not None or await self._read(item) is not None):
                changed.append(item)
        return changed

    async def _read(self, owed: _Owed) -> Fact | ThreadRecord | None:
        if isinstance(owed.document, Fact):
            return await self._store.facts.fact(user_id=owed.document.user_id, fact_id=owed.document.id)
        return await self._store.threads.record(owed.document.scope)

    async def _again(self, owed: _Owed) -> _Owed:
        """Return the item for the revision that is stored now, even if that one is marked as indexed already.

        Another process may have made its point before this one overwrote it with an older text.
        """
        stored = await self._read(owed)
        if stored is None:
            return _Owed(owed.document, owed.point_id, None)
        return _of_fact(stored) if isinstance(stored, Fact) else _of_record(stored)

    async def _see_to_owing(self) -> None:
        """Notify of the users who had unindexed records at the last sweep too; in the first sweep of everyone who has.

        Records that are new since the last sweep are left to whoever wrote them, here or in another process.
        """
        owing = set(await self.users())
        for user_id in owing if self._seen is None else owing & self._seen:
            self.notify(user_id)
        self._seen = owing


def _entries_of(owed: Sequence[_Owed]) -> list[Entry]:
    return [item.entry for item in owed if item.entry is not None]


def _unindexed(facts: Iterable[Fact]) -> list[_Owed]:
    return [_of_fact(fact) for fact in facts if not fact.indexed]


def _of_fact(fact: Fact) -> _Owed:
    return _Owed(fact, fact_point_id(fact.user_id, fact.id), fact_entry(fact) if fact.is_open else None)


def _of_record(record: ThreadRecord) -> _Owed:
    return _Owed(record, record.point_id, summary_entry(record) if record.has_point else None)


def _log_waiting(_user_id: str, error: Exception) -> None:
    known = isinstance(error, RecollectError)
    logger.warning(
        "points of facts or summaries wait",
        extra={"action": "points_wait", "error": type(error).__name__, "outage": is_outage(error)},
        exc_info=None if known else error,
    )
