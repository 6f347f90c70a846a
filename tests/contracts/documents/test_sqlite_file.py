"""What only the SQLite file has to do: plans, bytes, crashes, bad files."""

import asyncio
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from memory.documents import Documents
from memory.errors import ConfigurationError, StoreUnavailable
from memory.scope import Scope
from memory.stores.sqlite import conversations, facts, open_sqlite_documents, updates
from memory.update import owed
from tests.contracts.documents.conftest import Backend
from tests.contracts.documents.samples import asked, fact, finish, indexed

T1 = Scope("ada", "t1")
HOT = {
    "accept": conversations.ACCEPT,
    "commit": conversations.COMMIT,
    "turn": conversations.TURN,
    "messages": conversations.MESSAGES,
    "recent": conversations.RECENT,
    "count of thread": conversations.COUNT_OF_THREAD,
    "count of user": conversations.COUNT_OF_USER,
    "indexed of user": conversations.INDEXED_OF_USER,
    "pending": updates.PENDING,
    "record": updates.RECORD,
    "living": facts.LIVING,
    "first page": facts.FIRST_PAGE,
    "next page": facts.NEXT_PAGE,
    "end": facts.END,
    "confirm": facts.CONFIRM,
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "documents.db"


@pytest.fixture
def backend(path: Path) -> Backend:
    return lambda: open_sqlite_documents(path)


def plan(path: Path, sql: str) -> list[str]:
    names: list[str] = re.findall(r":(\w+)", sql)
    with closing(sqlite3.connect(path)) as connection:
        values = dict.fromkeys(names) if names else [None] * sql.count("?")
        return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]


@pytest.mark.parametrize("statement", HOT)
async def test_hot_statements_read_only_what_an_index_leads_to(documents: Documents, path: Path, statement: str):
    await documents.ping()
    steps = plan(path, HOT[statement])
    assert any(step.startswith("SEARCH") and "user_id=?" in step for step in steps)
    assert not [step for step in steps if step.startswith(("SCAN messages", "SCAN reply", "SCAN facts"))]
    assert not [step for step in steps if "TEMP B-TREE" in step]


async def test_waiting_users_are_read_from_the_index_of_pending_turns(documents: Documents, path: Path):
    await documents.ping()
    steps = plan(path, updates.PENDING_USERS)
    assert steps[0] == "SCAN messages USING COVERING INDEX messages_pending"


async def test_reads_do_not_wait_for_a_writer(documents: Documents, path: Path):
    exchange = await finish(documents, "turn1")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        writing = asyncio.create_task(documents.conversations.accept(asked("turn2")))
        async with asyncio.timeout(1):
            assert await documents.conversations.recent(T1, limit=9) == [exchange]
        assert not writing.done()
        other.execute("ROLLBACK")
    assert (await writing).position == 3


async def test_deleted_text_leaves_no_bytes_in_the_folder(documents: Documents, path: Path):
    def found(secret: str) -> int:
        return sum(file.read_bytes().count(secret.encode()) for file in path.parent.iterdir())

    for number in range(200):
        for user_id in ("ada", "secretuser"):
            content = f"{user_id}-secret-text " * (number % 40 + 1)
            await documents.conversations.accept(asked(f"x{number * 37 % 200}", user_id=user_id, content=content))
            await documents.facts.insert(fact(f"f{number}", user_id=user_id, value=content))
    assert found("secretuser") > 0
    assert await documents.facts.delete(Scope("secretuser")) == 200
    assert await documents.conversations.delete(Scope("secretuser")) == 200
    assert found("secretuser") == 0
    assert found("ada-secret-text") > 0


async def test_a_delete_says_when_the_log_could_not_be_cut_off(documents: Documents, path: Path):
    await finish(documents, "turn1")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT * FROM messages").fetchall()
        with pytest.raises(StoreUnavailable, match="another program"):
            await documents.conversations.delete(T1)
        other.execute("COMMIT")
    assert await documents.conversations.delete(T1) == 0


async def test_cancelled_writes_are_whole_or_absent(documents: Documents):
    for number in range(60):
        writing = asyncio.create_task(finish(documents, str(number), update=owed()))
        for _ in range(number % 7):
            await asyncio.sleep(0)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
    last = await finish(documents, "last")
    assert (await documents.conversations.recent(T1, limit=1)) == [last]
    listed = await documents.conversations.messages(T1, limit=999)
    assert [message.position for message in listed] == sorted({message.position for message in listed})
    finished = await documents.conversations.count_turns(T1, at_most=99)
    assert len(await documents.updates.pending("ada", limit=99)) == finished - 1


def test_acknowledged_turns_survive_kill_9(path: Path):
    acknowledged: list[str] = []
    for life in range(3):
        command = [sys.executable, "-m", "tests.contracts.documents.sqlite_child", str(path), str(life)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            acknowledged += [child.stdout.readline().strip() for _ in range(40)]
            child.kill()
            acknowledged += [line.strip() for line in child.stdout.read().splitlines(keepends=True) if "\n" in line]
    assert len(acknowledged) >= 120

    async def stored() -> list[str]:
        async with open_sqlite_documents(path) as documents:
            turns = await documents.updates.pending("ada", limit=1_000_000)
            return [turn.message.turn_id for turn in turns]

    found = asyncio.run(stored())
    assert [turn_id for turn_id in found if turn_id in set(acknowledged)] == acknowledged


async def test_a_closed_store_is_unavailable(backend: Backend):
    async with backend() as documents:
        exchange = await finish(documents, "turn1")
    with pytest.raises(StoreUnavailable):
        await documents.ping()
    with pytest.raises(StoreUnavailable):
        await documents.conversations.accept(exchange.user)
    with pytest.raises(StoreUnavailable):
        await documents.facts.living(T1, limit=9)


def damage(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 8192) + content[-4096:])


async def test_a_damaged_file_is_unavailable(backend: Backend, path: Path):
    async with backend() as documents:
        await finish(documents, "turn1", update=indexed())
    damage(path)
    with pytest.raises((StoreUnavailable, ConfigurationError), match="DATA_DIR"):
        async with backend() as documents:
            await documents.conversations.recent(T1, limit=9)


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
    async with backend() as documents:
        await documents.ping()
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
async def test_the_file_is_private(documents: Documents, path: Path):
    await finish(documents, "turn1")
    assert {file.stat().st_mode & 0o077 for file in path.parent.iterdir()} == {0}
