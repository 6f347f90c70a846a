"""Writes that wait together are one transaction; each caller gets its own outcome, after the commit."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from recollect.memory.background.short_calls import SHORT_CALLS
from recollect.memory.stores.sqlite.connections.group_commit import GroupCommit
from recollect.memory.stores.sqlite.connections.step_limit import STEPS
from recollect.memory.stores.sqlite.connections.transaction import MOST_CHARACTERS

INSERT = "INSERT INTO notes VALUES (?, ?) RETURNING id"
INSERT_MANY = """
WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
INSERT INTO notes SELECT n, thread() FROM numbers RETURNING text
"""
Opened = tuple[GroupCommit, list[str], Path]


@pytest.fixture(autouse=True, params=[True, False], ids=["on the loop", "in the thread"])
def on_loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(SHORT_CALLS, "on_loop", request.param)
    return request.param


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncGenerator[Opened]:
    """Yield an open group commit, the statements that SQLite has run on it, and its file."""
    path, ran = tmp_path / "notes.db", list[str]()
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.executescript("PRAGMA journal_mode = WAL; CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT);")
    connection.create_function("thread", 0, threading.get_ident)
    connection.set_trace_callback(ran.append)
    commit = GroupCommit(connection)
    yield commit, ran, path
    await commit.close()


def stored(path: Path) -> list[int]:
    connection = sqlite3.connect(path)
    ids = [number for (number,) in connection.execute("SELECT id FROM notes ORDER BY id")]
    connection.close()
    return ids


async def test_writes_that_wait_share_a_commit_and_are_stored_when_they_return(opened: Opened) -> None:
    commit, ran, path = opened

    async def write(number: int) -> bool:
        rows = await commit.run(INSERT, (number, "a note"))
        return rows == [(number,)] and number in stored(path)

    assert all(await asyncio.gather(*(write(number) for number in range(50))))
    assert 1 <= ran.count("COMMIT") <= 2


async def test_a_write_that_fails_fails_its_own_caller_alone(opened: Opened) -> None:
    commit, ran, path = opened

    ended = await asyncio.gather(
        *(commit.run(INSERT, (number, "a note")) for number in (1, 2, 2, 3)),
        commit.run("INSERT INTO nowhere VALUES (1)"),
        commit.run(INSERT, (4, 2**70)),
        return_exceptions=True,
    )

    kinds = [type(outcome) for outcome in ended]
    assert kinds == [list, list, sqlite3.IntegrityError, list, sqlite3.OperationalError, OverflowError]
    assert stored(path) == [1, 2, 3]
    assert ran.count("COMMIT") == 1


async def test_where_the_disk_is_full_only_what_does_not_fit_fails(opened: Opened) -> None:
    commit, _, path = opened
    await commit.run("PRAGMA max_page_count = 20", joins=False)

    ended = await asyncio.gather(
        commit.run(INSERT, (1, "a note")),
        commit.run(INSERT, (2, "x" * 500_000)),
        commit.run(INSERT, (3, "a note")),
        return_exceptions=True,
    )

    assert [isinstance(outcome, sqlite3.OperationalError) for outcome in ended] == [False, True, False]
    assert stored(path) == [1, 3]


async def test_a_cancelled_caller_takes_nobody_s_write_along(opened: Opened) -> None:
    commit, _, path = opened
    tasks = [asyncio.create_task(commit.run(INSERT, (number, "a note"))) for number in range(4)]
    await asyncio.sleep(0)
    tasks[1].cancel()

    ended = await asyncio.gather(*tasks, return_exceptions=True)

    assert isinstance(ended[1], asyncio.CancelledError)
    assert {0, 2, 3} <= set(stored(path))
    assert await commit.run(INSERT, (9, "later")) == [(9,)]


async def test_what_no_transaction_may_hold_runs_by_itself_and_in_its_turn(opened: Opened) -> None:
    commit, ran, _ = opened

    await asyncio.gather(
        commit.run(INSERT, (1, "a note")),
        commit.run(INSERT, (2, "a note")),
        commit.run("VACUUM", joins=False),
        commit.run(INSERT, (3, "a note")),
    )

    shown = [sql.split()[0] for sql in ran]
    assert shown.index("COMMIT") < shown.index("VACUUM") < len(shown) - 1 - shown[::-1].index("INSERT")


async def test_writes_that_wait_are_done_before_the_file_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)")
    commit = GroupCommit(connection)
    tasks = [asyncio.create_task(commit.run(INSERT, (number, "a note"))) for number in range(20)]
    await asyncio.sleep(0)

    await commit.close()

    assert stored(path) == list(range(20))
    await asyncio.gather(*tasks)


async def test_short_statements_run_on_the_loop_where_they_may_and_long_ones_in_the_thread(
    opened: Opened, on_loop: bool
) -> None:
    commit, _, path = opened
    ((short,),) = await commit.run("INSERT INTO notes VALUES (0, thread()) RETURNING text")
    assert (int(short) == threading.get_ident()) is on_loop

    several = await asyncio.gather(commit.run(INSERT, (-1, "a note")), commit.run(INSERT_MANY, [STEPS]))

    assert several[0] == [(-1,)]
    assert {int(text) for (text,) in several[1]}.isdisjoint({threading.get_ident()})
    assert stored(path) == list(range(-1, STEPS + 1))


async def test_much_text_is_stored_in_the_thread(opened: Opened) -> None:
    commit, _, path = opened
    ((ran_in,),) = await commit.run(
        "INSERT INTO notes VALUES (1, :text) RETURNING thread()", {"text": "x" * (MOST_CHARACTERS + 1)}
    )
    assert ran_in != threading.get_ident()
    assert stored(path) == [1]


async def test_while_another_program_writes_a_write_waits_for_it_beside_the_loop(opened: Opened) -> None:
    commit, _, path = opened
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    other.execute("INSERT INTO notes VALUES (1, 'of another program')")
    write = asyncio.create_task(commit.run(INSERT, (2, "a note")))
    turns = 0
    while turns < 20:  # the loop goes on meanwhile
        await asyncio.sleep(0.005)
        turns += 1
    assert not write.done()
    other.execute("COMMIT")
    assert await write == [(2,)]
    other.close()
    assert stored(path) == [1, 2]
