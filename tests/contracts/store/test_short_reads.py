"""Short reads run on the event loop; long ones leave it to others, and none keeps the others from their turn."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from recollect.memory.background.short_calls import SHORT_CALLS
from recollect.memory.stores.sqlite.connections.short_reads import ShortReads
from recollect.memory.stores.sqlite.connections.step_limit import STEPS
from recollect.memory.stores.sqlite.database import SqliteDatabase, open_database
from recollect.memory.values.errors import StoreUnavailable

COUNT = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?) SELECT {} FROM numbers"
LONG = 5_000_000
"""A second's work, or so."""


@pytest.fixture(autouse=True)
def on_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SHORT_CALLS, "on_loop", True)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncGenerator[SqliteDatabase]:
    async with open_database(tmp_path / "recollect.db") as opened:
        yield opened


async def test_short_reads_go_on_while_a_long_one_runs(database: SqliteDatabase) -> None:
    long = asyncio.create_task(database.read(COUNT.format("count(*)"), [LONG]))
    answered = 0
    while not long.done():
        assert await database.read("SELECT 'short'") == [("short",)]
        answered += 1
        await asyncio.sleep(0.001)
    assert await long == [(LONG,)]
    assert answered > 20


async def test_a_long_read_has_all_rows(database: SqliteDatabase) -> None:
    rows = await database.read(COUNT.format("n"), [STEPS])
    assert rows == [(number,) for number in range(1, STEPS + 1)]


async def test_who_reads_without_a_pause_leaves_the_others_their_turn(database: SqliteDatabase) -> None:
    ended = asyncio.Event()

    async def read_on() -> None:
        while not ended.is_set():
            await database.read(COUNT.format("n"), [100])

    reading = [asyncio.create_task(read_on()) for _ in range(8)]
    async with asyncio.timeout(20):
        for _ in range(20):
            await database.write("CREATE TABLE notes (id)")
            await database.write("DROP TABLE notes")
    ended.set()
    await asyncio.gather(*reading)


async def test_an_error_is_the_caller_s_and_nothing_can_be_written(database: SqliteDatabase) -> None:
    for statement in ("SELECT * FROM nowhere", "CREATE TABLE notes (id)"):
        with pytest.raises(StoreUnavailable):
            await database.read(statement)
    assert await database.read("SELECT name FROM sqlite_master WHERE name = 'notes'") == []


def test_a_short_read_is_never_given_up_however_often_it_runs() -> None:
    reads = ShortReads(sqlite3.connect(":memory:"))
    assert all(reads.rows(COUNT.format("n"), [100]) for _ in range(STEPS // 50))
    assert reads.rows(COUNT.format("count(*)"), [STEPS]) is None
    assert reads.rows("SELECT 1", []) == [(1,)]
    reads.close()


def test_a_read_that_would_wait_for_another_program_is_left_to_the_thread(tmp_path: Path) -> None:
    path = tmp_path / "held.db"
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("CREATE TABLE notes (id)")
    reads = ShortReads(sqlite3.connect(path, timeout=0))
    holder.execute("BEGIN EXCLUSIVE")
    assert reads.rows("SELECT * FROM notes", []) is None
    holder.execute("COMMIT")
    assert reads.rows("SELECT * FROM notes", []) == []
    reads.close()
    holder.close()
