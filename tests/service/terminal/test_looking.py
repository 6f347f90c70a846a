"""`recollect facts | search | threads | stats`: tables, JSON, and what goes wrong."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from recollect.api.cli.command_context import CommandContext
from recollect.api.cli.terminal.connection import connection
from recollect.memory.values.errors import ConfigurationError
from recollect.memory.values.mem_config import MemoryConfig
from tests.service.support.commands import recollect
from tests.service.support.running import Service, free_port


def no_app(url: str) -> FastAPI:
    raise AssertionError(url)


NOBODY = CommandContext(MemoryConfig(data_dir=Path("missing")), None, no_app)


@pytest.fixture
def talked(offline: Service, user: str) -> Service:
    """Return a running service with two turns of the user in two threads."""
    offline.turn("Hi, I'm Ada and I live in Paris.", user=user, wait_for_memory=True)
    offline.turn("Penguins live in Antarctica.", user=user, thread="t2", wait_for_memory=True)
    return offline


@pytest.fixture
def stopped(tmp_path: Path) -> Iterator[Service]:
    """Yield a service that does not run: its folder alone."""
    made = Service(tmp_path)
    yield made
    made.http.close()


def told(running: Service, *arguments: str) -> Any:
    """Return the JSON that a command prints, which must succeed."""
    ended = recollect(running, *arguments, "--json")
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def shown(running: Service, *arguments: str) -> str:
    """Return the table that a command prints, which must succeed."""
    ended = recollect(running, *arguments)
    assert ended.returncode == 0, ended.stderr
    assert "\x1b" not in ended.stdout
    return ended.stdout


def refused(running: Service, code: int, *arguments: str) -> str:
    """Return the one sentence that a command ends with."""
    ended = recollect(running, *arguments)
    assert ended.returncode == code, ended.stdout + ended.stderr
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr
    return ended.stderr


def test_json_is_what_the_service_says(talked: Service, user: str) -> None:
    assert told(talked, "facts", "--user", user) == talked.get(f"/api/users/{user}/facts")
    asked = '{"source": "manual"}'
    assert told(talked, "facts", "--user", user, "--filter", asked)["items"] == []
    assert told(talked, "threads", "--user", user) == talked.get("/api/threads", user_id=user)
    found = told(talked, "search", "penguins", "--user", user, "--top", "1")
    assert [hit["content"] for hit in found["hits"]] == ["Penguins live in Antarctica."]
    assert told(talked, "search", "penguins", "--user", user, "--thread", "t1")["hits"] != found["hits"]
    assert told(talked, "stats", "--user", user) == talked.get("/memory-stats", user_id=user)
    assert told(talked, "stats", "--user", user)["threads"] == 2
    assert told(talked, "stats", "--user", user, "--thread", "t2")["turns"] == 1
    assert told(talked, "stats")["users"] >= 1


def test_tables_show_the_same(talked: Service, user: str) -> None:
    listed = shown(talked, "facts", "--user", user)
    assert "name" in listed
    assert "Paris" in listed
    listed = shown(talked, "threads", "--user", user)
    assert listed.index("t2") < listed.index("t1")
    assert "Penguins live in Antarctica." in shown(talked, "search", "penguins", "--user", user)
    assert "messages" in shown(talked, "stats", "--user", user)


def test_all_pages_are_shown(offline: Service, user: str) -> None:
    for number in range(203):
        answer = offline.http.put(f"/api/users/{user}/facts/by-key/k{number}", json={"value": f"v{number}"})
        assert answer.status_code == 200
    listed = told(offline, "facts", "--user", user)
    assert [fact["key"] for fact in listed["items"]] == [f"k{number}" for number in range(203)]
    assert listed["next_cursor"] is None
    assert "v202" in shown(offline, "facts", "--user", user)


def test_of_nobody_nothing_is_shown(offline: Service) -> None:
    assert "Nothing is known." in shown(offline, "facts", "--user", "nobody")
    assert "There are no threads." in shown(offline, "threads", "--user", "nobody")
    assert "Nothing was found." in shown(offline, "search", "x", "--user", "nobody")
    assert told(offline, "stats", "--user", "nobody")["turns"] == 0


def test_hostile_facts_reach_no_terminal(offline: Service, user: str) -> None:
    value = "\x1b[2J[red]x[/red]\x9b\u202e"
    assert offline.http.put(f"/api/users/{user}/facts/by-key/k", json={"value": value}).status_code == 200
    assert "␛[2J[red]x[/red]<U+009B><U+202E>" in shown(offline, "facts", "--user", user)
    ended = recollect(offline, "facts", "--user", user, "--json")
    assert not set(ended.stdout) & set("\x1b\x9b\u202e")
    assert json.loads(ended.stdout)["facts"] == {"k": value}


def test_without_a_service_they_bring_their_own(talked: Service, stopped: Service, user: str) -> None:
    with stopped:
        stopped.turn("Hi, I'm Ada.", wait_for_memory=True)
    assert told(stopped, "facts", "--user", "ada")["facts"] == {"name": "Ada"}
    assert "Ada" in shown(stopped, "facts", "--user", "ada")
    assert told(stopped, "facts", "--user", user, "--url", talked.url) == talked.get(f"/api/users/{user}/facts")


def test_a_folder_that_is_not_there_is_not_made(stopped: Service) -> None:
    assert "does not exist" in refused(stopped, 2, "facts", "--user", "ada")
    assert not stopped.data_dir.exists()


@pytest.mark.parametrize("command", [("facts",), ("threads",), ("search", "x"), ("stats",), ("chat",)])
def test_what_is_wrong_is_one_sentence(stopped: Service, command: tuple[str, ...]) -> None:
    assert "--user is not a valid id" in refused(stopped, 1, *command, "--user", "a b")
    assert "--url is no address" in refused(stopped, 2, *command, "--user", "ada", "--url", "nonsense")
    assert not stopped.data_dir.exists()


@pytest.mark.parametrize("url", ["", "ftp://127.0.0.1", "http://", "http://[::1", "http://127.0.0.1:x"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="--url is no address of a service"), connection(NOBODY, url):
        pass


@pytest.mark.parametrize("url", ["http://me:secret@127.0.0.1", "http://127.0.0.1/?key=secret", "http://127.0.0.1/#a"])
def test_an_address_holds_no_secrets(url: str) -> None:
    with pytest.raises(ConfigurationError, match="RECOLLECT_API_KEY") as raised, connection(NOBODY, url):
        pass
    assert "secret" not in raised.value.message


def test_a_key_that_is_none_is_refused() -> None:
    told = replace(NOBODY, api_key="schlüssel")
    with pytest.raises(ConfigurationError, match="RECOLLECT_API_KEY"), connection(told, "http://127.0.0.1"):
        pass


def test_a_service_that_is_down_is_named(stopped: Service) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    sentence = refused(stopped, 1, "facts", "--user", "ada", "--url", url)
    assert f"The service at {url} does not answer (ConnectError)" in sentence


def test_a_server_that_is_none_of_ours_is_told_apart(stopped: Service, offline: Service) -> None:
    sentence = refused(stopped, 1, "facts", "--user", "ada", "--url", f"{offline.url}/elsewhere")
    assert sentence.startswith("error: ")
    assert len(sentence.splitlines()) == 1


def test_a_user_has_to_be_named(stopped: Service) -> None:
    for command in (("facts",), ("threads",), ("search", "x"), ("chat",)):
        assert "--user" in refused(stopped, 2, *command)
    assert "--user" in refused(stopped, 2, "stats", "--thread", "t1")
