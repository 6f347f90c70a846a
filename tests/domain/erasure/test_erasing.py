"""Erasures: what is recorded, what waits, what is taken up again, and what a receipt says."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recollect.memory.erasure.data_holders import DataHolder, StoreHolder
from recollect.memory.erasure.erasing import Erasing
from recollect.memory.erasure.fences import Fences
from recollect.memory.ports.store import Store
from recollect.memory.stores.sqlite import open_sqlite_store
from recollect.memory.values.errors import ErasurePending, IndexUnavailable, UserErased
from recollect.memory.values.scope import Scope
from tests.contracts.store.samples import finish

ADA, T1 = Scope("ada"), Scope("ada", "t1")
NOW = datetime(2026, 5, 1, tzinfo=UTC)


@dataclass
class Place:
    """A data holder of its own, which may be down."""

    held: list[str] = field(default_factory=lambda: ["ada", "bob", "ada"])
    is_down: bool = False
    late: list[str] = field(default_factory=list[str])
    name: str = "place"

    async def erase(self, scope: Scope) -> int:
        self._check()
        before = len(self.held)
        self.held = [user for user in self.held if user != scope.user_id]
        erased = before - len(self.held)
        self.held += self.late
        self.late = []
        return erased

    async def remaining(self, scope: Scope) -> int:
        self._check()
        return self.held.count(scope.user_id)

    def _check(self) -> None:
        if self.is_down:
            raise IndexUnavailable


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[Store]:
    async with open_sqlite_store(tmp_path / "documents.db") as opened:
        await finish(opened, "one")
        await finish(opened, "two", thread_id="t2")
        await finish(opened, "one", user_id="bob")
        yield opened


@pytest.fixture
def place() -> Place:
    return Place()


def make(store: Store, place: Place, *, fences: Fences | None = None) -> Erasing:
    holders: Sequence[DataHolder] = [
        StoreHolder("conversations", store, store.conversations.delete),
        StoreHolder("facts", store, store.facts.delete),
        place,
    ]
    return Erasing(store.erasures, fences or Fences(store.erasures), holders, lambda: NOW, 3600)


async def begun(store: Store) -> None:
    """Wait until an erasure is written down."""
    async with asyncio.timeout(5):
        while True:
            if await store.erasures.unfinished(limit=1):
                return


async def test_a_receipt_says_what_there_was_and_that_nothing_is_left(store: Store, place: Place) -> None:
    erasing = make(store, place)
    receipt = await erasing.erase(ADA, by="key1")
    assert receipt.counts == {"conversations": 4, "facts": 0, "place": 2}
    assert receipt.remaining == {"conversations": 0, "facts": 0, "place": 0}
    assert (receipt.is_done, receipt.scope, receipt.erased_at) == (True, None, NOW)
    assert [await erasing.is_by(receipt, name) for name in ("key1", "key2")] == [True, False]
    assert await erasing.receipt(receipt.id) == receipt
    assert set(receipt.as_json()) == {"erasure_id", "erased_at", "counts", "remaining"}
    assert await store.conversations.count_messages("bob") == 2
    assert not await erasing.has_any(ADA)
    assert await erasing.has_any(Scope("bob"))


async def test_what_is_down_makes_it_wait_and_the_rest_goes(store: Store, place: Place, tmp_path: Path) -> None:
    fences = Fences(store.erasures)
    erasing = make(store, place, fences=fences)
    place.is_down = True
    with pytest.raises(ErasurePending, match="place") as waits:
        await erasing.erase(ADA, by="key1")
    erasure_id = waits.value.erasure_id
    pending = await erasing.receipt(erasure_id)
    assert pending is not None
    assert pending.as_json()["pending"] is True
    assert pending.counts == {"conversations": 4, "facts": 0, "place": 0}
    assert pending.remaining == {"conversations": 0, "facts": 0, "place": None}
    assert await store.conversations.count_messages("ada") == 0
    with pytest.raises(UserErased):
        await fences.observe(T1)
    await erasing.go_on()
    with pytest.raises(ErasurePending) as again:
        await erasing.erase(ADA, by="key2")
    assert again.value.erasure_id == erasure_id
    place.is_down = False
    await erasing.go_on()
    receipt = await erasing.receipt(erasure_id)
    assert receipt is not None
    assert (receipt.is_done, receipt.counts["conversations"], receipt.counts["place"]) == (True, 4, 2)
    assert await erasing.is_by(receipt, "key1")
    await fences.observe(T1)
    assert place.held == ["bob"]
    assert b'"ada"' not in await asyncio.to_thread((tmp_path / "documents.db").read_bytes)


async def test_what_comes_late_is_erased_in_another_round(store: Store, place: Place) -> None:
    place.late = ["ada"]
    receipt = await make(store, place).erase(ADA, by="")
    assert receipt.counts["place"] == 3
    assert place.held == ["bob"]


async def test_calls_at_once_are_one_erasure(store: Store, place: Place) -> None:
    erasing = make(store, place)
    receipts = await asyncio.gather(*(erasing.erase(ADA, by=str(number)) for number in range(5)))
    assert len({receipt.id for receipt in receipts}) == 1
    assert receipts[0].counts["conversations"] == 4
    following = await erasing.erase(ADA, by="")
    assert (following.id != receipts[0].id, set(following.counts.values())) == (True, {0})


async def test_who_asked_may_leave(store: Store, place: Place) -> None:
    erasing = make(store, place)
    asked = asyncio.create_task(erasing.erase(ADA, by=""))
    await begun(store)
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    receipt = await erasing.erase(ADA, by="")
    assert receipt.counts["conversations"] == 4


@pytest.mark.parametrize("is_emptied", [False, True])
async def test_what_a_kill_cut_off_is_taken_up_by_the_next_start(store: Store, place: Place, is_emptied: bool) -> None:
    killed = make(store, place)
    done = await killed.erase(ADA, by="key1")
    await finish(store, "late")
    left = replace(done, is_done=False, scope=None if is_emptied else ADA)
    await store.erasures.put(left)
    fences = Fences(store.erasures)
    started = make(store, place, fences=fences)
    await started.prepare()
    if not is_emptied:
        with pytest.raises(UserErased):
            await fences.observe(ADA)
    await started.go_on()
    await fences.observe(ADA)
    receipt = await started.receipt(done.id)
    assert receipt is not None
    assert receipt.is_done
    assert await store.conversations.count_messages("ada") == (2 if is_emptied else 0)
    assert await store.erasures.unfinished(limit=9) == []


async def test_of_a_thread_nothing_else_goes(store: Store, place: Place) -> None:
    erasing = make(store, place)
    receipt = await erasing.erase(T1, by="")
    assert receipt.counts["conversations"] == 2
    assert not receipt.is_of_a_user
    assert await store.conversations.count_messages("ada") == 2


async def test_a_stop_in_the_middle_is_no_receipt(store: Store, place: Place) -> None:
    erasing = make(store, place)
    asked = asyncio.create_task(erasing.erase(ADA, by=""))
    await begun(store)
    erasing.start()
    await erasing.close()
    (outcome,) = await asyncio.gather(asked, return_exceptions=True)
    assert getattr(outcome, "code", "done") in {"store_unavailable", "done"}
    again = make(store, place)
    await again.prepare()
    await again.go_on()
    assert await store.erasures.unfinished(limit=1) == []
    assert await store.conversations.count_messages("ada") == 0


async def test_neither_tombstones_nor_receipts_hold_an_id(store: Store, place: Place, tmp_path: Path) -> None:
    # No id here can be read out of hexadecimal digits by chance.
    await make(store, place).erase(Scope("a.user@somewhere"), by="key1")
    await make(store, place).erase(Scope("zoe", "t1"), by="key1")

    def rows() -> str:
        with sqlite3.connect(tmp_path / "documents.db") as file:
            return str([file.execute(f"SELECT * FROM {table}").fetchall() for table in ("erasures", "tombstones")])

    stored = await asyncio.to_thread(rows)
    assert "somewhere" not in stored
    assert "zoe" not in stored
    assert "key1" not in stored, "the name of a caller may be a user's"
