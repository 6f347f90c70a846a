"""`GET /api/users/{user_id}/export` and `recollect export`."""

import io
import json
import zipfile
from pathlib import Path

import pytest

from recollect.memory.transfer.front_matter import from_markdown
from tests.service.support.commands import recollect
from tests.service.support.export_of import exported, lines, of_type, taken
from tests.service.support.facts_of import FactsOf
from tests.service.support.running import Service, service
from tests.service.support.shapes import fields, refused


@pytest.fixture
def ada(offline: Service, user: str) -> str:
    """Return a user with two turns in two threads, a keyed fact and a note."""
    offline.turn("I live in Paris.", user=user, turn_id="turn-1", wait_for_memory=True)
    offline.turn("Hello.", user=user, thread="T1", turn_id="Turn:1", metadata={"k": 1})
    note = {"user_id": user, "content": "Ada keeps bees."}
    assert offline.http.post("/api/memory", json=note).status_code == 201
    return user


def test_each_line_has_its_type_and_its_user(offline: Service, ada: str) -> None:
    answer = offline.http.get(f"/api/users/{ada}/export")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/x-ndjson")
    found = lines(answer.content)
    assert {line["user_id"] for line in found} == {ada}
    kinds = [line["type"] for line in found]
    assert kinds == ["message", "message", "turn", "message", "message", "turn", "fact", "fact"]
    asked, answered, turn = found[:3]
    assert (asked["role"], asked["content"], asked["turn_id"], asked["metadata"]) == (
        "user",
        "Hello.",
        "Turn:1",
        {"k": 1},
    )
    assert (answered["role"], answered["timestamp"] > asked["timestamp"]) == ("assistant", True)
    assert (turn["position"], turn["result"]["model"]) == (1, "offline")
    assert {line["value"] for line in found[6:]} == {"Paris", "Ada keeps bees."}
    assert all("indexed" not in line for line in found)


def test_an_export_can_be_narrowed(offline: Service, ada: str) -> None:
    whole = exported(offline, ada)
    assert lines(exported(offline, ada, type="fact")) == of_type(whole, "fact")
    both = lines(exported(offline, ada, type=["turn", "message"]))
    assert both == [line for line in lines(whole) if line["type"] in {"turn", "message"}]
    assert lines(exported(offline, ada, thread_id="T1")) == [line for line in both if line["thread_id"] == "T1"]
    assert fields(offline.http.get(f"/api/users/{ada}/export", params={"type": "key"})) == ["type.0"]
    assert fields(offline.http.get(f"/api/users/{ada}/export", params={"format": "xml"})) == ["format"]


def test_of_an_unknown_user_there_is_nothing(offline: Service, user: str) -> None:
    assert exported(offline, user) == b""
    with zipfile.ZipFile(io.BytesIO(exported(offline, user, format="markdown"))) as archive:
        assert archive.namelist() == []
    assert taken(offline, exported(offline, user, format="markdown")) == (0, 0, [])


def test_the_archive_has_a_file_for_each_thing(offline: Service, ada: str) -> None:
    facts = FactsOf(offline, ada)
    ids = {fact["id"] for fact in facts.items()}
    with zipfile.ZipFile(io.BytesIO(exported(offline, ada, format="markdown"))) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        assert {name for name in names if "/facts/" in name} == {f"{ada}/facts/{one}.md" for one in ids}
        assert len({name.casefold() for name in names}) == len(names)
        assert f"{ada}/t1/turns/turn-1.md" in names
        assert all(char.isalnum() or char in "/._~-" for name in names for char in name)
        front, body = from_markdown(archive.read(f"{ada}/t1/turns/turn-1.md"))
    assert body.startswith("I live in Paris.\n<!-- assistant -->\n")
    assert (front["type"], front["thread_id"], front["turn_id"]) == ("turn", "t1", "turn-1")


def test_what_was_forgotten_is_not_exported(offline: Service, user: str) -> None:
    facts = FactsOf(offline, user)
    secret = facts.put("secret", value="hush-hush")
    facts.put("secret", value="hush-hush, twice")
    assert facts.ask("DELETE", f"/{secret['id']}").status_code == 204
    (line,) = lines(exported(offline, user))
    assert (line["id"], line["status"], line["value"], line["history"]) == (secret["id"], "forgotten", "", [])
    assert b"hush" not in exported(offline, user)


def test_a_store_that_is_down_is_an_error_of_its_own(tmp_path: Path) -> None:
    down = "mongodb://127.0.0.1:9/?serverSelectionTimeoutMS=200"
    with service(tmp_path, MONGODB_URL=down) as running:
        refused(running.http.get("/api/users/ada/export"), 503, "store_unavailable")


def test_the_command_writes_a_file_or_says_why_not(offline: Service, ada: str, tmp_path: Path) -> None:
    done = recollect(offline, "export", "--user", ada)
    assert (done.returncode, done.stdout.encode()) == (0, exported(offline, ada))
    file = tmp_path / "ada.zip"
    told = recollect(offline, "export", "--user", ada, "--url", offline.url, "--format", "markdown", "-o", str(file))
    assert (told.returncode, file.read_bytes()) == (0, exported(offline, ada, format="markdown"))
    lost = recollect(offline, "export", "--user", ada, "-o", str(tmp_path / "nowhere" / "x"))
    assert (lost.returncode, "cannot be written" in lost.stderr) == (2, True)
    assert recollect(offline, "export", "--user", "a/b").returncode == 1
    assert recollect(offline, "export", "--user", ada, "--format", "xml").returncode == 2


@pytest.mark.slow
def test_a_long_export_takes_little_memory(offline: Service, user: str) -> None:
    text = "Lorem ipsum dolor sit amet. " * 400
    said = [
        {"user_id": user, "thread_id": "t1", "role": "user", "content": f"{number} {text}", "timestamp": number}
        for number in range(1_000)
    ]
    content = b"".join(json.dumps(line).encode() + b"\n" for line in said)
    assert taken(offline, content) == (1_000, 0, [])
    before = peak(offline)
    for form in ("jsonl", "markdown"):
        with offline.http.stream("GET", f"/api/users/{user}/export", params={"format": form}) as answer:
            size = sum(len(piece) for piece in answer.iter_bytes())
        assert size > (10_000_000 if form == "jsonl" else 100_000)
    assert peak(offline) - before < 40_000


def peak(running: Service) -> int:
    """Return the most memory that the process has had so far, in kB."""
    assert running.process is not None
    status = Path(f"/proc/{running.process.pid}/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0])
