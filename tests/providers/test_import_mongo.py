"""Another agent's MongoDB as a source."""

import gc
import warnings
from collections.abc import AsyncGenerator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from bson import ObjectId
from pymongo import AsyncMongoClient
from pymongo.asynchronous.database import AsyncDatabase

from recollect.memory.transfer.line_source import SourceHoldings
from recollect.memory.transfer.sources.mongo import merged_messages, read_mongo
from recollect.memory.values.errors import InvalidRequest, StoreUnavailable

AT = datetime(2025, 6, 22, 9, 0, tzinfo=UTC)
Database = AsyncDatabase[dict[str, Any]]


@pytest.fixture
async def database(mongodb_url: str) -> AsyncGenerator[Database]:
    async with AsyncMongoClient[dict[str, Any]](mongodb_url) as client:
        name = f"import_{uuid4().hex[:12]}"
        yield client[name]
        await client.drop_database(name)


def at(seconds: float) -> datetime:
    return AT + timedelta(seconds=seconds)


async def read(url: str, database: Database, user: str | None = None) -> list[dict[str, Any]]:
    lines = [line async for line in read_mongo(f"{url.rstrip('/')}/{database.name}", user_id=user)]
    assert [line.number for line in lines] == list(range(1, len(lines) + 1))
    return [line.said for line in lines if isinstance(line.said, dict)]


async def test_two_collections_of_the_same_talk_are_merged(mongodb_url: str, database: Database) -> None:
    owner, session = ObjectId(), ObjectId()
    home = {"user_id": str(owner), "thread_id": str(session)}
    await database["sessions"].insert_one({"_id": session, "user_id": owner, "name": "Talk"})
    await database["messages_history"].insert_many(
        [
            {**home, "role": role, "content": content, "timestamp": at(seconds)}
            for role, content, seconds in [
                ("user", "Hi", 10.5),
                ("assistant", "Ho", 10.5),
                ("user", "ok", 20),
                ("assistant", "Good.", 20),
                ("user", "ok", 30),
                ("assistant", "Good.", 30),
            ]
        ]
    )
    await database["messages"].insert_many(
        [
            {"session_id": session, "user_message": asked, "ai_response": answered, "created_at": at(seconds)}
            for asked, answered, seconds in [
                ("First", "One", 0),
                ("Hi", "Ho", 12),
                ("ok", "Good.", 21),
                ("ok", "Good.", 500),
            ]
        ]
    )
    await database["user_facts"].insert_many(
        [
            {"user_id": str(owner), "facts": {"name": "Ada", "Home Town": "Paris"}, "last_update": at(40)},
            {"user_id": "eve", "facts": {}},
        ]
    )
    found = await read(mongodb_url, database)
    messages, facts = found[:-2], found[-2:]
    assert [(fields["role"], fields["content"]) for fields in messages] == [
        *(("user", "First"), ("assistant", "One"), ("user", "Hi"), ("assistant", "Ho")),
        *(("user", "ok"), ("assistant", "Good."), ("user", "ok"), ("assistant", "Good.")),
        *(("user", "ok"), ("assistant", "Good.")),
    ]
    assert {(fields["user_id"], fields["thread_id"]) for fields in messages} == {(str(owner), str(session))}
    assert len({fields["message_id"] for fields in messages}) == len(messages)
    assert messages[2]["timestamp"] == at(10.5).isoformat()
    assert [(fact["key"], fact["value"], fact["user_id"]) for fact in facts] == [
        ("name", "Ada", str(owner)),
        ("home_town", "Paris", str(owner)),
    ]
    assert await read(mongodb_url, database) == found


async def test_a_unified_collection_tells_pairs_and_sessions(mongodb_url: str, database: Database) -> None:
    session, owner = ObjectId(), ObjectId()

    def said(role: str, content: str, seconds: float, pair: str | None) -> dict[str, Any]:
        home: dict[str, Any] = {"session_id": session, "thread_id": "t1", "user_id": owner}
        whole: dict[str, Any] = {**home, "role": role, "content": content, "metadata": {}, "timestamp": at(seconds)}
        return whole if pair is None else {**whole, "message_pair_id": pair}

    await database["conversations"].insert_many(
        [
            said("assistant", "Two", 5, "b"),
            said("user", "First", 0, "a"),
            said("user", "Second", 1, "b"),
            said("assistant", "One", 4, "a"),
            said("user", "Nobody answers", 9, "c"),
            said("user", "By itself", 10, None),
        ]
    )
    await database["messages_history"].insert_one(
        {"user_id": str(owner), "thread_id": "t1", "role": "user", "content": "First", "timestamp": at(3)}
    )
    # As we write them ourselves: a place where nothing was said, and metadata as text.
    own = {"user_id": "eve", "thread_id": "t", "session_id": "t", "role": "user", "timestamp": AT, "position": 1}
    await database["conversations"].insert_many(
        [
            {**own, "_id": "a", "content": "", "metadata": "{}", "absent": True},
            {**own, "_id": "b", "content": "Ho", "metadata": '{"n": 1}', "role": "assistant", "position": 2},
        ]
    )
    await database["user_facts"].insert_many(
        [
            {"_id": "1", "user_id": "eve", "key": "city", "value": "Rome", "statement": "city: Rome", "state": "open"},
            {"_id": "2", "user_id": "eve", "key": "city", "value": "Oslo", "statement": "city: Oslo", "state": "ended"},
            {"_id": "3", "user_id": "eve", "key": None, "value": "x", "statement": "Eve flies.", "state": "open"},
            {"_id": "4", "user_id": "eve", "facts": {}},
        ]
    )
    await database["orders"].insert_one({"total": 1})
    holdings = SourceHoldings()
    lines = [line.said async for line in read_mongo(f"{mongodb_url}/{database.name}", user_id=None, holdings=holdings)]
    found = [dict(line) for line in lines if isinstance(line, dict)]
    assert len(found) == len(lines)
    talk = [one for one in found if one.get("user_id") == str(owner)]
    assert [(one["content"], one.get("pair_id")) for one in talk] == [
        ("First", "a"),
        ("Second", "b"),
        ("One", "a"),
        ("Two", "b"),
        ("Nobody answers", None),
        ("By itself", None),
    ]
    assert {one["metadata"]["session_id"] for one in talk} == {str(session)}
    assert [(one["content"], one["metadata"]) for one in found if one.get("thread_id") == "t"] == [("Ho", {"n": 1})]
    assert [(one.get("key"), one["value"]) for one in found if one.get("kind") == "fact"] == [
        ("city", "Rome"),
        (None, "Eve flies."),
    ]
    assert (holdings.read, holdings.skipped) == (["conversations", "messages_history", "user_facts"], ["orders"])


async def test_what_tells_no_time_was_said_when_it_was_stored(mongodb_url: str, database: Database) -> None:
    made = ObjectId()
    await database["messages"].insert_one(
        {"_id": made, "user_id": "ada", "session_id": "s1", "role": "ai", "text": "Hi"}
    )
    (fields,) = await read(mongodb_url, database)
    assert fields["timestamp"] == made.generation_time.isoformat()


async def test_what_names_no_user_is_the_one_who_was_named(mongodb_url: str, database: Database) -> None:
    await database["messages"].insert_one({"session_id": "s1", "role": "user", "content": "Hi", "timestamp": AT})
    (fields,) = await read(mongodb_url, database, "ada")
    assert (fields["user_id"], fields["thread_id"]) == ("ada", "s1")
    (nobodys,) = await read(mongodb_url, database)
    assert "user_id" not in nobodys


@pytest.fixture
def driver_leak() -> Iterator[None]:
    """PyMongo 4.20, closed while it connects, leaves that socket to the garbage collector, which warns."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.mark.usefixtures("driver_leak")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_server_that_cannot_be_reached_is_a_sentence_without_the_password() -> None:
    with pytest.raises(StoreUnavailable) as caught:
        await anext(read_mongo("mongodb://me:secret@127.0.0.1:1/db?serverSelectionTimeoutMS=50", user_id=None))
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    "url",
    [
        "mongodb://me:secret@127.0.0.1:1/",
        "mongodb://me:secret@127.0.0.1:bad/db",
        "mongodb://me:sec/ret@127.0.0.1:1/db",
        "mongodb://me:secret@127.0.0.1:1/a.b",
    ],
)
async def test_a_bad_address_is_refused_without_the_password(url: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        await anext(read_mongo(url, user_id=None))
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_each_message_stands_for_one_of_the_other_side() -> None:
    def fields(message_id: str, content: str, seconds: float) -> dict[str, Any]:
        return {"message_id": message_id, "role": "user", "content": content, "timestamp": at(seconds).isoformat()}

    history = [fields("a", "ok", 0), fields("b", "ok", 60)]
    others = [fields("c", "ok", 59), fields("d", "ok", 1), fields("e", "ok", 61), fields("a", "other", 500)]
    assert [one["message_id"] for one in merged_messages(history, others)] == ["a", "b", "e"]
    assert merged_messages([], others[:1]) == others[:1]
    assert [one["message_id"] for one in merged_messages([{**history[0], "timestamp": "?"}], others[:1])] == ["a", "c"]
