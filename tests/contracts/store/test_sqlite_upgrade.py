"""Files that version 1 wrote."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from recollect.memory.ports.facts import FactFilter
from recollect.memory.ports.store import Store
from recollect.memory.stores.sqlite import open_sqlite_store
from recollect.memory.stores.update_json import update_to_json
from recollect.memory.values.fact import Ended, Fact
from recollect.memory.values.scope import Scope
from recollect.memory.values.thread_record import ThreadRecord
from recollect.memory.values.times import to_ms
from recollect.memory.values.update import owed
from tests.contracts.store.conftest import Backend
from tests.contracts.store.conversations import ids_of_indexed
from tests.contracts.store.samples import NOW, SECOND, fact, indexed

ADA = Scope("ada")
VERSION_1 = """
CREATE TABLE messages (
    seq INTEGER PRIMARY KEY, user_id TEXT NOT NULL, thread_id TEXT NOT NULL, turn_id TEXT NOT NULL, role TEXT NOT NULL,
    position INTEGER NOT NULL, created_at INTEGER NOT NULL, name TEXT, content TEXT NOT NULL, metadata TEXT NOT NULL,
    result TEXT, status TEXT, indexed INTEGER NOT NULL DEFAULT 0, generation INTEGER NOT NULL DEFAULT 0,
    update_json TEXT
) STRICT;
CREATE UNIQUE INDEX messages_by_turn ON messages (user_id, turn_id, role);
CREATE UNIQUE INDEX messages_by_position ON messages (user_id, thread_id, position);
CREATE INDEX messages_by_time ON messages (user_id, thread_id, created_at);
CREATE INDEX messages_pending ON messages (user_id, status) WHERE status = 'pending';
CREATE INDEX messages_indexed ON messages (user_id) WHERE indexed = 1;
CREATE TABLE facts (
    user_id TEXT NOT NULL, id TEXT NOT NULL, home TEXT NOT NULL, key TEXT, value TEXT NOT NULL,
    statement TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, confirmed_at INTEGER NOT NULL,
    valid_from INTEGER NOT NULL, valid_to INTEGER, scope TEXT NOT NULL, thread_id TEXT, turn_id TEXT,
    source TEXT NOT NULL, tags TEXT NOT NULL, importance REAL NOT NULL, pinned INTEGER NOT NULL, evidence TEXT,
    replaces TEXT
) STRICT;
CREATE UNIQUE INDEX facts_by_id ON facts (user_id, id);
CREATE INDEX facts_living ON facts (user_id, home, created_at, id) WHERE valid_to IS NULL;
CREATE INDEX facts_by_home ON facts (user_id, home);
CREATE TABLE state (openings INTEGER NOT NULL) STRICT;
INSERT INTO state VALUES (7);
PRAGMA user_version = 1;
"""
FACT = """
INSERT INTO facts VALUES
(:user, :id, :home, 'name', 'Ada', 'The user is Ada.', :now, :now, :now, :now, :end, :scope, 't1', :turn, 'turn',
'["a"]', 0.5, 0, NULL, :replaces)
"""
MESSAGE = """
INSERT INTO messages VALUES
(:seq, 'ada', 't1', 'turn1', :role, :seq, :now, NULL, 'Hello.', '{}', :result, :status, :indexed, 3, :update)
"""


def older_fact(fact_id: str, *, home: str = "", end: int | None = None, replaces: str | None = None) -> dict[str, Any]:
    scope = "thread" if home else "user"
    ids = {"user": "ada", "id": fact_id, "home": home, "scope": scope, "turn": f"of {fact_id}", "replaces": replaces}
    return {**ids, "now": to_ms(NOW), "end": end}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a file as version 1 left it: a turn, and facts of which two were ended by turns."""
    path = tmp_path / "documents.db"
    end = to_ms(NOW + SECOND)
    reply = {"result": "{}", "status": "pending", "indexed": 1, "update": update_to_json(indexed())}
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(VERSION_1)
        connection.execute(
            MESSAGE,
            {**dict.fromkeys(reply), "indexed": 0, "seq": 1, "role": "user", "now": to_ms(NOW)},
        )
        connection.execute(MESSAGE, {**reply, "seq": 2, "role": "assistant", "now": to_ms(NOW + SECOND)})
        facts = [
            older_fact("superseded", end=end),
            older_fact("successor", replaces="superseded"),
            older_fact("deleted", home="t1", end=end),
            older_fact("here", home="t1"),
        ]
        connection.executemany(FACT, facts)
    return path


@pytest.fixture
def backend(path: Path) -> Backend:
    return lambda: open_sqlite_store(path)


def upgraded(fact_id: str, **changes: Any) -> Fact:
    texts: dict[str, Any] = {
        "statement": "The user is Ada.",
        "thread_id": "t1",
        "turn_id": f"of {fact_id}",
        "tags": ("a",),
    }
    return replace(fact(fact_id), **texts, **changes)


async def test_facts_of_version_1_are_open_or_ended_by_a_turn_and_owed_to_the_index(store: Store):
    end = NOW + SECOND
    successor = upgraded("successor", replaces="superseded")
    here = upgraded("here", scope="thread")
    expected = [
        upgraded("deleted", scope="thread", valid_to=end, ended=Ended("turn", end)),
        here,
        successor,
        upgraded("superseded", valid_to=end, ended=Ended("turn", end, "of successor")),
    ]
    owed_facts = await store.facts.owed(user_id="ada", limit=9)
    assert sorted(owed_facts, key=lambda each: each.id) == expected
    assert await store.facts.owed_users(limit=9) == ["ada"]
    assert await store.facts.living(Scope("ada", "t1"), at=end, limit=9) == [successor, here]
    assert await store.facts.page("ada", FactFilter(end), limit=9) == [successor]
    assert await store.facts.count_open(ADA) == 2
    assert await store.facts.replace(here.revised(at=NOW, value="Other"), revision=1)


async def test_turns_of_version_1_are_read_and_go_on(store: Store):
    (turn,) = await store.updates.pending("ada", limit=9)
    assert turn.update == indexed()
    assert len(await ids_of_indexed(store, "ada")) == 2
    assert await store.conversations.rewrite(turn, result={}, update=owed())
    (overview,) = await store.conversations.overviews("ada", limit=9)
    assert (overview.thread_id, overview.turns, overview.messages) == ("t1", 1, 2)
    assert await store.threads.put(ThreadRecord("ada", "t1", revision=1), revision=0)


async def test_an_upgraded_file_is_like_a_new_one_and_counts_its_openings_on(
    backend: Backend, path: Path, tmp_path: Path
):
    generations: list[int] = []
    for _ in range(2):
        async with backend() as store:
            claim = await store.updates.claim("ada", owner="a", lease=SECOND, now=NOW)
            assert claim is not None
            generations.append(claim.generation >> 32)
    async with open_sqlite_store(tmp_path / "new.db") as store:
        await store.ping()
    assert generations == [8, 9]
    assert schema(path) == schema(tmp_path / "new.db")


def schema(path: Path) -> list[tuple[str, str]]:
    """Return each table's columns and each index's text."""
    with closing(sqlite3.connect(path)) as connection:
        made = connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name").fetchall()
        return [(name, describe(connection, kind, name, sql)) for kind, name, sql in made]


def describe(connection: sqlite3.Connection, kind: str, name: str, sql: str) -> str:
    return sql if kind == "index" else str(connection.execute(f"PRAGMA table_info({name})").fetchall())
