"""Enforces the retention bounds: removes what is too old or too much, first from the store and then from the index.

In that order, because a kill between the two leaves points without a source, which the repair at the next start
removes. A sweep counts what it removes by reason, for the metrics, and logs it.
"""

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, get_args

from recollect.memory.background.sweep import Sweep
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import VectorIndex, fact_point_id
from recollect.memory.values.errors import IndexUnavailable, RecollectError
from recollect.memory.values.fact import Fact
from recollect.memory.values.fact_limits import MOST_THREAD_FACTS
from recollect.memory.values.mem_config import MemoryConfig
from recollect.memory.values.scope import GLOBAL_USER, Scope
from recollect.memory.values.times import Clock
from recollect.memory.values.turn import Message

logger = logging.getLogger(__name__)

Reason = Literal["fact_age", "episode_age", "fact_count", "episode_count", "working_memory"]
REASONS: tuple[Reason, ...] = get_args(Reason)
BATCH = 500


@dataclass
class Retention:
    """Removes what exceeds the bounds: by age for everyone, by number for users `touch`ed since the last sweep.

    The first sweep counts for all users. `evicted` counts the removed facts and messages by reason.
    """

    store: Store
    index: VectorIndex
    config: MemoryConfig
    clock: Clock
    evicted: Counter[Reason] = field(init=False, default_factory=Counter[Reason])
    _touched: set[str] = field(init=False, default_factory=set[str])
    _saw_everyone: bool = field(init=False, default=False)
    _points: dict[str, set[str]] = field(init=False, default_factory=lambda: defaultdict[str, set[str]](set))
    _threads: set[Scope] = field(init=False, default_factory=set[Scope])
    _sweep: Sweep = field(init=False)

    def __post_init__(self) -> None:
        self._sweep = Sweep("bounds-sweep", self.sweep, seconds=self.config.sweep_seconds)

    def start(self) -> None:
        """Start the sweeps: at once, and again every `sweep_seconds`."""
        self._sweep.start()

    async def close(self) -> None:
        """End the sweeps."""
        await self._sweep.close()

    def touch(self, user_id: str) -> None:
        """Let the next sweep count this user's facts and messages, because some were added."""
        if self.config.max_facts_per_user or self.config.max_episodes_per_user:
            self._touched.add(user_id)

    async def sweep(self) -> None:
        """Remove what exceeds the bounds.

        Raises:
            StoreUnavailable: the store is down; the next sweep goes on. An index that is down is no error: a later
                sweep removes the points.
        """
        evicted: Counter[Reason] = Counter()
        try:
            await self._remove_points()
            await self._by_age(evicted)
            await self._by_number(evicted)
        finally:
            self._tell(evicted)

    async def trim_thread(self, scope: Scope) -> None:
        """Remove the thread's least important and oldest facts beyond `MOST_THREAD_FACTS`."""
        evicted: Counter[Reason] = Counter()
        try:
            await self._trim_facts(scope, MOST_THREAD_FACTS, "working_memory", evicted)
        finally:
            self._tell(evicted)

    async def _by_age(self, evicted: Counter[Reason]) -> None:
        facts, conversations = self.store.facts, self.store.conversations
        while await self.store.client_records.expire(self.clock(), limit=BATCH) == BATCH:
            pass
        while await self.store.sessions.expire(self.clock(), limit=BATCH) == BATCH:
            pass
        if self.config.fact_retention_days:
            before = self._before(self.config.fact_retention_days)
            while old := await facts.aged(before=before, limit=BATCH):
                if not await self._remove_facts(old, "fact_age", evicted):
                    break
        if self.config.episode_retention_days:
            before = self._before(self.config.episode_retention_days)
            while begun := await conversations.aged(before=before, limit=BATCH):
                if not await self._remove_turns(begun, "episode_age", evicted):
                    break

    def _before(self, days: float) -> datetime:
        return self.clock() - timedelta(days=days)

    async def _by_number(self, evicted: Counter[Reason]) -> None:
        """Count for each user who may have more than before, in the first sweep for everyone, and remove the rest."""
        if not (self.config.max_facts_per_user or self.config.max_episodes_per_user):
            return
        if not self._saw_everyone:
            async for users in self.store.users():
                self._touched.update(users)
            self._saw_everyone = True
        self._touched.discard(GLOBAL_USER)
        for user_id in sorted(self._touched):
            # Discarded before counting: what is added meanwhile touches the user again, for the next sweep.
            self._touched.discard(user_id)
            try:
                await self._trim_user(user_id, evicted)
            except RecollectError:
                self._touched.add(user_id)
                raise

    async def _trim_user(self, user_id: str, evicted: Counter[Reason]) -> None:
        if self.config.max_facts_per_user:
            await self._trim_facts(Scope(user_id), self.config.max_facts_per_user, "fact_count", evicted)
        most = self.config.max_episodes_per_user
        conversations = self.store.conversations
        while most and (over := await conversations.count_messages(user_id) - most) > 0:
            oldest = await conversations.oldest(user_id, limit=min(BATCH, -(-over // 2)))
            if not await self._remove_turns(oldest, "episode_count", evicted):
                break

    async def _trim_facts(self, scope: Scope, most: int, reason: Reason, evicted: Counter[Reason]) -> None:
        facts = self.store.facts
        while (over := await facts.count_open(scope) - most) > 0:
            weakest = await facts.weakest(scope, limit=min(BATCH, over))
            if not await self._remove_facts(weakest, reason, evicted):
                break

    async def _remove_facts(self, found: Sequence[Fact], reason: Reason, evicted: Counter[Reason]) -> int:
        """Remove these facts and return how many the store still had."""
        removed = 0
        for user_id, ids in _by_user((fact.user_id, fact.id) for fact in found).items():
            gone = await self.store.facts.remove(user_id=user_id, fact_ids=ids)
            evicted[reason] += gone
            removed += gone
            self._points[user_id].update(fact_point_id(user_id, fact_id) for fact_id in ids)
        await self._remove_points()
        return removed

    async def _remove_turns(self, begun: Sequence[Message], reason: Reason, evicted: Counter[Reason]) -> int:
        """Remove these turns whole, and threads that become empty; return how many messages the store still had."""
        removed = 0
        await self._remove_emptied(begun)
        for user_id, ids in _by_user((message.user_id, message.turn_id) for message in begun).items():
            gone = await self.store.conversations.remove(user_id=user_id, turn_ids=ids)
            evicted[reason] += gone
            removed += gone
            whose = (message for message in begun if message.user_id == user_id)
            self._points[user_id].update(point for message in whose for point in message.point_ids)
        await self._remove_points()
        return removed

    async def _remove_emptied(self, leaving: Sequence[Message]) -> None:
        """Remove working memory and summary of the threads whose last turn is among `leaving`.

        They are removed before the messages: after a kill between the two, the next sweep still finds the messages.
        """
        newest: dict[Scope, int] = {}
        for message in leaving:
            newest[message.scope] = max(newest.get(message.scope, 0), message.position)
        for scope, position in newest.items():
            if await self.store.conversations.last_position(scope) <= position + 1:
                await self.store.facts.delete(scope)
                await self.store.threads.delete(scope)
                self._threads.add(scope)

    async def _remove_points(self) -> None:
        """Remove the points of what the store no longer has; while the index is down they stay noted."""
        try:
            for scope in list(self._threads):
                if await self.store.conversations.last_position(scope) == 0:
                    await self.index.delete(scope)
                self._threads.discard(scope)
            for user_id in list(self._points):
                await self._remove_points_of(user_id)
        except IndexUnavailable:
            logger.warning("evicted points wait for the index", extra={"action": "eviction_waits"})

    async def _remove_points_of(self, user_id: str) -> None:
        ids = self._points.pop(user_id, set())
        while ids:
            batch = sorted(ids)[:BATCH]
            try:
                await self.index.remove(user_id=user_id, ids=batch)
            except IndexUnavailable:
                self._points[user_id] |= ids
                raise
            ids.difference_update(batch)

    def _tell(self, evicted: Mapping[Reason, int]) -> None:
        for reason, count in evicted.items():
            if count:
                self.evicted[reason] += count
                logger.info("evicted", extra={"action": "evicted", "reason": reason, "count": count})


def _by_user(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Group the ids by user, in their order."""
    found = defaultdict[str, list[str]](list)
    for user_id, own_id in pairs:
        found[user_id].append(own_id)
    return found
