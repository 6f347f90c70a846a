"""The commands beside a service with AUTH=api_key: the owner's token opens it here, a key opens it from elsewhere."""

import json
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.support.commands import SECONDS, recollect, recollecting
from tests.service.support.locked import made_key, owner_token
from tests.service.support.running import Service, service
from tests.service.support.terminals import Terminal


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Yield a running service that wants keys, and knows something of ada."""
    with service(tmp_path_factory.mktemp("locked"), AUTH="api_key") as running:
        ended = chatted(running, "Hi, I'm Ada.\n", "--thread", "t1")
        assert (ended.returncode, ended.stderr) == (0, "")
        yield running


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Service]:
    """Another machine's folder, as good as: nothing of the service is there."""
    made = Service(tmp_path)
    yield made
    made.http.close()


def chatted(running: Service, lines: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = recollecting(running, "chat", "--user", "ada", *arguments, typed=True)
    told, shown = command.communicate(lines, timeout=SECONDS)
    return subprocess.CompletedProcess(command.args, command.wait(), told, shown)


def with_key(elsewhere: Service, locked: Service, key: str | None, *command: str) -> "subprocess.CompletedProcess[str]":
    elsewhere.settings = {} if key is None else {"RECOLLECT_API_KEY": key}
    return recollect(elsewhere, *command, "--url", locked.url)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("doctor", "healthy"),
        ("reindex", "Reindexed"),
        ("reindex --user ada", "Reindexed"),
        ("learn --failed", "Tried 0 failed updates"),
        ("facts --user ada", "Ada"),
        ("threads --user ada", "t1"),
        ("search Ada --user ada", "Hi, I'm Ada."),
        ("stats --user ada", "turns"),
        ("stats", "users"),
        ("keys list", ""),
        ("export --user ada", '"type"'),
        ("sync folder --user ada", ""),
        ("erase --user nobody --yes", ""),
    ],
)
def test_each_command_shows_the_owners_token(locked: Service, command: str, says: str) -> None:
    ended = recollect(locked, *command.split())
    assert ended.returncode == 0, ended.stderr
    assert says in ended.stdout
    assert owner_token(locked) not in ended.stdout + ended.stderr


def test_an_import_shows_it_too(locked: Service) -> None:
    line = {
        "user_id": "eve",
        "thread_id": "t1",
        "role": "user",
        "content": "Hello.",
        "timestamp": "2025-05-08T13:56:00Z",
    }
    (locked.folder / "lines.jsonl").write_text(json.dumps(line))
    ended = recollect(locked, "import", "lines.jsonl")
    assert ended.returncode == 0, ended.stderr
    assert "Imported 1," in ended.stdout


def test_without_a_key_nothing_is_shown(locked: Service, elsewhere: Service) -> None:
    for key in (None, "rk_wrong"):
        for command in (("facts", "--user", "ada"), ("stats",)):
            ended = with_key(elsewhere, locked, key, *command)
            assert ended.returncode == 1
            assert ended.stdout == ""
            assert ended.stderr == (
                f"error: The service at {locked.url} wants a key that it knows; set RECOLLECT_API_KEY.\n"
            )


def test_a_key_opens_what_it_is_for(locked: Service, elsewhere: Service) -> None:
    own = made_key(locked, "user:ada")["key"]
    known = with_key(elsewhere, locked, own, "facts", "--user", "ada", "--json")
    assert json.loads(known.stdout)["facts"] == {"name": "Ada"}, known.stderr
    assert with_key(elsewhere, locked, own, "facts", "--user", "bob").returncode == 1
    every = made_key(locked, "service")["key"]
    assert with_key(elsewhere, locked, every, "facts", "--user", "bob").returncode == 0
    figures = with_key(elsewhere, locked, every, "stats")
    assert (figures.returncode, figures.stdout) == (1, "")
    assert "administrator" in figures.stderr


def test_a_conversation_with_a_key(locked: Service, elsewhere: Service) -> None:
    key = made_key(locked, "user:bob")["key"]
    arguments = ("chat", "--user", "bob", "--thread", "t1", "--url", locked.url)
    with Terminal(elsewhere, *arguments, RECOLLECT_API_KEY=key) as terminal:
        terminal.ready()
        assert "Bob" in terminal.enter("Hi, I'm Bob.")
        assert "Bob" in terminal.enter("!facts")
        assert terminal.end() == 0
        assert key not in terminal.raw


def test_a_service_of_the_commands_own_is_locked_too(elsewhere: Service) -> None:
    elsewhere.settings = {"AUTH": "api_key"}
    with Terminal(elsewhere, "chat", "--user", "ada", "--thread", "t1") as terminal:
        terminal.ready()
        assert "Ada" in terminal.enter("Hi, I'm Ada.")
        lock = elsewhere.data_dir / "lock"
        url = json.loads(lock.read_text())["url"]
        assert elsewhere.http.get(f"{url}/api/users/ada/facts").status_code == 401
        assert stat.S_IMODE(lock.stat().st_mode) == 0o600
        assert "Ada" in recollect(elsewhere, "facts", "--user", "ada").stdout
        assert terminal.end() == 0
