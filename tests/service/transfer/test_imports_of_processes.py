"""An import that goes on behind its answer can be asked about in every process, and after the end of its own."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pymongo import MongoClient

from tests.service.support.commands import recollect
from tests.service.support.locked import caller
from tests.service.support.running import Service, service, until
from tests.service.support.shapes import refused

NOBODY = "http://127.0.0.1:9"
AT_ONCE = {"IMPORT_ANSWER_SECONDS": "0.001"}
MANY = 20_000


def lines(number: int) -> bytes:
    common = {"user_id": "ada", "thread_id": "t1", "role": "user"}
    made = ({**common, "content": f"Tea {n} is heliotrope.", "timestamp": 1_700_000_000 + n} for n in range(number))
    return b"".join(json.dumps(line).encode() + b"\n" for line in made)


def sent(running: Service, number: int) -> str:
    answer = running.http.post("/api/import", content=lines(number))
    assert answer.status_code == 202, answer.text
    return answer.headers["location"]


@pytest.fixture
def shared(mongodb_url: str) -> Iterator[dict[str, str]]:
    """Yield the settings of processes on a database of the test's own; no Qdrant answers."""
    name = f"recollect_test_{uuid4().hex[:12]}"
    yield {"MONGODB_URL": mongodb_url, "MONGODB_DATABASE": name, "QDRANT_URL": NOBODY, **AT_ONCE}
    with MongoClient[dict[str, Any]](mongodb_url) as client:
        client.drop_database(name)


def test_after_a_kill_it_is_interrupted_and_may_be_sent_again(tmp_path: Path) -> None:
    with service(tmp_path, **AT_ONCE) as running:
        place = sent(running, MANY)
        assert running.get(place)["status"] == "running"
        running.kill()
        running.start()
        ended = running.get(place)
        assert (ended["status"], ended["error"]["code"]) == ("interrupted", "import_interrupted")
        assert "again" in ended["error"]["message"]
        again = sent(running, MANY)
        until(lambda: running.get(again)["status"] == "done", 60.0)
        done = running.get(again)
        assert done["imported"] + done["known"] == MANY
        running.stop()
        running.start()
        assert running.get(again) == done
        assert b"heliotrope" not in json.dumps(done).encode()


def test_a_stop_interrupts_it(tmp_path: Path) -> None:
    with service(tmp_path, **AT_ONCE) as running:
        place = sent(running, MANY)
        running.stop()
        running.start()
        assert running.get(place)["status"] == "interrupted"


def test_another_process_says_what_becomes_of_it(tmp_path: Path, shared: dict[str, str]) -> None:
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
    with service(folders[0], **shared) as one, service(folders[1], **shared) as other:
        place = sent(one, 100)
        until(lambda: other.get(place)["status"] == "done")
        assert other.get(place) == {**one.get(place), "imported": 100, "known": 0, "failed": []}
        place = sent(one, MANY)
        assert other.get(place)["status"] == "running"
        one.kill()
        assert other.get(place)["status"] == "running", "nobody can know yet"
        until(lambda: other.get(place)["status"] == "interrupted", 30.0)


def test_whoever_sent_it_may_ask_elsewhere_and_nobody_else(tmp_path: Path, shared: dict[str, str]) -> None:
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
    locked = {**shared, "AUTH": "api_key"}
    with service(folders[0], **locked) as one, service(folders[1], **locked) as other:
        roles = ("user:ada", "service", "admin")
        made = [recollect(one, "keys", "create", "--role", role).stdout.strip() for role in roles]
        with caller(one, made[0]) as ada, caller(one, made[1]) as others, caller(other, made[2]) as admin:
            place = ada.post("/api/import", content=lines(10)).headers["location"]
            until(lambda: ada.get(f"{other.url}{place}").json()["status"] == "done")
            refused(others.get(f"{other.url}{place}"), 404, "not_found")
            assert admin.get(place).json()["imported"] == 10
