import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.memory.ports.key_ring import CACHE_SECONDS
from tests.service.support.commands import recollect
from tests.service.support.locked import bearer
from tests.service.support.running import Service, service, until

KEY = re.compile(r"rk_([0-9a-f]{16})_([A-Za-z0-9_-]{43})\n")


@pytest.fixture
def stopped(tmp_path: Path) -> Iterator[Service]:
    """Yield a service that has never run."""
    made = Service(tmp_path, AUTH="api_key")
    yield made
    made.http.close()


def made_key(running: Service, *arguments: str) -> tuple[str, str]:
    """Return the id and the text of a key made by the command, which prints nothing else."""
    done = recollect(running, "keys", "create", *arguments)
    found = KEY.fullmatch(done.stdout)
    assert (done.returncode, done.stderr, found is not None) == (0, "", True), (done.stdout, done.stderr)
    assert found is not None
    return found[1], done.stdout.strip()


def listed(running: Service) -> list[dict[str, str | None]]:
    done = recollect(running, "keys", "list", "--json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, str | None]] = json.loads(done.stdout)
    return found


def refusal(running: Service, *arguments: str) -> str:
    done = recollect(running, "keys", *arguments)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    return done.stderr


def test_keys_are_made_listed_and_revoked_before_the_service_has_ever_run(stopped: Service) -> None:
    first, text = made_key(stopped, "--role", "service", "--name", "back end")
    second, _ = made_key(stopped, "--role", "user:ada")
    assert [(key["id"], key["role"], key["name"]) for key in listed(stopped)] == [
        (first, "service", "back end"),
        (second, "user:ada", None),
    ]
    table = recollect(stopped, "keys", "list").stdout
    assert all(word in table for word in (first, "back end", "user:ada"))
    secret = text[-43:].encode()
    for file in stopped.data_dir.rglob("*"):
        assert not file.is_file() or secret not in file.read_bytes(), "only a hash is stored"
    assert recollect(stopped, "keys", "revoke", first).returncode == 0
    assert [key["id"] for key in listed(stopped)] == [second]
    with stopped:
        assert stopped.http.get("/api/threads", headers=bearer(text)).status_code == 401


def test_keys_are_made_listed_and_revoked_through_the_service(stopped: Service) -> None:
    with stopped:
        ids = [made_key(stopped, "--role", role)[0] for role in ("admin", "user:ada@example.com")]
        key_id, text = made_key(stopped, "--role", "user:ada", "--name", "Zürich")
        assert stopped.http.get("/api/threads", headers=bearer(text)).status_code == 200
        assert [key["id"] for key in listed(stopped)] == [*ids, key_id]
        assert recollect(stopped, "keys", "revoke", key_id).returncode == 0
        assert stopped.http.get("/api/threads", headers=bearer(text)).status_code == 401, "at once"
        assert "no such key" in refusal(stopped, "revoke", key_id)
        assert text not in stopped.log
    assert [key["id"] for key in listed(stopped)] == ids


def test_what_is_no_key_or_role_is_refused_with_a_sentence(stopped: Service) -> None:
    assert "role must be service, admin or user:<id>" in refusal(stopped, "create", "--role", "root")
    assert "role" in refusal(stopped, "create", "--role", "user:a b")
    assert "name" in refusal(stopped, "create", "--role", "admin", "--name", "a\nb")
    assert "--role" in refusal(stopped, "create")
    assert "no such key" in refusal(stopped, "revoke", "../x")
    assert "DATA_DIR" in refusal(stopped, "list")
    assert "DATA_DIR" in refusal(stopped, "revoke", "0" * 16)
    assert not stopped.data_dir.exists(), "looking makes nothing"


def test_with_mongodb_a_revoked_key_is_refused_by_every_process_within_seconds(
    tmp_path: Path, mongodb_url: str
) -> None:
    settings = {
        "AUTH": "api_key",
        "MONGODB_URL": mongodb_url,
        "MONGODB_DATABASE": f"recollect_test_{tmp_path.name[-20:]}",
    }
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    with service(tmp_path / "here", **settings) as here, service(tmp_path / "there", **settings) as there:
        key_id, text = made_key(here, "--role", "service")

        def opens(running: Service) -> bool:
            return running.http.get("/api/threads?user_id=ada", headers=bearer(text)).status_code == 200

        assert opens(here)
        assert opens(there)
        assert recollect(here, "keys", "revoke", key_id).returncode == 0
        assert not opens(here)
        until(lambda: not opens(there), CACHE_SECONDS + 10)
