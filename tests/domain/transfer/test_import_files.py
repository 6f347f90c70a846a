"""Sources that are files: what other programs write, as import lines."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from recollect.memory.transfer.line_source import SourceLine, Unreadable
from recollect.memory.transfer.sources.named_source import open_source
from recollect.memory.transfer.sources.records import Home, fact_key, facts_of, messages_of, split_exchange, thread_name
from recollect.memory.values.errors import InvalidRequest
from recollect.memory.values.mem_config import MemoryConfig

AT = datetime(2025, 6, 22, 9, 7, 58, tzinfo=UTC)
HOME = Home("ada", "t1", AT, 2)


@pytest.fixture
def config(tmp_path: Path) -> MemoryConfig:
    return MemoryConfig(data_dir=tmp_path / "data")


async def read(path: Path, config: MemoryConfig, user: str | None = "ada") -> list[SourceLine]:
    return [line async for line in open_source(str(path), config, user_id=user).lines]


async def said(path: Path, config: MemoryConfig, user: str | None = "ada") -> list[dict[str, Any]]:
    lines = [line.said for line in await read(path, config, user)]
    assert all(isinstance(line, dict) for line in lines), lines
    return [line for line in lines if isinstance(line, dict)]


def brief(fields: dict[str, Any]) -> tuple[Any, ...]:
    return fields.get("role"), fields.get("name"), fields.get("content")


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"role": "user", "content": "Hi"}, [("user", None, "Hi")]),
        ({"role": "Human", "text": "Hi"}, [("user", None, "Hi")]),
        ({"sender": "bot", "message": "Hi"}, [("assistant", None, "Hi")]),
        ({"type": "ai", "data": {"content": "Hi", "type": "ai"}}, [("assistant", None, "Hi")]),
        ({"message": {"role": "user", "content": [{"type": "text", "text": "Hi"}]}}, [("user", None, "Hi")]),
        ({"speaker": "Melanie", "text": "Hi"}, [("user", "Melanie", "Hi")]),
        ({"role": "user", "name": "Ada", "content": "Hi"}, [("user", "Ada", "Hi")]),
        ({"user_message": "Hi", "ai_response": "Ho"}, [("user", None, "Hi"), ("assistant", None, "Ho")]),
        ({"user": "Hi", "assistant": "Ho"}, [("user", None, "Hi"), ("assistant", None, "Ho")]),
        ({"message": "Hi", "response": "Ho"}, [("user", None, "Hi"), ("assistant", None, "Ho")]),
        ({"user_message": "", "ai_response": "Ho"}, [("assistant", None, "Ho")]),
        ({"content": "User: Hi\nthere\nAssistant: Ho"}, [("user", None, "Hi\nthere"), ("assistant", None, "Ho")]),
        ({"role": "system", "content": "Be nice."}, []),
        ({"type": "tool", "content": "42"}, []),
        ({"role": "narrator", "content": "Hi"}, [("narrator", None, "Hi")]),
        ({"content": "Hi"}, [(None, None, "Hi")]),
    ],
)
def test_messages_are_read_as_others_write_them(record: dict[str, Any], expected: list[tuple[Any, ...]]) -> None:
    assert [brief(fields) for fields in messages_of(record, HOME)] == expected


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"timestamp": "2025-01-01"}, {"timestamp": "2025-01-01", "message_id": None}),
        ({"created_at": {"$date": "2025-01-01"}}, {"timestamp": "2025-01-01", "message_id": None}),
        ({"ts": {"$numberLong": "1700000000000"}}, {"timestamp": 1_700_000_000_000, "message_id": None}),
        ({"ts": AT, "id": 7}, {"timestamp": AT.isoformat(), "message_id": "7"}),
        ({"_id": {"$oid": "abc"}}, {"timestamp": "2025-06-22T09:07:58.002000+00:00", "message_id": "abc"}),
        ({}, {"timestamp": "2025-06-22T09:07:58.002000+00:00", "message_id": "t1:2"}),
        ({"session_id": "a b", "userId": "eve", "ts": 1}, {"user_id": "eve", "thread_id": thread_name("a b")}),
    ],
)
def test_times_ids_and_homes_are_read_as_others_write_them(record: dict[str, Any], expected: dict[str, Any]) -> None:
    (fields,) = messages_of({"role": "user", "content": "Hi", **record}, HOME)
    assert fields.items() >= expected.items()


def test_question_and_answer_of_one_record_have_ids_of_their_own() -> None:
    pair = messages_of({"_id": "x", "user_message": "Hi", "ai_response": "Ho", "created_at": AT}, HOME)
    assert [fields["message_id"] for fields in pair] == ["x:user", "x:assistant"]
    (long,) = messages_of({"_id": "x" * 200, "role": "user", "content": "Hi"}, HOME)
    assert len(long["message_id"]) == 32


def test_threads_get_ids_that_may_be_stored() -> None:
    assert thread_name("a.b") == "a.b"
    assert thread_name("Über uns/2") != thread_name("Über uns 2")
    assert thread_name("Über uns/2").startswith("-ber-uns-2-")
    assert thread_name("..").startswith("..-")
    assert len(thread_name("x" * 500)) < 128


def test_a_dict_of_facts_becomes_facts() -> None:
    facts = {"Favorite Color": "blue", "jobTitle": "pilot", "pets": ["Rex", "Tom"], "age": 36, "2nd": "x", "none": None}
    found = list(facts_of(facts, user_id="ada", time=AT))
    assert [(fact.get("key"), fact["value"]) for fact in found] == [
        ("favorite_color", "blue"),
        ("job_title", "pilot"),
        ("pets", "Rex, Tom"),
        ("age", "36"),
        (None, "2nd: x"),
    ]
    assert {(fact["kind"], fact["user_id"], fact["timestamp"]) for fact in found} == {("fact", "ada", AT.isoformat())}
    assert fact_key("Straße") == "strae"
    assert fact_key("名前") is None


def test_an_exchange_is_split_where_the_assistant_begins() -> None:
    assert split_exchange("User: a\nAssistant: b\nAssistant: c") == ("a", "b\nAssistant: c")
    assert split_exchange("Something else.") is None


async def test_json_lines_keep_their_numbers_and_get_a_user(tmp_path: Path, config: MemoryConfig) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_text('{"a": 1}\n\n{"user_id": "eve"}\nnonsense\n[1]\n', encoding="utf-8")
    assert await read(path, config) == [
        (1, {"a": 1, "user_id": "ada"}),
        (3, b'{"user_id": "eve"}'),
        (4, b"nonsense"),
        (5, b"[1]"),
    ]
    assert (await read(path, config, None))[0] == (1, b'{"a": 1}')
    assert open_source(str(path), config, user_id=None).total == 5


async def test_session_files_are_conversations(tmp_path: Path, config: MemoryConfig) -> None:
    told = [{"role": "user", "content": "Hi"}, {"role": "system", "content": "?"}, {"role": "ai", "content": "Ho"}, 7]
    session = {
        "session_id": "s1",
        "user_id": "eve",
        "created_at": AT.isoformat(),
        "messages": told,
        "facts": {"a": "b"},
    }
    (tmp_path / "session_1.json").write_text(json.dumps(session), encoding="utf-8")
    (tmp_path / "session_20250622_090758.json").write_text(json.dumps(told[:1]), encoding="utf-8")
    (tmp_path / "session_bad.json").write_text("{", encoding="utf-8")
    (tmp_path / "session_none.json").write_text("{}", encoding="utf-8")
    (tmp_path / "other.json").write_text("{}", encoding="utf-8")
    lines = await read(tmp_path, config)
    assert [line.number for line in lines] == list(range(1, 8))
    asked, answered, unreadable, fact, second, *broken = [line.said for line in lines]
    assert asked == {
        "user_id": "eve",
        "thread_id": "s1",
        "role": "user",
        "content": "Hi",
        "timestamp": AT.isoformat(),
        "message_id": "s1:0",
    }
    assert isinstance(answered, dict)
    assert (brief(answered), answered["message_id"]) == (("assistant", None, "Ho"), "s1:2")
    assert fact == {"kind": "fact", "key": "a", "value": "b", "user_id": "eve", "timestamp": AT.isoformat()}
    assert isinstance(second, dict)
    assert (second["user_id"], second["thread_id"]) == ("ada", "session_20250622_090758")
    assert second["timestamp"] == AT.isoformat()
    assert [one.error for one in (unreadable, *broken) if isinstance(one, Unreadable)] == [
        "session_1.json holds a message that is not an object.",
        "session_bad.json cannot be read as JSON (JSONDecodeError).",
        "session_none.json holds no list of messages.",
    ]


def entry(folder: Path, place: str, body: str, **front: object) -> None:
    path = folder / "entries" / place
    path.parent.mkdir(parents=True, exist_ok=True)
    head = "".join(f"{name}: {json.dumps(value)}\n" for name, value in front.items())
    path.write_text(f"---\n{head}---\n{body}\n", encoding="utf-8")


async def test_markdown_entries_are_turns_facts_and_summaries(tmp_path: Path, config: MemoryConfig) -> None:
    times = "2025-11-20T10-00-00", "2025-11-20T10-01-00"
    home = {"conversation_id": "my talk", "created_at": "2025-11-20T10:00:00+00:00"}
    entry(
        tmp_path,
        f"my_talk/turns/assistant/{times[0]}__a.md",
        "Ho\n\n---\nmore",
        id="a1",
        role="assistant",
        model="x",
        **home,
    )
    entry(tmp_path, f"my_talk/turns/user/{times[0]}__b.md", "Hi", id="b1", role="user", **home)
    entry(tmp_path, f"my_talk/turns/user/{times[1]}__c.md", "Again", id="c1", role="user", **home)
    entry(tmp_path, f"my_talk/facts/{times[0]}__d.md", "Ada likes tea.", id="d1", role="memory", source_id="b1", **home)
    entry(tmp_path, f"my_talk/facts/{times[0]}__e.md", "Old.", id="e1", role="memory", replaced_by="d1", **home)
    entry(
        tmp_path, "my_talk/summaries/summary.md", "They talked.", id="s", role="summary", summary_kind="summary", **home
    )
    entry(tmp_path, f"deleted/my_talk/facts/{times[0]}__f.md", "Gone.", id="f1", role="memory", **home)
    found = await said(tmp_path, config)
    thread = thread_name("my talk")
    assert [(*brief(fields), fields.get("message_id")) for fields in found[:3]] == [
        ("user", None, "Hi", "b1"),
        ("assistant", None, "Ho\n\n---\nmore", "a1"),
        ("user", None, "Again", "c1"),
    ]
    assert found[1]["metadata"] == {"model": "x"}
    assert {fields["thread_id"] for fields in found[:3]} == {thread}
    assert found[3:] == [
        {"kind": "fact", "value": "Ada likes tea.", "user_id": "ada", "timestamp": home["created_at"]},
        {"kind": "summary", "thread_id": thread, "content": "They talked.", "user_id": "ada"},
    ]


async def test_hostile_markdown_is_unreadable_or_harmless(tmp_path: Path, config: MemoryConfig) -> None:
    turns = tmp_path / "entries" / "t" / "turns" / "user"
    turns.mkdir(parents=True)
    bomb = "a: &a [x,x,x,x,x,x,x,x]\n" + "".join(
        f"{new}: &{new} [{','.join([f'*{old}'] * 8)}]\n" for old, new in zip("abcdefghijk", "bcdefghijkl", strict=True)
    )
    texts = {
        "1.md": "no front matter",
        "2.md": "---\nid: [\n---\nbody",
        "3.md": "---\nid: !!python/object/apply:os.system ['true']\n---\nbody",
        "4.md": f"---\n{bomb}id: *l\nrole: user\ncreated_at: *l\n---\nbody",
        "5.md": "---\n- a\n---\nbody",
        "6.md": "---\nid: 1\nbody",
    }
    for name, text in texts.items():
        (turns / name).write_text(text, encoding="utf-8")
    (turns / "7.md").write_bytes(b"---\n\xff\n---\n")
    lines = await read(tmp_path, config)
    assert [isinstance(line.said, Unreadable) for line in lines] == [True, True, True, False, True, True, True]


@pytest.mark.parametrize("named", ["data", "data/inside/file.jsonl"])
def test_the_services_own_data_is_no_source(tmp_path: Path, config: MemoryConfig, named: str) -> None:
    with pytest.raises(InvalidRequest, match="DATA_DIR"):
        open_source(str(tmp_path / named), config, user_id=None)


@pytest.mark.parametrize(
    "named",
    [
        "mongodb://127.0.0.1:27017/recollect",
        "mongodb://other:secret@LOCALHOST/recollect?retryWrites=true",
        "mongodb://elsewhere:1,localhost:27017/recollect",
    ],
)
def test_the_services_own_database_is_no_source(tmp_path: Path, named: str) -> None:
    config = MemoryConfig(data_dir=tmp_path, mongodb_url="mongodb://me:word@localhost:27017/?w=1")
    with pytest.raises(InvalidRequest, match="MONGODB_URL") as caught:
        open_source(named, config, user_id=None)
    assert "secret" not in str(caught.value)
    open_source(named.replace("/recollect", "/other"), config, user_id=None)
    open_source("mongodb://elsewhere/recollect", config, user_id=None)


def test_the_services_own_collection_is_no_source(tmp_path: Path) -> None:
    config = MemoryConfig(data_dir=tmp_path, qdrant_url="http://localhost:6333", qdrant_collection="mem_own")
    with pytest.raises(InvalidRequest, match="QDRANT_COLLECTION"):
        open_source("http://:secret@127.0.0.1", config, user_id=None)
    open_source("http://127.0.0.1:6335", config, user_id=None)


@pytest.mark.parametrize("named", ["nowhere.jsonl", "ftp://host/path", ""])
def test_what_is_no_source_is_refused(tmp_path: Path, config: MemoryConfig, named: str) -> None:
    with pytest.raises(InvalidRequest):
        open_source(named if "://" in named else str(tmp_path / named), config, user_id=None)
