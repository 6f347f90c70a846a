"""Other agents' memories: a MongoDB, imported whole and told from our own by a start; a SQLite file; a folder."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from bson import ObjectId
from pymongo import MongoClient
from pymongo.database import Database

from tests.service.support.commands import recollect
from tests.service.support.running import Service, service
from tests.service.support.scripts import facts, texts

Document = dict[str, Any]
AT = datetime(2025, 6, 22, 9, 0, tzinfo=UTC)
ADA = ObjectId("64b7f1c2a1b2c3d4e5f60718")


@pytest.fixture
def databases(mongodb_url: str) -> Iterator[tuple[Database[Document], Database[Document]]]:
    """Yield a database for our own collections, and another agent's."""
    with MongoClient[Document](mongodb_url, tz_aware=True, tzinfo=UTC) as client:
        own, theirs = (client[f"{kind}_{uuid4().hex[:12]}"] for kind in ("own", "theirs"))
        yield own, theirs
        for database in (own, theirs):
            client.drop_database(database.name)


def fill(database: Database[Document]) -> ObjectId:
    """As the other agent leaves it: two windows of one thread, side by side, and an older thread."""
    session = ObjectId()

    def said(role: str, content: str, seconds: int, pair: str, **more: Any) -> Document:
        home: Document = {"session_id": session, "thread_id": "talk 1", "user_id": ADA, "metadata": {}}
        time = AT + timedelta(seconds=seconds)
        return {**home, "role": role, "content": content, "timestamp": time, "message_pair_id": pair, **more}

    database["conversations"].insert_many(
        [
            said("assistant", "It is four.", 3, "p1", metadata={"tokens": 7, "at": AT}),
            said("assistant", "Red.", 4, "p2"),
            said("user", "What is two and two?", 0, "p1"),
            said("user", "Which colour?", 1, "p2"),
            said("user", "Long ago", -9_000, "p0", user_id=str(ADA), thread_id="t0"),
            said("assistant", "Indeed", -9_000, "p0", user_id=str(ADA), thread_id="t0"),
        ]
    )
    database["user_facts"].insert_one({"user_id": str(ADA), "facts": {"name": "Ada"}, "last_update": AT})
    database["users"].insert_one({"_id": ADA, "email": "ada@example.org"})
    database["sessions"].insert_one({"_id": session, "user_id": ADA, "name": "Talk"})
    return session


def address(url: str, database: Database[Document]) -> str:
    return f"{url.rstrip('/')}/{database.name}"


def test_the_unified_collection_is_imported_in_pairs(
    tmp_path: Path, mongodb_url: str, databases: tuple[Database[Document], Database[Document]]
) -> None:
    own, theirs = databases
    session = fill(theirs)
    with service(tmp_path, MONGODB_URL=mongodb_url, MONGODB_DATABASE=own.name) as running:
        for expected in ("Imported 7, 0 known already, 0 failed.", "Imported 0, 7 known already, 0 failed."):
            ended = recollect(running, "import", address(mongodb_url, theirs))
            assert (ended.returncode, ended.stdout.splitlines()) == (0, [expected, "Not read: users."]), ended.stderr
        assert facts(running, user=str(ADA)) == {"name": "Ada"}
        assert texts(running, user=str(ADA), thread="t0") == [("user", "Long ago"), ("assistant", "Indeed")]
        (named,) = [
            thread["thread_id"]
            for thread in running.get("/api/threads", user_id=str(ADA))["items"]
            if thread["thread_id"] != "t0"
        ]
        talk = running.get(f"/api/threads/{named}/messages", user_id=str(ADA))["items"]
        assert [message["content"] for message in talk] == [
            *("What is two and two?", "It is four."),
            *("Which colour?", "Red."),
        ]
        assert [message["turn_id"] for message in talk] == [talk[0]["turn_id"]] * 2 + [talk[2]["turn_id"]] * 2
        assert {message["metadata"]["session_id"] for message in talk} == {str(session)}
        assert talk[1]["metadata"]["tokens"] == 7
        assert talk[1]["created_at"] == "2025-06-22T09:00:03.000Z"
    for collection in ("conversations", "user_facts"):
        assert own[collection].count_documents({"recollect": {"$exists": True}}) == own[collection].count_documents({})


def test_where_nothing_is_recognised_the_import_says_so(
    tmp_path: Path, mongodb_url: str, databases: tuple[Database[Document], Database[Document]]
) -> None:
    own, theirs = databases
    theirs["orders"].insert_one({"total": 7})
    running = Service(tmp_path, MONGODB_URL=mongodb_url, MONGODB_DATABASE=own.name)
    ended = recollect(running, "import", address(mongodb_url, theirs))
    assert ended.returncode == 1
    assert ended.stdout.splitlines() == [
        "Imported 0, 0 known already, 0 failed.",
        "Not read: orders.",
        "Nothing was recognised: SOURCE has none of the collections conversations, messages_history, messages, "
        "user_facts.",
    ]


def test_a_service_on_another_agents_database_says_what_to_do(
    tmp_path: Path, mongodb_url: str, databases: tuple[Database[Document], Database[Document]]
) -> None:
    _, theirs = databases
    fill(theirs)
    indexes = theirs["conversations"].index_information()
    settings = {"MONGODB_URL": mongodb_url, "MONGODB_DATABASE": theirs.name}
    running = Service(tmp_path, **settings).start(wait=False)
    assert running.process is not None
    assert running.process.wait(30) == 2
    assert "Traceback" not in running.log
    assert "conversations, user_facts" in running.log
    assert "MONGODB_PREFIX" in running.log
    assert f"/{theirs.name}" in running.log.partition("recollect import mongodb://")[2]
    assert theirs["conversations"].index_information() == indexes
    with service(tmp_path, **settings, MONGODB_PREFIX="recollect_") as beside:
        assert "recollect import mongodb://" in beside.log
        ended = recollect(beside, "import", address(mongodb_url, theirs))
        assert (ended.returncode, ended.stdout.splitlines()[0]) == (0, "Imported 7, 0 known already, 0 failed.")
        assert ended.stdout.splitlines()[1:] == ["Not read: users."]
        assert facts(beside, user=str(ADA)) == {"name": "Ada"}
        turn = beside.turn("I live in Oslo.", user="eve", wait_for_memory=True)
        assert turn["memory"]["update"]["status"] == "done"
    assert theirs["conversations"].count_documents({}) == 6
    assert theirs["recollect_conversations"].count_documents({}) == 8


def test_memories_of_a_sqlite_file_keep_their_times_and_tags(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "app.db")) as file:
        file.executescript(
            "CREATE TABLE memory (id INTEGER PRIMARY KEY, content TEXT, tags JSON, created_at DATETIME);"
            "INSERT INTO memory VALUES (1, 'Ada likes tea.', '[\"food\"]', '2025-01-01 10:00:00');"
            "CREATE TABLE chats (id INTEGER, title TEXT); INSERT INTO chats VALUES (1, 'One');"
        )
    running = Service(tmp_path)
    for expected in ("Imported 1, 0 known already, 0 failed.", "Imported 0, 1 known already, 0 failed."):
        ended = recollect(running, "import", str(tmp_path / "app.db"), "--user", "ada")
        assert (ended.returncode, ended.stdout.splitlines()) == (0, [expected, "Not read: chats."]), ended.stderr
    shown = json.loads(recollect(running, "facts", "--user", "ada", "--json").stdout)
    (fact,) = shown["items"]
    assert (fact["statement"], fact["tags"], fact["key"]) == ("Ada likes tea.", ["food"], None)
    assert (fact["created_at"], fact["valid_from"]) == ("2025-01-01T10:00:00.000Z",) * 2
