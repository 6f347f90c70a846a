"""`POST /api/import` and `recollect import`: with a service and without, and killed on the way."""

import json
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from pymongo import MongoClient

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.commands import recollect, recollecting
from tests.service.support.running import Service, model_settings, service, until
from tests.service.support.scripts import facts, texts
from tests.service.support.shapes import fields, refused

Fields = dict[str, Any]
PART = 60_000


def said(role: str, content: str, *, user: str, thread: str = "t1", **more: Any) -> Fields:
    return {"user_id": user, "thread_id": thread, "role": role, "content": content, "timestamp": 1_700_000_000, **more}


def talk(turns: int, *, user: str = "ada", thread: str = "t1") -> list[Fields]:
    return [
        said(
            role, f"{role} said {number} of {thread}", user=user, thread=thread, message_id=f"{thread}-{role}-{number}"
        )
        for number in range(turns)
        for role in ("user", "assistant")
    ]


def body(lines: Iterable[Fields]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def post(running: Service, content: bytes | Iterator[bytes], **query: str) -> httpx.Response:
    return running.http.post("/api/import", content=content, params=query)


def took(running: Service, content: bytes | Iterator[bytes], **query: str) -> tuple[int, int, int]:
    answer = post(running, content, **query)
    assert answer.status_code == 200, answer.text
    said = answer.json()
    assert said.keys() <= {"imported", "known", "failed", "more_failed"}
    return said["imported"], said["known"], len(said["failed"]) + said.get("more_failed", 0)


def healthy(running: Service) -> None:
    """Wait until nothing is pending; then each message has its one point."""

    def is_settled() -> bool:
        report = running.get("/api/admin/doctor")
        return report["healthy"] and not report["totals"]["pending"]

    until(is_settled, 60)


def test_lines_are_imported_found_and_known(offline: Service, user: str) -> None:
    content = body(talk(30, user=user))
    assert took(offline, content) == (60, 0, 0)
    assert took(offline, content) == (0, 60, 0)
    assert texts(offline, user=user)[:2] == [("user", "user said 0 of t1"), ("assistant", "assistant said 0 of t1")]
    search = {"user_id": user, "query": "assistant said 17", "top_k": 3}
    hits = offline.http.post("/api/memory/search", json=search).json()["hits"]
    assert "t1-assistant-17" in [hit["message_id"] for hit in hits]
    assert hits[0]["created_at"] == "2023-11-14T22:13:20.000Z"


def test_bad_lines_are_named_and_good_ones_kept(offline: Service, user: str) -> None:
    good = said("user", "Hello.", user=user)
    bad = [b"{", json.dumps({**good, "content": ""}).encode(), b"[]", json.dumps({**good, "x": 1}).encode(), b"\xff"]
    whole = b"\n".join([*bad[:2], b"", body([good]).strip(), b"  \r", *bad[2:], body([{**good, "thread_id": "t2"}])])
    answer = post(offline, whole)
    assert answer.status_code == 200
    assert (answer.json()["imported"], answer.json()["known"]) == (2, 0)
    assert [line["line"] for line in answer.json()["failed"]] == [1, 2, 6, 7, 8]
    assert all(line["error"].endswith(".") for line in answer.json()["failed"])


def test_a_message_id_is_one_messages_alone(offline: Service, user: str) -> None:
    assert took(offline, body([said("user", "A", user=user, message_id="m")])) == (1, 0, 0)
    assert took(offline, body([said("user", "B", user=user, message_id="m")])) == (0, 0, 1)
    assert took(offline, body([said("user", "B", user=f"{user}2", message_id="m")])) == (1, 0, 0)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n" * 1_000_000,
        b'{"a": ' * 100_000 + b"\n",
        b"x" * 15_000_000 + b"\n",
        b"\x00" * 1_000 + b"\n",
        b"[" * 900_000 + b"\n",
        b'"\\ud800"\n',
        b"9" * 900_000 + b"\n",
    ],
    ids=["nothing", "blank lines", "deep", "one long line", "NUL", "brackets", "surrogate", "a number"],
)
def test_hostile_bodies_harm_nothing(offline: Service, user: str, content: bytes) -> None:
    good = body([said("user", "Hello.", user=user)])
    started = time.monotonic()
    imported, _, failed = took(offline, content + good)
    assert (imported, failed) == (1, 1 if content.strip() else 0)
    assert time.monotonic() - started < 20
    assert took(offline, good) == (0, 1, 0)


def test_a_body_in_pieces_is_one_body(offline: Service, user: str) -> None:
    content = body(talk(5, user=user))
    assert took(offline, (content[at : at + 11] for at in range(0, len(content), 11))) == (10, 0, 0)


@pytest.mark.parametrize("told", [True, False])
def test_bodies_over_the_limit_are_too_large(tmp_path: Path, told: bool) -> None:
    blank = b"\n" * 1_000
    with service(tmp_path, MAX_UPLOAD_MB="2") as running:
        refused(running.http.post("/api/agent", content=b" " * 2_600_000), 413, "too_large")
        assert took(running, b"\n" * 2_000_000) == (0, 0, 0)
        content = b"\n" * 2_000_001 if told else (blank for _ in range(2_001))
        refused(post(running, content), 413, "too_large")
        assert running.get("/health")["status"] == "ok"


def test_learn_is_true_or_false(offline: Service, user: str) -> None:
    line = body([said("user", "I live in Paris.", user=user)])
    assert fields(post(offline, line, learn="maybe")) == ["learn"]
    assert took(offline, line, learn="false") == (1, 0, 0)
    assert facts(offline, user=user) == {}
    assert took(offline, body([said("user", "I live in Rome.", user=user, thread="t2")]), learn="true") == (1, 0, 0)
    until(lambda: facts(offline, user=user) == {"location": "Rome"})


def test_a_client_that_leaves_amid_its_body_can_send_it_again(offline: Service, user: str) -> None:
    content = body(talk(20, user=user))

    def breaking() -> Iterator[bytes]:
        yield content[: len(content) // 2]
        raise httpx.WriteError("gone")

    with httpx.Client(base_url=offline.url) as client, pytest.raises(httpx.WriteError):
        client.post("/api/import", content=breaking())
    imported, known, failed = took(offline, content)
    assert (imported + known, failed) == (40, 0)
    assert len(texts(offline, user=user)) == 40


@pytest.fixture
def talked(tmp_path: Path) -> Path:
    """Return a file whose third line is bad, and whose lines name no user."""
    lines = [{name: value for name, value in line.items() if name != "user_id"} for line in talk(20)]
    path = tmp_path / "talk.jsonl"
    path.write_bytes(body(lines[:2]) + b"nonsense\n" + body(lines[2:]))
    return path


@pytest.mark.parametrize("is_running", [True, False])
def test_the_command_imports_with_a_service_and_without(tmp_path: Path, talked: Path, is_running: bool) -> None:
    running = Service(tmp_path / "home")
    running.folder.mkdir()
    if is_running:
        running.start()
    try:
        ended = recollect(running, "import", str(talked), "--user", "ada")
        assert (ended.returncode, ended.stdout.splitlines()) == (
            1,
            ["Imported 40, 0 known already, 1 failed.", "line 3: The line is not valid JSON."],
        ), ended.stderr
        ended = recollect(running, "import", str(talked))
        assert ended.returncode == 1
        assert "41 failed" in ended.stdout
        assert "line 1: user_id is missing." in ended.stdout
        assert "Say whose it is with --user." in ended.stdout
        if not is_running:
            running.start()
        assert len(texts(running)) == 40
        healthy(running)
    finally:
        running.__exit__(None, None, None)


def test_a_long_file_goes_to_the_service_in_parts_that_cut_no_pair(tmp_path: Path) -> None:
    asked, answered = talk(1, thread="around")
    pad = {"metadata": {"pad": "x" * 20_000}}
    lines = [{**line, **pad} for line in talk(100)]
    path = tmp_path / "talk.jsonl"
    path.write_bytes(body([asked, *lines, answered, said("user", "", user="ada")]))
    assert path.stat().st_size > 4 * 900_000
    home = tmp_path / "home"
    home.mkdir()
    with service(home) as running:
        ended = recollect(running, "import", str(path))
        assert ended.stdout.splitlines()[0].startswith("Imported 202, 0 known already, 1 failed."), ended.stderr
        assert f"line {len(lines) + 3}: content must have" in ended.stdout
        around = running.get("/api/threads/around/messages", user_id="ada")["items"]
        assert len({message["turn_id"] for message in around}) == 1


def test_folders_and_their_facts_come_through_the_service(tmp_path: Path) -> None:
    folder, home = tmp_path / "sessions", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    session = {
        "session_id": "s1",
        "user_id": "ada",
        "created_at": "2025-01-01T00:00:00Z",
        "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}],
        "user_facts": {"Home Town": "Paris"},
    }
    (folder / "session_1.json").write_text(json.dumps(session), encoding="utf-8")
    with service(home) as running:
        for expected in ("Imported 3, 0 known already, 0 failed.", "Imported 0, 3 known already, 0 failed."):
            ended = recollect(running, "import", str(folder))
            assert (ended.returncode, ended.stdout.strip()) == (0, expected), ended.stderr
        assert facts(running) == {"home_town": "Paris"}
        assert texts(running, thread="s1") == [("user", "Hi"), ("assistant", "Ho")]
        healthy(running)


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        ("nowhere.jsonl", "cannot be read"),
        ("data", "DATA_DIR"),
        ("mongodb://me:secret@127.0.0.1:1/", "names no database"),
        ("http://:secret@127.0.0.1:1", "cannot be read"),
        ("mailto:someone", "cannot be read"),
    ],
)
def test_a_source_that_is_none_is_a_sentence(tmp_path: Path, named: str, sentence: str) -> None:
    running = Service(tmp_path)
    ended = recollect(running, "import", named)
    assert ended.returncode == 1
    assert sentence in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "secret" not in ended.stderr + ended.stdout


def completed_again(running: Service, path: Path, messages: int) -> None:
    """Run the command once more over a killed one's file; every message then has one point."""
    ended = recollect(running, "import", str(path))
    assert ended.returncode == 0, ended.stderr
    with running:
        healthy(running)
        shown = running.get("/api/admin/doctor")["totals"]
        assert (shown["messages"], shown["points"]) == (messages, messages)
        assert took(running, path.read_bytes()) == (0, messages, 0)


def test_the_command_that_is_killed_on_the_way_goes_on_when_it_is_run_again(tmp_path: Path, fake: FakeOpenAI) -> None:
    """Killed while it embeds, after it has stored: each time a part more is stored, nothing twice, all is found."""
    path = tmp_path / "talk.jsonl"
    path.write_bytes(body(talk(400)))
    settings = model_settings(fake.url, EMBEDDING_MODEL="fake-embed", SHUTDOWN_SECONDS="1")
    running = Service(tmp_path, **settings)
    for calls in (1, 2, 3):
        before = len(fake.embeddings)
        command = recollecting(running, "import", str(path))
        until(lambda before=before, calls=calls: len(fake.embeddings) >= before + calls, 60)
        command.kill()
        command.communicate()
    completed_again(running, path, 800)


@pytest.mark.parametrize("milliseconds", [100, *(pytest.param(each, marks=pytest.mark.slow) for each in (5, 300))])
def test_a_service_that_is_killed_amid_an_import_completes_it(tmp_path: Path, milliseconds: int) -> None:
    content = body([*talk(600), *talk(200, user="eve")])
    with service(tmp_path) as running:
        sent = 0

        def slowly() -> Iterator[bytes]:
            nonlocal sent
            for start in range(0, len(content), PART):
                yield content[start : start + PART]
                sent += 1
                if sent == 2:
                    time.sleep(milliseconds / 1_000)  # The moment of the kill is what this test varies.
                    running.kill()

        with pytest.raises(httpx.TransportError):
            post(running, slowly())
        running.start()
        imported, known, failed = took(running, content)
        assert (imported + known, failed) == (1_600, 0)
        healthy(running)
        shown = running.get("/api/admin/doctor")["totals"]
        assert (shown["messages"], shown["points"]) == (1_600, 1_600)
        assert took(running, content) == (0, 1_600, 0)


def test_another_agents_database_is_imported_into_mongodb(tmp_path: Path, mongodb_url: str) -> None:
    with MongoClient[Fields](mongodb_url) as client:
        names = [f"{kind}_{uuid4().hex[:12]}" for kind in ("own", "theirs")]
        own, theirs = (client[name] for name in names)
        home = {"user_id": "ada", "thread_id": "t1", "timestamp": datetime(2025, 1, 1, tzinfo=UTC)}
        theirs["messages_history"].insert_many(
            [{**home, "role": "user", "content": "Hi"}, {**home, "role": "assistant", "content": "Ho"}]
        )
        theirs["user_facts"].insert_one({"user_id": "ada", "facts": {"city": "Paris"}})
        try:
            with service(tmp_path, MONGODB_URL=mongodb_url, MONGODB_DATABASE=own.name) as running:
                for expected in ("Imported 3, 0 known already, 0 failed.", "Imported 0, 3 known already, 0 failed."):
                    ended = recollect(running, "import", f"{mongodb_url.rstrip('/')}/{theirs.name}")
                    assert (ended.returncode, ended.stdout.strip()) == (0, expected), ended.stderr
                assert texts(running) == [("user", "Hi"), ("assistant", "Ho")]
                assert facts(running) == {"city": "Paris"}
                healthy(running)
                ended = recollect(running, "import", f"{mongodb_url.rstrip('/')}/{own.name}")
                assert (ended.returncode, ended.stdout) == (1, "")
                assert "MONGODB_URL" in ended.stderr
        finally:
            for name in names:
                client.drop_database(name)


def test_a_kill_amid_an_import_into_mongodb_loses_and_doubles_nothing(tmp_path: Path, mongodb_url: str) -> None:
    path, name = tmp_path / "talk.jsonl", f"own_{uuid4().hex[:12]}"
    path.write_bytes(body(talk(300)))
    running = Service(tmp_path, MONGODB_URL=mongodb_url, MONGODB_DATABASE=name)
    with MongoClient[Fields](mongodb_url) as client:
        try:
            messages = client[name]["conversations"]
            for most in (1, 300):
                command = recollecting(running, "import", str(path))
                until(lambda most=most: messages.count_documents({}) >= most, 30)
                command.kill()
                command.communicate()
            completed_again(running, path, 600)
        finally:
            client.drop_database(name)
