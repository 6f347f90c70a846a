"""Files of other versions: brought up by number, or refused with the way out."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from recollect.memory.language.said_hash import said_hash
from recollect.memory.stores.sqlite import open_sqlite_store
from recollect.memory.stores.sqlite.schema import FIRST_VERSION, SCRIPTS, VERSION, migrate
from recollect.memory.values.errors import ConfigurationError

STEP = "BEGIN IMMEDIATE; CREATE TABLE step_{0} (at INTEGER) STRICT; PRAGMA user_version = {0}; COMMIT;"
LATER = (*SCRIPTS[:1], STEP.format(FIRST_VERSION + 1), STEP.format(FIRST_VERSION + 2))


@pytest.mark.parametrize("found", [0, FIRST_VERSION, FIRST_VERSION + 1, FIRST_VERSION + 2])
def test_a_file_runs_the_scripts_that_it_has_not_run_yet(found: int):
    with closing(sqlite3.connect(":memory:")) as connection:
        migrate(connection, LATER[: max(0, found - FIRST_VERSION + 1)], found=0)
        assert connection.execute("PRAGMA user_version").fetchone() == (found,)
        migrate(connection, LATER, found=found)
        assert connection.execute("PRAGMA user_version").fetchone() == (FIRST_VERSION + 2,)
        names = connection.execute("SELECT name FROM sqlite_master WHERE name LIKE 'step%' ORDER BY rowid").fetchall()
        assert names == [(f"step_{FIRST_VERSION + 1}",), (f"step_{FIRST_VERSION + 2}",)]
        assert connection.execute("SELECT openings FROM state").fetchall() == [(0,)]


def test_the_scripts_end_with_the_version():
    with closing(sqlite3.connect(":memory:")) as connection:
        migrate(connection, SCRIPTS, found=0)
        assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)


@pytest.mark.parametrize("found", [1, FIRST_VERSION - 1])
async def test_a_file_before_the_first_version_stops_the_start_and_names_the_way_out(tmp_path: Path, found: int):
    path = tmp_path / "documents.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE messages (seq INTEGER PRIMARY KEY) STRICT")
        connection.execute(f"PRAGMA user_version = {found}")
    with pytest.raises(ConfigurationError, match=rf"schema {found}.*recollect export.*recollect import.*DATA_DIR"):
        async with open_sqlite_store(path) as store:
            await store.ping()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("messages",)]


async def test_a_file_counts_its_openings(tmp_path: Path):
    for opening in (1, 2):
        async with open_sqlite_store(tmp_path / "documents.db") as store:
            await store.ping()
        with closing(sqlite3.connect(tmp_path / "documents.db")) as connection:
            assert connection.execute("SELECT openings FROM state").fetchall() == [(opening,)]


async def test_what_was_said_before_the_hashes_is_found_by_them(tmp_path: Path):
    path = tmp_path / "documents.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        migrate(connection, SCRIPTS[:2], found=0)
        for role, absent in (("user", 0), ("assistant", 0), ("user", 1)):
            connection.execute(
                "INSERT INTO messages (user_id, thread_id, turn_id, role, position, created_at, content, metadata, "
                "absent) VALUES ('ada', 't' || ?, 't' || ?, ?, ?, 1, 'Hello.', '{}', ?)",
                (absent, absent, role, 1 + (role == "assistant"), absent),
            )
    async with open_sqlite_store(path) as store:
        assert await store.conversations.threads_saying("ada", said_hash("hello."), limit=9) == ["t0"]
