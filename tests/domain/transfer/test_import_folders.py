"""Checks what other agents leave in folders and SQLite files: read with its times, or named."""

import hashlib
import json
import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from recollect.memory.transfer.line_source import SourceHoldings, Unreadable
from recollect.memory.transfer.sources.named_source import open_source
from recollect.memory.values.errors import InvalidRequest
from recollect.memory.values.mem_config import MemoryConfig

WRITTEN = datetime(2025, 6, 22, 9, 7, 58, tzinfo=UTC)
Fields = dict[str, Any]


@pytest.fixture
def config(tmp_path: Path) -> MemoryConfig:
    return MemoryConfig(data_dir=tmp_path / "own")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "theirs"
    made.mkdir()
    return made


def put(path: Path, said: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(said), encoding="utf-8")
    os.utime(path, (WRITTEN.timestamp(), WRITTEN.timestamp()))


async def read(path: Path, config: MemoryConfig, user: str | None = "ada") -> tuple[list[Fields | str], SourceHoldings]:
    """Return the fields of all lines, those that cannot be read as their sentences, and what the source held."""
    source = open_source(str(path), config, user_id=user)
    lines = [line.said async for line in source.lines]
    shown = [line.error if isinstance(line, Unreadable) else line for line in lines if not isinstance(line, bytes)]
    return [dict(line) if not isinstance(line, str) else line for line in shown], source.holdings


TALK = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]


async def test_a_tiered_memory_is_read_once_and_the_rest_is_named(folder: Path, config: MemoryConfig) -> None:
    put(
        folder / "conversation_backups/session_20250101_100000.json",
        {"created_at": "2025-01-01T10:00:00", "messages": TALK},
    )
    put(
        folder / "conversation_backups/recovered_20250102_100000.json",
        {"created_at": "2025-01-02T10:00:00", "recovered": True, "messages": [{"role": "user", "content": "Lost"}]},
    )
    put(folder / "current_session.json", [{"role": "user", "content": "Now"}])
    put(folder / "personal_meta.json", [{"text": "Ada likes tea."}, {"text": ""}, {"x": 1}])
    digest = hashlib.sha256(
        json.dumps(TALK, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()
    chunk = {"session_id": "s1", "session_hash": digest, "timestamp": 1_735_000_000.5}
    old = {"session_id": "s0", "session_hash": "gone", "timestamp": 1_700_000_000.25}
    put(
        folder / "conversation_meta.json",
        [
            {**chunk, "chunk_index": 0, "type": "user_query", "text": "Hi"},
            {**old, "chunk_index": 0, "type": "user_query", "text": "Before"},
            {**old, "chunk_index": 1, "type": "assistant_response", "text": "Yes"},
        ],
    )
    put(
        folder / "summary_meta.json",
        [
            {"session_id": "s1", "session_hash": digest, "created_at": 1.0, "summary_text": "They greeted."},
            {"session_id": "s0", "session_hash": "gone", "created_at": 1.0, "summary_text": "Long ago."},
        ],
    )
    put(folder / "knowledge/physics/academic_meta.json", [{"text": "E = mc2"}])
    put(folder / "node_modules/package.json", {})
    lines, holdings = await read(folder, config)
    talks = [
        (line["thread_id"], line["role"], line["content"], line["timestamp"])
        for line in lines
        if isinstance(line, dict) and "role" in line
    ]
    current = talks[-3][0]
    assert current.startswith("current_session-")
    assert sorted(talks) == sorted(
        [
            ("session_20250101_100000", "user", "Hi", "2025-01-01T10:00:00+00:00"),
            ("session_20250101_100000", "assistant", "Ho", "2025-01-01T10:00:00.001000+00:00"),
            ("recovered_20250102_100000", "user", "Lost", "2025-01-02T10:00:00+00:00"),
            (current, "user", "Now", WRITTEN.isoformat()),
            ("s0", "user", "Before", 1_700_000_000.25),
            ("s0", "assistant", "Yes", 1_700_000_000.25),
        ]
    )
    assert {"kind": "fact", "value": "Ada likes tea.", "user_id": "ada", "timestamp": WRITTEN.isoformat()} in lines
    assert lines[-2:] == [
        {"kind": "summary", "thread_id": "session_20250101_100000", "content": "They greeted.", "user_id": "ada"},
        {"kind": "summary", "thread_id": "s0", "content": "Long ago.", "user_id": "ada"},
    ]
    assert [line for line in lines if isinstance(line, str)] == ["personal_meta.json holds an entry without a text."]
    assert holdings.skipped == ["knowledge/physics/academic_meta.json"]
    assert len(holdings.read) == 6


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"name": "Ada", "Home Town": "Paris"}, [("name", "Ada"), ("home_town", "Paris")]),
        ({"facts": ["Ada flies."]}, [(None, "Ada flies.")]),
        (
            [{"fact": "Ada swims.", "created_at": "2024-01-01"}, "Ada runs."],
            [(None, "Ada swims."), (None, "Ada runs.")],
        ),
        ("{", []),
    ],
)
async def test_a_file_of_personal_facts_is_read_as_it_comes(
    folder: Path, config: MemoryConfig, said: object, expected: list[tuple[str | None, str]]
) -> None:
    path = folder / "personal_meta.json"
    put(path, said)
    if said == "{":
        path.write_text("{", encoding="utf-8")
    lines, _ = await read(path, config)
    found = [line for line in lines if isinstance(line, dict)]
    assert [(line.get("key"), line["value"]) for line in found] == expected
    assert all("timestamp" in line for line in found)
    assert bool(found) != any(isinstance(line, str) for line in lines)


async def test_a_json_file_of_any_name_that_is_one_session_is_read(folder: Path, config: MemoryConfig) -> None:
    put(folder / "export.json", {"messages": TALK, "session_id": "s9"})
    lines, _ = await read(folder / "export.json", config)
    assert [line["thread_id"] for line in lines if isinstance(line, dict)] == ["s9", "s9"]
    with pytest.raises(InvalidRequest, match=r"export\.json"):
        open_source(str(folder), config, user_id=None)


def database(path: Path, script: str) -> Path:
    with closing(sqlite3.connect(path)) as file:
        file.executescript(script)
    return path


APP = """
CREATE TABLE memory (id INTEGER PRIMARY KEY, content TEXT, tags JSON, created_at DATETIME);
INSERT INTO memory VALUES (1, 'Ada likes tea.', '["food", "drinks", ""]', '2025-01-01 10:00:00.123456');
INSERT INTO memory VALUES (2, 'Ada flies.', NULL, 1735725600);
INSERT INTO memory VALUES (3, NULL, '[]', NULL);
INSERT INTO memory VALUES (4, 'Ada runs.', 'sport, health', '2025-01-03T00:00:00Z');
CREATE TABLE message (id INTEGER PRIMARY KEY, chat_id INTEGER, role TEXT, content TEXT, created_at TEXT);
INSERT INTO message VALUES (1, 7, 'user', 'Hi', '2025-01-01 10:00:00');
INSERT INTO message VALUES (2, 7, 'assistant', 'Ho', '2025-01-01 10:00:01');
CREATE TABLE message_store (id INTEGER PRIMARY KEY, session_id TEXT, message TEXT);
INSERT INTO message_store VALUES (1, 's1', '{"type": "human", "data": {"content": "Hello", "type": "human"}}');
CREATE TABLE checkpoints (thread_id TEXT, checkpoint BLOB);
INSERT INTO checkpoints VALUES ('t', x'00');
CREATE TABLE "odd ""name" (x);
INSERT INTO "odd ""name" VALUES (1);
CREATE TABLE empty (x);
"""


async def test_the_table_memory_becomes_facts_and_other_tables_are_named(folder: Path, config: MemoryConfig) -> None:
    path = database(folder / "app.db", APP)
    before = path.read_bytes()
    lines, holdings = await read(path, config)
    memories = [line for line in lines if isinstance(line, dict) and line.get("kind") == "fact"]
    assert memories == [
        {
            "kind": "fact",
            "value": "Ada likes tea.",
            "user_id": "ada",
            "timestamp": "2025-01-01 10:00:00.123456",
            "tags": ["food", "drinks"],
        },
        {"kind": "fact", "value": "Ada flies.", "user_id": "ada", "timestamp": 1_735_725_600},
        {
            "kind": "fact",
            "value": "Ada runs.",
            "user_id": "ada",
            "timestamp": "2025-01-03T00:00:00Z",
            "tags": ["sport", "health"],
        },
    ]
    talks = [line for line in lines if isinstance(line, dict) and "role" in line]
    assert [(line["thread_id"], line["role"], line["content"], line["message_id"]) for line in talks] == [
        ("7", "user", "Hi", "app:message:1"),
        ("7", "assistant", "Ho", "app:message:2"),
        ("s1", "user", "Hello", "app:message_store:1"),
    ]
    assert not [line for line in lines if isinstance(line, str)]
    assert (holdings.read, holdings.skipped) == (["memory", "message", "message_store"], ["checkpoints", 'odd "name'])
    assert path.read_bytes() == before


async def test_a_database_without_anything_is_not_recognised(folder: Path, config: MemoryConfig) -> None:
    path = database(folder / "shop.db", "CREATE TABLE orders (id); INSERT INTO orders VALUES (1);")
    assert await read(path, config) == ([], SourceHoldings([], ["orders"]))
    path.write_bytes(path.read_bytes()[:40])
    lines, _ = await read(path, config)
    assert lines == ["shop.db cannot be read as a SQLite database (DatabaseError)."]
