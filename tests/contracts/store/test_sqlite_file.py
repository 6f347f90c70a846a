"""Checks what only the SQLite file has to do: plans, bytes, crashes, bad files."""

import asyncio
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from recollect.memory.ports.facts import FactFilter
from recollect.memory.ports.store import Store
from recollect.memory.stores.sqlite import (
    counts,
    fact_queries,
    imports,
    message_queries,
    open_sqlite_store,
    threads,
    timeline,
    updates,
)
from recollect.memory.stores.sqlite.store import USERS
from recollect.memory.values.errors import ConfigurationError, StoreUnavailable
from recollect.memory.values.scope import Scope
from recollect.memory.values.thread_record import ThreadRecord
from recollect.memory.values.update import owed
from tests.contracts.store.conftest import Backend
from tests.contracts.store.samples import NOW, asked, fact, failed, finish, indexed

T1 = Scope("ada", "t1")
HOT = {
    "accept": message_queries.ACCEPT,
    "commit": message_queries.COMMIT,
    "turn": message_queries.TURN,
    "messages": message_queries.MESSAGES,
    "recent": message_queries.RECENT,
    "exchanges": message_queries.EXCHANGES,
    "last position": message_queries.LAST_POSITION,
    "count of thread": message_queries.COUNT_OF_THREAD,
    "count of user": message_queries.COUNT_OF_USER,
    "count messages": message_queries.COUNT_MESSAGES,
    "indexed of user": message_queries.INDEXED_OF_USER,
    "turns": message_queries.TURNS,
    "rewrite": message_queries.REWRITE,
    "recommit": message_queries.RECOMMIT,
    "oldest": message_queries.OLDEST,
    "during, thread": timeline.DURING_OF_THREAD,
    "during, user": timeline.DURING_OF_USER,
    "latest of thread": timeline.LATEST_OF_THREAD,
    "latest of user": timeline.LATEST_OF_USER,
    "preceding": timeline.PRECEDING,
    "before": timeline.BEFORE,
    "after": timeline.AFTER,
    "known": imports.imported_statement(3),
    "settle": imports.settle_statement(3),
    "pending": updates.PENDING,
    "pending by time": updates.PENDING_BY_TIME,
    "record": updates.RECORD,
    "failed of user": updates.FAILED_OF_USER,
    "backlog": updates.BACKLOG,
    "replace": fact_queries.REPLACE,
    "fact": fact_queries.FACT,
    "living": fact_queries.LIVING,
    "proposed": fact_queries.PROPOSED,
    "page": fact_queries.page_statement(FactFilter(NOW), follows=False),
    "next page": fact_queries.page_statement(FactFilter(NOW, thread_id="t1", tag="x"), follows=True),
    "newest page": fact_queries.page_statement(FactFilter(NOW, newest_first=True), follows=True),
    "page of proposed": fact_queries.page_statement(FactFilter(NOW, status="proposed"), follows=True),
    "notes": fact_queries.NOTES,
    "successors": fact_queries.SUCCESSORS,
    "owed": fact_queries.OWED,
    "mark indexed": fact_queries.facts_marked_indexed(2),
    "indexed facts of user": fact_queries.INDEXED_OF_USER,
    "count open of user": fact_queries.COUNT_OPEN_OF_USER,
    "count open of thread": fact_queries.COUNT_OPEN_OF_THREAD,
    "weakest of user": fact_queries.WEAKEST_OF_USER,
    "count of a user's": counts.OF_USER,
    "count of a thread's": counts.OF_THREAD,
    "record of thread": threads.RECORD,
    "replace record": threads.REPLACE,
    "owed records": threads.OWED,
    "mark record": threads.MARK_INDEXED,
    "indexed records of user": threads.INDEXED_OF_USER,
}
TABLE_SCANS = ("SCAN messages", "SCAN reply", "SCAN message", "SCAN facts")
# The sweep's queries for all users: read from an index that holds nothing else, empty where there is nothing to do.
SWEPT = {
    "pending users": (updates.PENDING_USERS, "SCAN messages USING COVERING INDEX messages_pending"),
    "failed": (updates.FAILED, "SEARCH reply USING INDEX messages_failed (user_id>?)"),
    "aged turns": (message_queries.AGED, "SEARCH message USING INDEX messages_by_age (created_at<?)"),
    "owed users": (fact_queries.OWED_USERS, "SCAN facts USING COVERING INDEX facts_owed"),
    "aged facts": (fact_queries.AGED, "SEARCH facts USING INDEX facts_by_age (confirmed_at<?)"),
    "count of indexed facts": (fact_queries.COUNT_INDEXED, "SCAN facts USING COVERING INDEX facts_indexed"),
    "closing": (threads.CLOSING, "SCAN threads USING INDEX threads_closing"),
    "users who owe records": (threads.OWED_USERS, "SCAN threads USING COVERING INDEX threads_owed"),
    "count of indexed": (message_queries.COUNT_INDEXED, "SCAN messages USING COVERING INDEX messages_searchable"),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "documents.db"


@pytest.fixture
def backend(path: Path) -> Backend:
    return lambda: open_sqlite_store(path)


def plan(path: Path, sql: str) -> list[str]:
    names: list[str] = re.findall(r":(\w+)", sql)
    with closing(sqlite3.connect(path)) as connection:
        values = dict.fromkeys(names) if names else [None] * sql.count("?")
        return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]


def count_bytes(path: Path, secret: str) -> int:
    return sum(file.read_bytes().count(secret.encode()) for file in path.parent.iterdir())


@pytest.mark.parametrize("statement", HOT)
async def test_hot_statements_read_only_what_an_index_leads_to(store: Store, path: Path, statement: str):
    await store.ping()
    steps = plan(path, HOT[statement])
    assert any(step.startswith("SEARCH") and "user_id=?" in step for step in steps)
    assert not [step for step in steps if step.startswith(TABLE_SCANS)]
    assert not [step for step in steps if "TEMP B-TREE" in step]


@pytest.mark.parametrize("statement", SWEPT)
async def test_the_sweep_reads_what_it_looks_for_and_nothing_else(store: Store, path: Path, statement: str):
    await store.ping()
    sql, step = SWEPT[statement]
    assert plan(path, sql)[0] == step


async def test_living_facts_come_from_the_indexes_of_what_may_hold(store: Store, path: Path):
    await store.ping()
    steps = [step for step in plan(path, fact_queries.LIVING) if step.startswith("SEARCH")]
    assert steps == [
        *["SEARCH facts USING INDEX facts_open (user_id=? AND home=?)"] * 3,
        *["SEARCH facts USING INDEX facts_superseded (user_id=? AND home=? AND <expr>>?)"] * 3,
    ]


@pytest.mark.parametrize(
    "statement", [message_queries.OVERVIEWS, USERS, timeline.NAMES], ids=["overviews", "users", "names"]
)
async def test_lists_leap_from_one_to_the_next(store: Store, path: Path, statement: str):
    await store.ping()
    steps = plan(path, statement)
    assert not [step for step in steps if step.startswith(TABLE_SCANS)]
    assert {"messages"} <= {step.split()[1] for step in steps if "USING COVERING INDEX" in step}
    assert not [step for step in steps if step.startswith("SEARCH messages") and "COVERING" not in step]


async def test_reads_do_not_wait_for_a_writer(store: Store, path: Path):
    exchange = await finish(store, "turn1")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        writing = asyncio.create_task(store.conversations.accept(asked("turn2")))
        async with asyncio.timeout(1):
            assert await store.conversations.recent(T1, limit=9) == [exchange]
        assert not writing.done()
        other.execute("ROLLBACK")
    assert (await writing).position == 3


async def test_deleted_text_leaves_no_bytes_in_the_folder(store: Store, path: Path):
    for number in range(200):
        for user_id in ("ada", "secretuser"):
            content = f"{user_id}-secret-text " * (number % 40 + 1)
            await store.conversations.accept(asked(f"x{number * 37 % 200}", user_id=user_id, content=content))
            await store.facts.insert(fact(f"f{number}", user_id=user_id, value=content))
    assert count_bytes(path, "secretuser") > 0
    assert await store.facts.delete(Scope("secretuser")) == 200
    assert await store.conversations.delete(Scope("secretuser")) == 200
    await store.erasures.scrub()
    assert count_bytes(path, "secretuser") == 0
    assert count_bytes(path, "ada-secret-text") > 0


async def test_rows_that_grew_and_moved_leave_no_copies_after_a_scrub(store: Store, path: Path):
    for number in range(150):
        for user_id in ("ada", "secretuser"):
            await finish(store, f"t{number}", user_id=user_id, update=failed(f"{user_id} at first"))
            turn = await store.conversations.turn(user_id=user_id, turn_id=f"t{number * 7 % (number + 1)}")
            assert turn is not None
            longer = failed(f"{user_id}-text " * (number % 50 + 1))
            assert await store.conversations.rewrite(turn, result={}, update=longer)
    await store.conversations.delete(Scope("secretuser"))
    await store.erasures.scrub()
    assert await asyncio.to_thread(count_bytes, path, "secretuser") == 0
    assert await store.conversations.count_messages("ada") == 300


async def test_a_forgotten_fact_leaves_no_bytes_in_the_folder(store: Store, path: Path):
    for number in range(40):
        value = f"secret-{number % 7} " * (number * 20 + 1)
        version = {"value": f"secret-{number} of before"}
        await store.facts.insert(fact(f"f{number}", statement=value, value=value, history=(version,)))
    for number in range(40):
        blank = fact(f"f{number}", key=None, value="", statement="").revised(at=NOW, status="forgotten")
        assert await store.facts.replace(blank, revision=1)
        assert await asyncio.to_thread(count_bytes, path, "secret-") > 0 or number == 39
    assert await asyncio.to_thread(count_bytes, path, "secret-") == 0


async def test_rewritten_and_removed_turns_leave_no_bytes_in_the_folder(store: Store, path: Path):
    for number in range(20):
        text = f"secret-{number} " * (number * 50 + 1)
        await finish(store, f"{number}", update=failed(text))
        await store.threads.put(ThreadRecord("ada", f"t{number}", summary=text, revision=1), revision=0)
    for number in range(10):
        turn = await store.conversations.turn(user_id="ada", turn_id=f"{number}")
        assert turn is not None
        assert await store.conversations.rewrite(turn, result={}, update=owed())
    assert await store.conversations.remove(user_id="ada", turn_ids=[str(n) for n in range(10, 20)]) == 20
    assert await asyncio.to_thread(count_bytes, path, "secret-") > 0
    assert await store.threads.delete(Scope("ada")) == 20
    await store.erasures.scrub()
    assert await asyncio.to_thread(count_bytes, path, "secret-") == 0


async def test_an_update_that_an_earlier_version_worded_is_rewritten(store: Store, path: Path):
    await finish(store, "turn1", update=failed())
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("UPDATE messages SET update_json = replace(update_json, ',', ', ') WHERE role = 'assistant'")
    turn = await store.conversations.turn(user_id="ada", turn_id="turn1")
    assert turn is not None
    assert turn.update == failed()
    assert not await store.conversations.rewrite(replace(turn, update=owed()), result={}, update=owed())
    assert await store.conversations.rewrite(turn, result={}, update=owed())
    assert not await store.conversations.rewrite(turn, result={}, update=failed("late"))
    assert await store.conversations.turn(user_id="ada", turn_id="turn1") == replace(turn, result={}, update=owed())


async def test_a_delete_says_when_the_log_could_not_be_cut_off(store: Store, path: Path):
    await finish(store, "turn1")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT * FROM messages").fetchall()
        with pytest.raises(StoreUnavailable, match="another program"):
            await store.conversations.delete(T1)
        other.execute("COMMIT")
    assert await store.conversations.delete(T1) == 0


async def test_cancelled_writes_are_whole_or_absent(store: Store):
    for number in range(60):
        writing = asyncio.create_task(finish(store, str(number), update=owed()))
        for _ in range(number % 7):
            await asyncio.sleep(0)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
    last = await finish(store, "last")
    assert (await store.conversations.recent(T1, limit=1)) == [last]
    listed = await store.conversations.messages(T1, limit=999)
    assert [message.position for message in listed] == sorted({message.position for message in listed})
    finished = await store.conversations.count_turns(T1, at_most=99)
    assert len(await store.updates.pending("ada", limit=99)) == finished - 1


def test_acknowledged_turns_survive_kill_9(path: Path):
    acknowledged: list[str] = []
    for life in range(3):
        command = [sys.executable, "-m", "tests.contracts.store.sqlite_child", str(path), str(life)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            acknowledged += [child.stdout.readline().strip() for _ in range(40)]
            child.kill()
            acknowledged += [line.strip() for line in child.stdout.read().splitlines(keepends=True) if "\n" in line]
    assert len(acknowledged) >= 120

    async def stored() -> list[str]:
        async with open_sqlite_store(path) as store:
            turns = await store.updates.pending("ada", limit=1_000_000)
            return [turn.message.turn_id for turn in turns]

    found = asyncio.run(stored())
    assert [turn_id for turn_id in found if turn_id in set(acknowledged)] == acknowledged


async def test_a_closed_store_is_unavailable(backend: Backend):
    async with backend() as store:
        exchange = await finish(store, "turn1")
    with pytest.raises(StoreUnavailable):
        await store.ping()
    with pytest.raises(StoreUnavailable):
        await store.conversations.accept(exchange.user)
    with pytest.raises(StoreUnavailable):
        await store.facts.living(T1, at=NOW, limit=9)


def damage(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 8192) + content[-4096:])


async def test_a_damaged_file_is_unavailable(backend: Backend, path: Path):
    async with backend() as store:
        await finish(store, "turn1", update=indexed())
    damage(path)
    with pytest.raises((StoreUnavailable, ConfigurationError), match="DATA_DIR"):
        async with backend() as store:
            await store.conversations.recent(T1, limit=9)


def write_text(path: Path) -> None:
    path.write_text("This is not a database. " * 100)


@pytest.mark.parametrize("make", [Path.mkdir, write_text])
async def test_what_is_no_database_stops_the_start(backend: Backend, path: Path, make: Callable[[Path], None]):
    await asyncio.to_thread(path.parent.mkdir)
    make(path)
    with pytest.raises(ConfigurationError, match="DATA_DIR"):
        async with backend():
            pass


async def test_a_newer_file_stops_the_start(backend: Backend, path: Path):
    async with backend() as store:
        await store.ping()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(ConfigurationError, match="newer version"):
        async with backend():
            pass


async def test_another_programs_database_stops_the_start(backend: Backend, path: Path):
    await asyncio.to_thread(path.parent.mkdir)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE other (x)")
    with pytest.raises(ConfigurationError, match="another program"):
        async with backend():
            pass


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
async def test_the_file_is_private(store: Store, path: Path):
    await finish(store, "turn1")
    assert {file.stat().st_mode & 0o077 for file in path.parent.iterdir()} == {0}
