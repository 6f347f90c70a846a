"""An import that takes longer than a client should wait goes on behind a 202, and its caller may ask about it."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.service.support.commands import recollect
from tests.service.support.locked import caller, key_caller, owner_token
from tests.service.support.running import Service, service, until
from tests.service.support.shapes import refused

MESSAGES = 400


def lines(user_id: str) -> bytes:
    common = {"user_id": user_id, "thread_id": "t1", "role": "user"}
    made = ({**common, "content": f"Tea {n}.", "timestamp": 1_700_000_000 + n} for n in range(MESSAGES))
    return b"".join(json.dumps(line).encode() + b"\n" for line in made)


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("running")
    with service(folder, AUTH="api_key", IMPORT_ANSWER_SECONDS="0.001") as running:
        yield running


def ended(client: httpx.Client, place: str) -> dict[str, Any]:
    until(lambda: client.get(place).json()["status"] != "running")
    found: dict[str, Any] = client.get(place).json()
    return found


def test_it_goes_on_behind_its_answer_and_says_its_end_to_its_caller_alone(locked: Service) -> None:
    with key_caller(locked, "user:ada") as ada, key_caller(locked, "user:bob") as bob:
        answer = ada.post("/api/import", content=lines("ada"))
        assert answer.status_code == 202
        import_id = answer.json()["import_id"]
        assert answer.json() == {"import_id": import_id, "status": "running"}
        place = answer.headers["location"]
        assert place == f"/api/import/{import_id}"
        refused(bob.get(place), 404, "not_found")
        done = ended(ada, place)
        assert done == {"import_id": import_id, "status": "done", "imported": MESSAGES, "known": 0, "failed": []}
        refused(bob.get(place), 404, "not_found")
        with caller(locked, owner_token(locked)) as owner:
            assert owner.get(place).json() == done
        again = ended(ada, ada.post("/api/import", content=lines("ada")).headers["location"])
        assert (again["imported"], again["known"]) == (0, MESSAGES)


def test_the_command_waits_for_its_end(locked: Service) -> None:
    file = locked.folder / "cleo.jsonl"
    file.write_bytes(lines("cleo"))
    done = recollect(locked, "import", str(file))
    assert done.returncode == 0, done.stderr
    assert f"Imported {MESSAGES}, 0 known already" in done.stdout
