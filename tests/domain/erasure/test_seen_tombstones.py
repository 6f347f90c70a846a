"""Tombstones that are kept in memory: how long they count, and which are read each time."""

from collections.abc import AsyncGenerator
from datetime import datetime
from pathlib import Path

import pytest

from recollect.memory.erasure.seen_tombstones import LEASE_SECONDS, SeenTombstones
from recollect.memory.ports.erasures import Erasures
from recollect.memory.stores.sqlite import open_sqlite_store
from recollect.memory.values.times import utc_now

ADA, T1 = "ada", "ada/t1"
NOW: datetime = utc_now()


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
async def erasures(tmp_path: Path) -> AsyncGenerator[Erasures]:
    async with open_sqlite_store(tmp_path / "documents.db") as store:
        yield store.erasures


async def test_what_was_read_counts_for_the_lease_and_no_longer(erasures: Erasures) -> None:
    clock = Clock()
    seen = SeenTombstones(erasures, seconds=clock)
    assert await seen.of(ADA, [ADA, T1]) == {}
    raised = await erasures.block(T1, "one", at=NOW)
    clock.seconds = LEASE_SECONDS * 0.99
    assert await seen.of(ADA, [ADA, T1]) == {}, "an erasure deletes nothing before this has ended"
    assert await seen.erased([ADA]) == set()
    clock.seconds = LEASE_SECONDS
    assert await seen.of(ADA, [ADA, T1]) == {T1: raised}
    assert await seen.erased([ADA, "bob"]) == {ADA}


async def test_the_end_of_an_erasure_is_seen_at_once(erasures: Erasures) -> None:
    await erasures.block(ADA, "one", at=NOW)
    seen = SeenTombstones(erasures, seconds=Clock())
    assert (await seen.of(ADA, [ADA, T1]))[ADA].erasing
    await erasures.unblock(ADA, "one", at=NOW)
    (ended,) = (await seen.of(ADA, [ADA, T1])).values()
    assert (ended.epoch, ended.erasing) == (2, frozenset())


async def test_another_users_erasure_makes_it_read_anew_and_changes_nothing(erasures: Erasures) -> None:
    await erasures.block(ADA, "one", at=NOW)
    await erasures.unblock(ADA, "one", at=NOW)
    clock = Clock()
    seen = SeenTombstones(erasures, seconds=clock)
    before = await seen.epoch(), await seen.of(ADA, [ADA, T1])
    await erasures.block("bob", "two", at=NOW)
    clock.seconds = LEASE_SECONDS
    after = await seen.epoch(), await seen.of(ADA, [ADA, T1])
    assert after[0] > before[0]
    assert after[1] == before[1] != {}
