"""Not a byte of an erased user is left in DATA_DIR: neither while the service runs, nor after it stopped."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.commands import recollecting
from tests.service.support.running import Service, model_settings, service
from tests.service.support.scripts import posting

USER = "zoltan.kodaly"
WORDS = ("zoltan", "Kecskemet", "Kelenfold", "psalmus", "galanta", "Bözsi")
"""The id, and words of texts in every place where texts are kept."""
ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be")
KNOWN = {"recollect.db", "recollect.db-wal", "recollect.db-shm", "index", "lock", "terminal"}
"""The names in DATA_DIR: another one means another place that an erasure must know."""


def left(folder: Path, *words: str) -> dict[str, list[str]]:
    """Return which of the words each file below the folder holds, or its name, or its JSON escapes."""
    found: dict[str, list[str]] = {}
    for path in folder.rglob("*"):
        held = [word for word in words if word in str(path.relative_to(folder))]
        if path.is_file():
            content = path.read_bytes().replace(bytes(4096), b"")  # most of an index's files is empty
            held += [word for word in words if _holds(content, word)]
        if held:
            found[str(path.relative_to(folder))] = held
    return found


def _holds(content: bytes, word: str) -> bool:
    escaped = word.encode("ascii", "backslashreplace").replace(b"\\x", b"\\u00")
    return any(word.encode(encoding) in content for encoding in ENCODINGS) or escaped in content


def fill(running: Service, user: str, number: int) -> None:
    """Store all that can be kept of a user, with rows that grow and move, among those of others."""
    for turn in range(6):
        said = f"my city{turn} is Kecskemet{number}, my composer{turn} is Bözsi" + " and so on" * (turn * 20)
        running.turn(said, user=user, thread=f"{user}-t{turn % 2}", metadata={"of": "galanta"}, wait_for_memory=True)
    path = f"/api/users/{user}/facts/by-key/street"
    for value in ("Kelenfold 1", "Kelenfold 22, and a long name of a street " * 10):
        assert running.http.put(path, json={"value": value, "tags": ["psalmus"]}).is_success
    thread = f"/api/threads/{user}-t0"
    assert running.http.put(f"{thread}/summary?user_id={user}", json={"summary": "psalmus " * 50}).is_success
    assert running.http.post(f"{thread}/archive?user_id={user}").is_success
    document = {
        "user_id": user,
        "text": "psalmus hungaricus, galanta. " * 200,
        "title": "galanta",
        "source": "Kelenfold",
    }
    assert running.http.post("/api/documents", json=document).is_success
    running.http.post("/api/memory", json={"user_id": user, "content": "Lives in Kelenfold."})


@pytest.fixture
def filled(tmp_path: Path, fake: FakeOpenAI) -> Iterator[Service]:
    settings = model_settings(fake.url, EMBEDDING_MODEL="fake-embed")
    with service(tmp_path, **settings) as running:
        for number in range(3):
            for user in ("ada", USER, "bob"):
                fill(running, user, number)
        running.http.delete(f"/api/threads/{USER}-t1?user_id={USER}")
        running.turn("my city0 is Kecskemet9", user=USER, thread="another", wait_for_memory=True)
        chat = recollecting(running, "chat", "--user", USER, "--thread", "another", typed=True)
        chat.communicate("psalmus is what I typed\n", timeout=60)
        damaged = running.data_dir / "index" / f"{index_name(running.data_dir)}.damaged-20260101T000000000000Z"
        damaged.mkdir()
        (damaged / "wal").write_bytes(f"{USER} said psalmus".encode())
        yield running


def index_name(data_dir: Path) -> str:
    return next(path.name for path in (data_dir / "index").iterdir() if path.is_dir()).partition(".r")[0]


def test_not_a_byte_is_left_and_everyone_else_is_whole(filled: Service, fake: FakeOpenAI) -> None:
    data_dir = filled.data_dir
    assert left(data_dir, *WORDS)
    assert {path.name for path in data_dir.iterdir()} <= KNOWN
    others = {user: known(filled, user) for user in ("ada", "bob")}
    fake.hang()
    lost = posting(filled, "my city is Kecskemet", user=USER, thread="open", turn_id="psalmus-turn")
    erased = filled.http.delete(f"/api/users/{USER}")
    assert erased.status_code == 200, erased.text
    assert set(erased.json()["remaining"].values()) == {0}
    assert erased.json()["counts"]["documents"] == 1
    assert left(data_dir, "zoltan") == {}, "while the service runs"
    assert lost.result(10).status_code == 409
    fake.release()
    assert {user: known(filled, user) for user in ("ada", "bob")} == others
    for user in ("ada", "bob"):
        assert filled.http.delete(f"/api/users/{user}").status_code == 200
    assert left(data_dir, *WORDS) == {}, "all who used the words are gone"
    assert filled.get("/api/admin/doctor")["healthy"]
    assert filled.stop() == 0
    assert left(data_dir, *WORDS) == {}, "after it stopped"
    assert not {"Kecskemet", "psalmus"} & set(filled.log.split())


def known(running: Service, user: str) -> list[dict[str, Any]]:
    """Return the user's facts, threads and documents."""
    found = running.get(f"/api/users/{user}/facts", limit=200)
    return [found, *(running.get(f"/api/{kind}", user_id=user) for kind in ("threads", "documents"))]


def test_another_program_that_reads_the_database_makes_the_erasure_wait(filled: Service) -> None:
    reading = sqlite3.connect(filled.data_dir / "recollect.db", isolation_level=None)
    reading.execute("BEGIN")
    reading.execute("SELECT count(*) FROM messages").fetchall()
    waiting = filled.http.delete(f"/api/users/{USER}")
    assert waiting.status_code == 503, waiting.text
    error = waiting.json()["error"]
    assert error["code"] == "store_unavailable"
    erasure_id = error["details"][0]["erasure_id"]
    assert filled.get(f"/api/erasures/{erasure_id}")["pending"] is True
    reading.close()
    receipt = filled.http.delete(f"/api/users/{USER}")
    assert receipt.status_code == 200, receipt.text
    assert receipt.json()["erasure_id"] == erasure_id
    assert receipt.json()["counts"]["conversations"] > 0
    assert left(filled.data_dir, "zoltan") == {}
