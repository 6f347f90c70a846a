"""Keeping within bounds, over real stores: what goes, what stays, and in which order the stores are told."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from recollect.memory.index.expected import fact_entry
from recollect.memory.index.indexing import make_points, repair
from recollect.memory.ports.facts import Facts
from recollect.memory.ports.vector_index import VectorIndex
from recollect.memory.providers.lexical import LexicalEmbedder
from recollect.memory.updates.retention import Retention
from recollect.memory.values.errors import IndexUnavailable, StoreUnavailable
from recollect.memory.values.fact import Ended, Fact
from recollect.memory.values.fact_limits import MOST_THREAD_FACTS
from recollect.memory.values.mem_config import MemoryConfig
from recollect.memory.values.scope import GLOBAL_USER, Scope
from recollect.memory.values.thread_record import ThreadRecord
from recollect.memory.values.turn import Message, derived_id
from recollect.memory.values.update import owed
from tests.contracts.store.samples import NOW, fact
from tests.domain.support.talks import T1, Killed, Stores, index_all, open_stores, say

DAY = timedelta(days=1)
DAYS = 86_400
T2 = Scope("ada", "t2")


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncGenerator[Stores]:
    async with open_stores(tmp_path) as stores:
        yield stores


def retention(opened: Stores, **limits: Any) -> Retention:
    return Retention(opened.store, opened.index, MemoryConfig(sweep_seconds=0.02, **limits), lambda: NOW)


def _id(name: str) -> str:
    return derived_id("any", name, "fact")


async def know(opened: Stores, name: str, *, user_id: str = "ada", age: float = 0, **changes: Any) -> Fact:
    """Return a stored and indexed fact, last confirmed `age` days ago."""
    made = fact(_id(name), user_id=user_id, age=int(age * DAYS), key=name, indexed=True, **changes)
    assert await opened.store.facts.insert(made)
    if made.is_open:
        await opened.index.upsert(await make_points([fact_entry(made)], LexicalEmbedder()))
    return made


async def talk(opened: Stores, *names: str, scope: Scope = T1, age: float = 0) -> None:
    """Finished and indexed turns, begun `age` days ago."""
    turns = [await say(opened.store, name, scope, at=NOW - age * DAY) for name in names]
    await index_all(opened, turns)


async def known(opened: Stores, names: Sequence[str], *, user_id: str = "ada") -> set[str]:
    """Return which of these facts are in the documents; that those and no others have points is checked too."""
    found = await opened.store.facts.facts(user_id=user_id, fact_ids=[_id(name) for name in names])
    ids = {entry.memory_id for entry in await opened.index.entries(await opened.index.ids())}
    assert {item.id for item in found if item.is_open} == {_id(name) for name in names} & ids
    return {item.key or "" for item in found}


async def said(opened: Stores, scope: Scope = T1) -> list[str]:
    """Return the texts of the user's turns in the thread; check that each has two points, and no others exist."""
    messages = await opened.store.conversations.messages(scope, limit=1_000)
    entries = await opened.index.entries(await opened.index.ids())
    episodes = {entry.id for entry in entries if entry.kind == "episode" and entry.thread_id == scope.thread_id}
    assert {message.id for message in messages} == episodes
    return [message.content for message in messages if message.role == "user"]


async def test_nothing_is_bounded_by_default(opened: Stores) -> None:
    await know(opened, "old", age=20_000)
    await talk(opened, "old", age=20_000)
    made = retention(opened)
    made.touch("ada")
    await made.sweep()
    assert made.evicted.total() == 0
    assert await known(opened, ["old"]) == {"old"}
    assert await said(opened) == ["old"]


async def test_facts_go_by_the_age_of_their_confirmation_and_pinned_ones_stay(opened: Stores) -> None:
    await know(opened, "fresh", age=9)
    await know(opened, "old", age=11)
    await know(opened, "pinned", age=99, pinned=True)
    await know(opened, "confirmed", age=99, confirmed_at=NOW - DAY)
    await know(opened, "superseded", age=11, ended=Ended("turn", NOW, "turn9"), valid_to=NOW)
    await know(opened, "proposed", age=11, status="proposed")
    await know(opened, "bobs", user_id="bob", age=11)
    names = ["fresh", "old", "pinned", "confirmed", "superseded", "proposed"]
    made = retention(opened, fact_retention_days=10)
    await made.sweep()
    assert await known(opened, names) == {"fresh", "pinned", "confirmed"}
    assert await known(opened, ["bobs"], user_id="bob") == set()
    assert dict(made.evicted) == {"fact_age": 4}
    await made.sweep()
    assert dict(made.evicted) == {"fact_age": 4}


async def test_whole_turns_go_by_age_and_an_emptied_thread_goes_with_all_it_had(opened: Stores) -> None:
    await talk(opened, "a", "b", age=11)
    await talk(opened, "c", age=1)
    await talk(opened, "d", "e", scope=T2, age=11)
    await know(opened, "mine", scope="thread", thread_id="t1")
    await know(opened, "theirs", scope="thread", thread_id="t2", pinned=True)
    await know(opened, "users", thread_id="t2", turn_id="d")
    for scope in (T1, T2):
        record = ThreadRecord("ada", scope.thread, summary="They spoke.", archived_to=2, revision=1)
        assert await opened.store.threads.put(record, revision=0)
    made = retention(opened, episode_retention_days=10)
    await made.sweep()
    assert (await said(opened), await said(opened, T2)) == (["c"], [])
    assert await known(opened, ["mine", "theirs", "users"]) == {"mine", "users"}
    assert await opened.store.threads.record(T1) is not None
    assert await opened.store.threads.record(T2) is None
    assert dict(made.evicted) == {"episode_age": 8}


async def test_a_turn_that_is_being_learned_from_waits_and_an_unfinished_one_does_not(opened: Stores) -> None:
    await say(opened.store, "pending", update=owed(), at=NOW - 20 * DAY)
    await opened.store.conversations.accept(Message("ada", "t1", "open", "user", "unanswered", NOW - 19 * DAY))
    made = retention(opened, episode_retention_days=10)
    await made.sweep()
    left = await opened.store.conversations.messages(T1, limit=10)
    assert [message.content for message in left] == ["pending", "Yes."]
    assert made.evicted["episode_age"] == 1


async def test_more_than_a_batch_goes_in_one_sweep(opened: Stores) -> None:
    await asyncio.gather(*(know(opened, f"k{number}", age=11 + number) for number in range(520)))
    made = retention(opened, fact_retention_days=10)
    await made.sweep()
    assert made.evicted["fact_age"] == 520
    assert await opened.index.count() == 0


async def test_the_least_important_and_oldest_facts_go_first_and_pinned_ones_never(opened: Stores) -> None:
    await know(opened, "weak-pinned", importance=0.0, pinned=True, age=50)
    await know(opened, "weak", importance=0.1)
    await know(opened, "old", importance=0.5, age=5)
    await know(opened, "new", importance=0.5, age=1)
    await know(opened, "strong", importance=0.9, age=90)
    await know(opened, "ended", importance=0.0, ended=Ended("turn", NOW, "turn9"))
    names = ["weak-pinned", "weak", "old", "new", "strong", "ended"]
    for most, left in ((5, {*names}), (4, {*names} - {"weak"}), (3, {"weak-pinned", "new", "strong", "ended"})):
        made = retention(opened, max_facts_per_user=most)
        await made.sweep()
        assert await known(opened, names) == left
    await retention(opened, max_facts_per_user=1).sweep()
    assert await known(opened, names) == {"weak-pinned", "ended"}
    await know(opened, "pinned-too", pinned=True)
    made = retention(opened, max_facts_per_user=1)
    await made.sweep()
    assert await known(opened, [*names, "pinned-too"]) == {"weak-pinned", "ended", "pinned-too"}
    assert made.evicted.total() == 0


async def test_global_facts_are_no_users(opened: Stores) -> None:
    for name in ("one", "two"):
        await know(opened, name, user_id=GLOBAL_USER, scope="global", source="manual")
    made = retention(opened, max_facts_per_user=1)
    made.touch(GLOBAL_USER)
    await made.sweep()
    assert await known(opened, ["one", "two"], user_id=GLOBAL_USER) == {"one", "two"}


@pytest.mark.parametrize(("most", "left"), [(1, ""), (2, "e"), (3, "e"), (5, "de"), (8, "bcde"), (10, "abcde")])
async def test_the_oldest_turns_of_a_user_go_first(opened: Stores, most: int, left: str) -> None:
    for number, name in enumerate("abcde"):
        await talk(opened, name, scope=T2 if name == "d" else T1, age=9 - number)
    made = retention(opened, max_episodes_per_user=most)
    await made.sweep()
    assert sorted([*await said(opened), *await said(opened, T2)]) == list(left)
    assert made.evicted["episode_count"] == 10 - 2 * len(left)


async def test_each_user_has_bounds_of_their_own(opened: Stores) -> None:
    await talk(opened, "ada 1", "ada 2")
    await talk(opened, "bob 1", scope=Scope("bob", "t1"), age=99)
    await retention(opened, max_episodes_per_user=2).sweep()
    left = [await opened.store.conversations.count_messages(user_id) for user_id in ("ada", "bob")]
    assert left == [2, 2]


async def test_after_the_first_sweep_only_touched_users_are_counted(opened: Stores) -> None:
    made = retention(opened, max_facts_per_user=1)
    await know(opened, "a", importance=0.1)
    await made.sweep()
    await know(opened, "b")
    await made.sweep()
    assert await known(opened, ["a", "b"]) == {"a", "b"}
    made.touch("ada")
    await made.sweep()
    assert await known(opened, ["a", "b"]) == {"b"}


async def test_who_is_touched_while_they_are_counted_is_counted_again(opened: Stores) -> None:
    made = retention(opened, max_facts_per_user=1)
    await know(opened, "a", importance=0.1)
    await made.sweep()
    made.touch("ada")
    made.store = interrupted = cast("Any", copy(opened.store))
    interrupted.facts = _Interrupted(opened.store.facts, lambda: made.touch("ada"))
    await made.sweep()
    await know(opened, "b")
    await made.sweep()
    assert await known(opened, ["a", "b"]) == {"b"}


async def test_a_threads_working_memory_is_trimmed(opened: Stores) -> None:
    for number in range(MOST_THREAD_FACTS + 3):
        importance = 0.1 if number in {5, 7} else 0.9
        await know(opened, f"k{number}", scope="thread", thread_id="t1", importance=importance, age=number / 24)
    await know(opened, "elsewhere", scope="thread", thread_id="t2", importance=0)
    await know(opened, "users", importance=0)
    made = retention(opened)
    await made.trim_thread(T1)
    names = [f"k{number}" for number in range(MOST_THREAD_FACTS + 3)]
    assert {*names} - await known(opened, names) == {"k5", "k7", "k102"}
    assert await known(opened, ["elsewhere", "users"]) == {"elsewhere", "users"}
    assert dict(made.evicted) == {"working_memory": 3}
    await made.trim_thread(T1)
    assert dict(made.evicted) == {"working_memory": 3}


async def test_each_eviction_is_an_event_with_its_reason(opened: Stores, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "recollect.memory.updates.retention")
    await know(opened, "secret", value="hush", age=99)
    await talk(opened, "hush", age=99)
    await retention(opened, fact_retention_days=10, episode_retention_days=10).sweep()
    told = [(vars(record)["action"], vars(record)["reason"], vars(record)["count"]) for record in caplog.records]
    assert told == [("evicted", "fact_age", 1), ("evicted", "episode_age", 2)]
    assert "hush" not in caplog.text


@dataclass
class Flaky:
    """An index whose removals fail while it is down."""

    index: VectorIndex
    is_down: bool = True

    async def remove(self, *, user_id: str, ids: Sequence[str]) -> None:
        self._check()
        await self.index.remove(user_id=user_id, ids=ids)

    async def delete(self, scope: Scope) -> int:
        self._check()
        return await self.index.delete(scope)

    def _check(self) -> None:
        if self.is_down:
            raise IndexUnavailable


async def test_an_index_that_is_down_is_told_later(opened: Stores) -> None:
    await know(opened, "old", age=99)
    await talk(opened, "old", age=99)
    flaky = Flaky(opened.index)
    config = MemoryConfig(fact_retention_days=10, episode_retention_days=10)
    made = Retention(opened.store, cast("VectorIndex", flaky), config, lambda: NOW)
    await made.sweep()
    assert await opened.store.conversations.count_messages("ada") == 0
    assert (made.evicted["fact_age"], made.evicted["episode_age"]) == (1, 2)
    assert await opened.index.count() == 3
    await made.sweep()
    assert await opened.index.count() == 3
    flaky.is_down = False
    await made.sweep()
    assert await opened.index.count() == 0
    assert made.evicted.total() == 3


async def test_killed_between_any_two_steps_the_next_start_finishes(tmp_path: Path) -> None:
    limits = {"fact_retention_days": 10, "max_facts_per_user": 2, "max_episodes_per_user": 2}
    for calls in range(60):
        folder = tmp_path / str(calls)
        async with open_stores(folder) as stores:
            for number in range(4):
                await know(stores, f"k{number}", age=number * 5)
                await talk(stores, f"m{number}", scope=Scope("ada", f"t{number // 2}"), age=9 - number)
            record = ThreadRecord("ada", "t0", summary="They spoke.", archived_to=2, revision=1, indexed=False)
            assert await stores.store.threads.put(record, revision=0)
            died = False
            try:
                await retention(stores.mortal(calls), **limits).sweep()
            except Killed:
                died = True
        async with open_stores(folder) as stores:
            await repair(stores.store, stores.index, LexicalEmbedder())
            await retention(stores, **limits).sweep()
            assert await known(stores, [f"k{number}" for number in range(4)]) == {"k0", "k1"}
            assert await said(stores, Scope("ada", "t0")) == []
            assert await said(stores, T1) == ["m3"]
            assert await stores.store.threads.record(Scope("ada", "t0")) is None
            assert await stores.index.count() == 4
        if not died:
            assert calls > 10
            return
    raise AssertionError("it was always killed")


async def test_it_sweeps_by_itself_and_outlives_an_outage(opened: Stores) -> None:
    made = retention(opened, max_facts_per_user=1)
    real, made.store = made.store, cast("Any", _Down())
    made.start()
    await asyncio.sleep(0.05)
    made.store = real
    await know(opened, "a", importance=0.1)
    await know(opened, "b")
    made.touch("ada")
    async with asyncio.timeout(10):
        while not made.evicted:  # noqa: ASYNC110 - a task's doing
            await asyncio.sleep(0.01)
    await made.close()
    assert await known(opened, ["a", "b"]) == {"b"}


class _Interrupted:
    """Facts during whose first count something else happens."""

    def __init__(self, facts: Facts, happens: Callable[[], None]) -> None:
        self._facts = facts
        self._happening = [happens]

    async def count_open(self, scope: Scope) -> int:
        """Count as the store does."""
        count = await self._facts.count_open(scope)
        while self._happening:
            self._happening.pop()()
        return count

    def __getattr__(self, name: str) -> Any:
        return getattr(self._facts, name)


class _Down:
    """Documents that cannot be reached."""

    async def users(self) -> AsyncGenerator[Sequence[str]]:
        raise StoreUnavailable
        yield []
