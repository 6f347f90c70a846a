"""Ids take + | ~ = too; subjects of tokens and names of imported threads keep the ids that they had before."""

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.auth.test_jwt import SECRET, token
from tests.service.support.commands import recollect
from tests.service.support.locked import bearer, caller
from tests.service.support.running import Service, service
from tests.service.support.shapes import refused

WRITTEN_BEFORE = Path(__file__).parents[2] / "fixtures" / "before_wider_ids.zip"
"""Documents of the user auth0@7cada, whose subject is auth0|ada: a thread t1, a fact, and an imported session file."""
SESSION = {
    "session_id": "work|2024 notes",
    "user_id": "auth0@7cada",
    "messages": [
        {"role": "user", "content": "I work at Initech.", "timestamp": "2024-03-01T10:00:00Z"},
        {"role": "assistant", "content": "Noted.", "timestamp": "2024-03-01T10:00:05Z"},
    ],
}
IDS = ["auth0|123", "ada+test@x.org", "a~b", "k=v"]


@pytest.mark.parametrize("user", IDS)
def test_an_id_may_hold_them_at_every_door(offline: Service, user: str) -> None:
    thread, turn_id = f"{user}:thread", f"{user}:turn"
    turn = offline.turn("I live in Paris.", user=user, thread=thread, turn_id=turn_id, wait_for_memory=True)
    assert (turn["user_id"], turn["thread_id"], turn["turn_id"]) == (user, thread, turn_id)
    assert offline.get(f"/api/turns/{turn_id}", user_id=user)["reply"] == turn["reply"]
    assert offline.get(f"/api/users/{user}/facts")["facts"] == {"location": "Paris"}
    assert [item["thread_id"] for item in offline.get("/api/threads", user_id=user)["items"]] == [thread]
    found = offline.http.post("/api/memory/search", json={"user_id": user, "query": "Paris"}).json()
    assert found["hits"]
    chat = {"user": user, "messages": [{"role": "user", "content": "Where do I live?"}]}
    assert offline.http.post("/v1/chat/completions", json=chat).status_code == 200
    exported = offline.http.get(f"/api/users/{user}/export", params={"format": "markdown"})
    assert exported.status_code == 200
    receipt = offline.http.delete(f"/api/users/{user}").json()
    assert not any(receipt["remaining"].values())
    assert offline.get(f"/api/users/{user}/facts")["facts"] == {}


def test_a_plus_in_a_query_is_written_as_percent_2b(offline: Service) -> None:
    offline.turn("I live in Rome.", user="bob+1@x.org", wait_for_memory=True)
    good = offline.http.get("/api/threads?user_id=bob%2B1@x.org")
    assert [item["thread_id"] for item in good.json()["items"]] == ["t1"]
    refused(offline.http.get("/api/threads?user_id=bob+1@x.org"), 422, "invalid_request")


@pytest.mark.parametrize("user_id", ["a b", "a/b", "a*", "a&b", "a#b", "a%b", "é", "a,b"])
def test_no_other_characters_are_taken(offline: Service, user_id: str) -> None:
    body = {"user_id": user_id, "thread_id": "t1", "message": "Hello."}
    error = refused(offline.http.post("/api/agent", json=body), 422, "invalid_request")
    assert error["details"] == [{"field": "user_id", "problem": "must be 1-128 characters of [A-Za-z0-9._:@+|~=-]"}]


def test_their_pattern_is_described(offline: Service) -> None:
    text = json.dumps(offline.get("/openapi.json"))
    assert "[A-Za-z0-9._:@+|~=-]{1,128}" in text
    assert "[A-Za-z0-9._:@-]" not in text


def test_the_terminal_takes_them(offline: Service) -> None:
    offline.turn("I live in Oslo.", user="eve+1|x", wait_for_memory=True)
    ended = recollect(offline, "facts", "--user", "eve+1|x", "--json")
    assert json.loads(ended.stdout)["facts"] == {"location": "Oslo"}


def unpack(folder: Path) -> None:
    with zipfile.ZipFile(WRITTEN_BEFORE) as zipped:
        zipped.extractall(folder / "data")


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Yield a service on documents that were written before."""
    folder = tmp_path_factory.mktemp("old")
    unpack(folder)
    with service(folder, AUTH="jwt", JWT_SECRET=SECRET) as running:
        yield running


def test_a_subject_keeps_its_user(old: Service) -> None:
    ada = bearer(token("auth0|ada", iss=None, aud=None))
    facts = old.http.get("/api/users/auth0@7cada/facts", headers=ada).json()
    assert facts["facts"] == {"location": "Paris"}
    threads = old.http.get("/api/threads", headers=ada).json()["items"]
    assert {thread["thread_id"] for thread in threads} == {"t1", "work-2024-notes-dd18945d"}
    with caller(old, token("auth0|ada", iss=None, aud=None)) as client:
        found = client.post("/api/memory/search", json={"query": "Initech"})
    assert "Initech" in found.json()["hits"][0]["content"]


def test_an_imported_thread_keeps_its_name(tmp_path: Path) -> None:
    unpack(tmp_path)
    sessions = tmp_path / "sessions"
    sessions.mkdir()
    (sessions / "session_20240301.json").write_text(json.dumps(SESSION), encoding="utf-8")
    ended = recollect(Service(tmp_path), "import", str(sessions))
    assert "Imported 0, 2 known already, 0 failed." in ended.stdout
