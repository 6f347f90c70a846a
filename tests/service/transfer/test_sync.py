"""`recollect sync`: edits of files become edits of the memory with history, and the other way round."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect.memory.transfer.front_matter import from_markdown, to_markdown_file
from tests.service.support.commands import recollect, recollecting
from tests.service.support.facts_of import FactsOf
from tests.service.support.forked import Forked
from tests.service.support.running import Service, until

STATE = ".recollect-sync.json"


class Synced:
    """A user's folder, and the command that keeps it."""

    def __init__(self, running: Service, user: str, root: Path) -> None:
        self.running = running
        self.user = user
        self.root = root
        self.base = root / user
        self.facts = FactsOf(running, user)

    def sync(self, *options: str, code: int = 0) -> str:
        """Sync once; what it said."""
        done = recollect(self.running, "sync", str(self.root), "--user", self.user, *options)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def read(self, path: str) -> tuple[dict[str, Any], str]:
        return from_markdown((self.base / path).read_bytes())

    def write(self, path: str, body: str, **fields: Any) -> None:
        """Write the file anew, with these fields changed."""
        before = self.read(path)[0] if (self.base / path).exists() else {}
        (self.base / path).write_bytes(to_markdown_file({**before, **fields}, body))

    def files(self) -> set[str]:
        found = (path.relative_to(self.base).as_posix() for path in self.base.rglob("*.md"))
        return set(found)

    def summary(self, thread: str = "t1") -> dict[str, Any]:
        return self.running.get(f"/api/threads/{thread}/summary", user_id=self.user)


@pytest.fixture
def synced(offline: Service, user: str, tmp_path: Path) -> Synced:
    """Return a memory with a keyed fact, a note and a thread with a summary, synced once."""
    made = Synced(offline, user, tmp_path / "notes")
    made.facts.put("city", value="Paris", tags=["home"])
    note = {"user_id": user, "content": "Ada keeps bees."}
    assert offline.http.post("/api/memory", json=note).status_code == 201
    offline.turn("Hello there.", user=user, turn_id="turn-1", memory={"enabled": False})
    offline.turn("Again.", user=user, thread="A:b", turn_id="turn-2", memory={"enabled": False})
    put = offline.http.put("/api/threads/t1/summary", params={"user_id": user}, json={"summary": "They said hello."})
    assert put.is_success
    made.sync()
    return made


def note_id(synced: Synced) -> str:
    (found,) = [fact["id"] for fact in synced.facts.items() if fact["key"] is None]
    return str(found)


def test_the_memory_is_written_as_files(synced: Synced) -> None:
    note = f"facts/{note_id(synced)}.md"
    others = {path for path in synced.files() if path.startswith("A-b~")}
    assert synced.files() - others == {"facts/city.md", note, "t1/summary.md", "t1/turns/turn-1.md"}
    assert [path.split("/", 1)[1] for path in others] == ["turns/turn-2.md"]
    fields, body = synced.read("facts/city.md")
    assert body == "Paris"
    assert (fields["key"], fields["tags"], fields["pinned"], fields["source"]) == ("city", ["home"], False, "manual")
    assert synced.read(note)[1] == "Ada keeps bees."
    assert synced.read("t1/summary.md")[1] == "They said hello."
    assert "Hello there." in synced.read("t1/turns/turn-1.md")[1]
    state = json.loads((synced.base / STATE).read_bytes())
    assert set(state["files"]) == synced.files()
    assert "Paris" not in json.dumps(state)
    before = {path: (synced.base / path).stat().st_mtime_ns for path in synced.files()}
    assert synced.sync() == ""
    assert {path: (synced.base / path).stat().st_mtime_ns for path in synced.files()} == before


def test_edits_of_files_become_edits_with_history(synced: Synced) -> None:
    city, note = synced.facts.one("city"), note_id(synced)
    synced.write("facts/city.md", "Rome", tags=["home", "new"], pinned=True, valid_to="2999-01-01")
    synced.write(f"facts/{note}.md", "Ada keeps many bees.", importance=0.9)
    synced.write("t1/summary.md", "They said hello, twice.")
    told = synced.sync()
    assert "edited facts/city.md in the memory" in told
    found = synced.facts.one("city")
    assert (found["id"], found["value"], found["tags"], found["pinned"]) == (city["id"], "Rome", ["home", "new"], True)
    assert found["valid_to"] == "2999-01-01T00:00:00.000Z"
    assert [version["value"] for version in synced.facts.history(city["id"])] == ["Paris", "Rome"]
    (free,) = [fact for fact in synced.facts.items() if fact["key"] is None]
    assert (free["statement"], free["importance"]) == ("Ada keeps many bees.", 0.9)
    assert synced.summary() == {"summary": "They said hello, twice.", "summary_by": "person"}
    assert synced.sync() == ""


def test_added_and_deleted_files(synced: Synced) -> None:
    note = note_id(synced)
    (synced.base / "facts" / "job.md").write_text("chemist\n")
    (synced.base / "facts" / "A thought.md").write_text("---\ntags: [idea]\n---\nBees dance.\n")
    (synced.base / "facts" / "city.md").unlink()
    (synced.base / "t1" / "summary.md").unlink()
    synced.sync()
    assert synced.facts.known() == {"job": "chemist"}
    free = {fact["statement"]: fact for fact in synced.facts.items() if fact["key"] is None}
    assert free.keys() == {"Ada keeps bees.", "Bees dance."}
    assert free["Bees dance."]["tags"] == ["idea"]
    expected = {f"facts/{note}.md", f"facts/{free['Bees dance.']['id']}.md", "facts/job.md"}
    assert {path for path in synced.files() if path.startswith("facts/")} == expected
    assert synced.summary()["summary"] is None
    assert synced.read("facts/job.md")[0]["key"] == "job"
    assert synced.sync() == ""


def test_what_changed_in_the_memory_is_written(synced: Synced) -> None:
    note = note_id(synced)
    synced.facts.put("city", value="Oslo")
    synced.facts.put("pet", value="Felix")
    assert synced.facts.ask("DELETE", f"/{note}").status_code == 204
    synced.running.turn("A third.", user=synced.user, turn_id="turn-3", memory={"enabled": False})
    params = {"user_id": synced.user}
    assert synced.running.http.put("/api/threads/t1/summary", params=params, json={"summary": "More."}).is_success
    told = synced.sync()
    assert f"removed facts/{note}.md" in told
    assert synced.read("facts/city.md")[1] == "Oslo"
    assert synced.read("facts/pet.md")[1] == "Felix"
    assert not (synced.base / "facts" / f"{note}.md").exists()
    assert synced.read("t1/summary.md")[1] == "More."
    assert "A third." in synced.read("t1/turns/turn-3.md")[1]
    assert synced.running.http.delete("/api/threads/t1", params=params).status_code == 204
    synced.sync()
    assert not (synced.base / "t1").exists()


def test_turns_are_read_only(synced: Synced) -> None:
    path = synced.base / "t1" / "turns" / "turn-1.md"
    before = path.read_bytes()
    path.write_bytes(before.replace(b"Hello", b"Bye"))
    (synced.base / "t1" / "turns" / "mine.md").write_text("Not a turn.\n")
    assert synced.sync() == "restored t1/turns/turn-1.md: turns cannot be edited\n"
    assert path.read_bytes() == before
    path.unlink()
    synced.sync()
    assert path.read_bytes() == before
    assert (synced.base / "t1" / "turns" / "mine.md").read_text() == "Not a turn.\n"


def test_a_conflict_waits_for_a_person(synced: Synced) -> None:
    beside = synced.base / "facts" / "city.conflict.md"
    synced.write("facts/city.md", "Rome")
    synced.facts.put("city", value="Oslo")
    assert "conflict facts/city.md" in synced.sync(code=1)
    assert synced.read("facts/city.md")[1] == "Rome"
    assert synced.read("facts/city.conflict.md")[1] == "Oslo"
    assert synced.facts.known() == {"city": "Oslo"}
    synced.facts.put("city", value="Bergen")
    synced.write("facts/city.md", "Milan")
    assert "conflict facts/city.md" in synced.sync(code=1)
    assert synced.read("facts/city.conflict.md")[1] == "Bergen"
    beside.unlink()
    synced.sync()
    assert synced.facts.known() == {"city": "Milan"}
    assert synced.sync() == ""


def test_a_conflict_ends_where_the_memorys_version_is_taken(synced: Synced) -> None:
    synced.write("t1/summary.md", "Mine.")
    params = {"user_id": synced.user}
    assert synced.running.http.put("/api/threads/t1/summary", params=params, json={"summary": "Theirs."}).is_success
    synced.sync(code=1)
    (synced.base / "t1" / "summary.conflict.md").replace(synced.base / "t1" / "summary.md")
    assert synced.sync() == ""
    assert synced.summary()["summary"] == "Theirs."


@pytest.mark.parametrize("deleted_here", [True, False])
def test_deleted_on_one_side_and_changed_on_the_other_is_a_conflict(synced: Synced, deleted_here: bool) -> None:
    path, beside = synced.base / "facts" / "city.md", synced.base / "facts" / "city.conflict.md"
    city = synced.facts.one("city")["id"]
    if deleted_here:
        path.unlink()
        synced.facts.put("city", value="Oslo")
    else:
        synced.write("facts/city.md", "Rome")
        assert synced.facts.ask("DELETE", f"/{city}").status_code == 204
    synced.sync(code=1)
    assert beside.exists()
    assert synced.facts.known() == ({"city": "Oslo"} if deleted_here else {})
    beside.unlink()
    synced.sync()
    assert synced.facts.known() == ({} if deleted_here else {"city": "Rome"})
    assert path.exists() is not deleted_here


@pytest.mark.parametrize(
    ("path", "content", "why"),
    [
        ("facts/city.md", b"---\nkey: [\n---\nRome\n", "The front matter is no YAML."),
        ("facts/city.md", b"---\nkey: city\n---\n\n", "The file has no text"),
        ("facts/city.md", b"---\nkey: town\n---\nRome\n", "id and key cannot be changed"),
        ("facts/city.md", b"---\nkey: city\ncolour: red\n---\nRome\n", "'colour' is no field of a fact."),
        ("facts/city.md", b"---\nkey: city\nimportance: 7\n---\nRome\n", "importance"),
        ("facts/city.md", b"---\nkey: city\nvalid_to: soon\n---\nRome\n", "valid_to"),
        ("facts/city.md", b"\xff\xfe", "The file is not UTF-8."),
        ("facts/other.md", b"---\nkey: city\n---\nRome\n", "The fact under this key has its file, facts/city.md."),
        ("nowhere/summary.md", b"A summary.\n", "The memory has no such thread."),
    ],
)
def test_a_malformed_file_is_named_and_left_alone(synced: Synced, path: str, content: bytes, why: str) -> None:
    file = synced.base / path
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content)
    told = synced.sync(code=1)
    assert f"left {path} alone: " in told
    assert why in told
    assert file.read_bytes() == content
    assert synced.facts.known() == {"city": "Paris"}


def test_a_file_that_was_renamed_keeps_its_fact(synced: Synced) -> None:
    before = synced.facts.one("city")
    path = synced.base / "facts" / "city.md"
    path.rename(path.with_name("town.md"))
    assert "renamed facts/town.md to facts/city.md" in synced.sync()
    assert path.exists()
    assert synced.facts.one("city") == before
    path.with_name("copy.md").write_bytes(path.read_bytes())
    assert "has the id of another file's fact" in synced.sync(code=1)


def test_an_emptied_folder_forgets_nothing(synced: Synced) -> None:
    before = synced.facts.items()
    for path in (synced.base / "facts").iterdir():
        path.unlink()
    assert "All 2 facts are gone" in synced.sync(code=1)
    assert synced.facts.items() == before
    synced.sync("--force")
    assert synced.facts.items() == []


def test_a_folder_that_is_gone_is_written_anew(synced: Synced) -> None:
    before = synced.files()
    synced.base.rename(synced.root / "elsewhere")
    synced.sync()
    assert synced.files() == before


def test_a_folder_of_another_memory_is_refused(synced: Synced, tmp_path: Path) -> None:
    before = synced.files()
    assert synced.running.http.delete(f"/api/users/{synced.user}").is_success
    assert "None of the facts" in synced.sync(code=1)
    assert synced.files() == before
    synced.sync("--force")
    assert synced.files() == set()
    (synced.base / STATE).write_text('{"user_id": "eve", "files": {}}')
    assert "belongs to another user" in synced.sync(code=2)
    (synced.base / STATE).write_text("{")
    assert "is damaged" in synced.sync(code=2)


def test_links_are_not_followed(synced: Synced, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("A secret.\n")
    (synced.base / "facts" / "link.md").symlink_to(outside / "secret.md")
    (synced.base / "t1" / "turns" / "turn-1.md").unlink()
    (synced.base / "t1" / "turns" / "turn-1.md").symlink_to(outside / "secret.md")
    synced.sync()
    assert synced.facts.known() == {"city": "Paris"}
    assert (outside / "secret.md").read_text() == "A secret.\n"
    assert "Hello there." in synced.read("t1/turns/turn-1.md")[1]
    new = synced.base / "t5"
    new.symlink_to(outside)
    synced.running.turn("Elsewhere.", user=synced.user, thread="t5", memory={"enabled": False})
    assert "is a link" in synced.sync(code=2)
    assert [path.name for path in outside.iterdir()] == ["secret.md"]


@pytest.fixture
def watching(synced: Synced) -> Iterator[Forked]:
    process = recollecting(synced.running, "sync", str(synced.root), "--user", synced.user, "--watch")
    yield process
    if process.poll() is None:
        process.kill()
    process.communicate()


def test_watching_goes_both_ways(synced: Synced, watching: Forked) -> None:
    assert watching.stdout is not None
    assert "Watching" in watching.stdout.readline()
    city = synced.base / "facts" / "city.md"
    synced.write("facts/city.md", "Rome")
    until(lambda: synced.facts.known() == {"city": "Rome"})
    synced.facts.put("city", value="Oslo")
    until(lambda: b"Oslo" in city.read_bytes())
    synced.running.turn("A new one.", user=synced.user, turn_id="turn-9", memory={"enabled": False})
    until((synced.base / "t1" / "turns" / "turn-9.md").exists)
    city.unlink()
    until(lambda: synced.facts.known() == {})
    another = recollect(synced.running, "sync", str(synced.root), "--user", synced.user)
    assert (another.returncode, "Another sync is at work" in another.stderr) == (2, True)
    watching.send_signal(signal.SIGINT)
    assert watching.wait(20) == 0


def test_watching_tells_a_conflict_once_and_ends_with_it(synced: Synced, watching: Forked) -> None:
    assert watching.stdout is not None
    assert "Watching" in watching.stdout.readline()
    os.kill(watching.pid, signal.SIGSTOP)
    synced.write("facts/city.md", "Rome")
    synced.facts.put("city", value="Oslo")
    os.kill(watching.pid, signal.SIGCONT)
    until((synced.base / "facts" / "city.conflict.md").exists)
    synced.write(f"facts/{note_id(synced)}.md", "Ada keeps wasps.")
    until(lambda: "Ada keeps wasps." in {fact["statement"] for fact in synced.facts.items()})
    watching.send_signal(signal.SIGTERM)
    assert watching.wait(20) == 1
    assert watching.stdout.read().count("conflict facts/city.md") == 1


def test_without_a_service_it_runs_one(tmp_path: Path) -> None:
    alone = Service(tmp_path)
    root = tmp_path / "notes"
    (root / "ada" / "facts").mkdir(parents=True)
    (root / "ada" / "facts" / "city.md").write_text("Paris\n")
    for _ in range(2):
        done = recollect(alone, "sync", str(root), "--user", "ada")
        assert done.returncode == 0, done.stdout + done.stderr
    assert from_markdown((root / "ada" / "facts" / "city.md").read_bytes())[0]["source"] == "manual"
