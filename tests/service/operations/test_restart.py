"""Checks what a start finds amiss with the index is mended from the documents."""

import re
import shutil
from pathlib import Path

import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.running import Service, model_settings, service, until
from tests.service.support.scripts import facts, hits, post, texts
from tests.service.support.stored import stored_messages, stored_points

# Six messages, and the one fact where the index had followed it before the stop.
REPAIRED = re.compile("action=index_repaired added=[67] removed=0")
SAID = ("The parrot eats mangoes.", "My bicycle is blue.", "We sail on Sundays.")


@pytest.fixture
def stopped(tmp_path: Path) -> Service:
    """Return a service that heard three things and was stopped."""
    with Service(tmp_path) as running:
        for message in SAID:
            running.settled(running.turn(message)["turn_id"])
        assert running.stop() == 0
    return running


def finds(running: Service, text: str, content: str) -> bool:
    return content in {hit["content"] for hit in hits(running, text, thread="search")}


def check_healed(folder: Path) -> None:
    with Service(folder) as running:
        until(lambda: finds(running, "parrot mangoes", SAID[0]))
        until(lambda: finds(running, "blue bicycle", SAID[1]))
        assert REPAIRED.search(running.log)
        assert running.http.get("/health/ready").status_code == 200
        assert [content for role, content in texts(running) if role == "user"] == list(SAID)
        assert running.stop() == 0
    ids = set(stored_points(running.data_dir))
    assert {message.id for message in stored_messages(running.data_dir)} <= ids
    with Service(folder) as running:
        assert running.log.count("index_repaired") == 1, "once mended, nothing is left to mend"


def test_a_deleted_index_is_healed_at_the_next_start(stopped: Service) -> None:
    shutil.rmtree(stopped.data_dir / "index")
    check_healed(stopped.folder)


def test_a_damaged_index_is_moved_aside_and_healed(stopped: Service) -> None:
    damaged = [path for path in (stopped.data_dir / "index").rglob("*") if path.is_file() and path.stat().st_size]
    assert damaged
    for path in damaged:
        path.write_bytes(b"\xff" * 64)
    check_healed(stopped.folder)
    assert "action=index_damaged" in stopped.log
    assert [path for path in (stopped.data_dir / "index").iterdir() if ".damaged-" in path.name]


def test_a_kept_index_is_not_touched(stopped: Service) -> None:
    with Service(stopped.folder) as running:
        assert finds(running, "parrot mangoes", SAID[0])
        assert "index_repaired" not in running.log
        assert "Wrong" not in running.log


def test_facts_and_messages_are_there_after_a_restart(tmp_path: Path) -> None:
    with Service(tmp_path) as running:
        first = running.turn("My name is Ada.", wait_for_memory=True)
        assert running.stop() == 0
        running.start()
        assert facts(running) == {"name": "Ada"}
        assert running.get(f"/api/turns/{first['turn_id']}", user_id="ada") == first
        second = running.turn("What is my name?")
        assert (second["memory"]["window"], second["memory"]["facts"]) == (1, {"name": "Ada"})
        assert "Ada" in second["reply"]


def test_another_embedder_searches_a_collection_of_its_own(stopped: Service, fake: FakeOpenAI) -> None:
    before = stored_points(stopped.data_dir)
    settings = model_settings(fake.url, EMBEDDING_MODEL="fake-embed")
    with service(stopped.folder, **settings) as running:
        until(lambda: finds(running, "parrot eats mangoes", SAID[0]))
        embedded = {text for body in fake.embeddings for text in body["input"]}
        assert set(SAID) <= embedded, "indexed anew from the documents"
        assert REPAIRED.search(running.log)
        until(lambda: "action=other_collections" in running.log)
        report = next(line for line in running.log.splitlines() if "action=other_collections" in line)
        assert "lexical" in report
        fake.fail(503, times=-1, path="embeddings")
        blind = running.turn("What does the parrot eat?", thread="search", memory={"window": 0, "scope": "user"})
        assert (blind["memory"]["hits"], blind["memory"]["degraded"]) == ([], ["search_memories"])
        fake.recover()
        assert running.stop() == 0
    assert stored_points(stopped.data_dir) == before, "the old one is as it was"
    with Service(stopped.folder) as running:  # And back again: what came meanwhile is added.
        until(lambda: finds(running, "parrot eats mangoes", SAID[0]))


def test_an_embedder_that_is_down_at_the_start_is_caught_up_with(stopped: Service, fake: FakeOpenAI) -> None:
    fake.fail(503, times=-1, path="embeddings")
    settings = model_settings(fake.url, EMBEDDING_MODEL="fake-embed")
    with service(stopped.folder, **settings) as running:
        shown = post(running, "The parrot again.", memory={"window": 0}).json()
        assert shown["memory"]["degraded"] == ["search_memories"]
        assert running.http.get("/health/ready").json()["down"] != []
        pending = running.get(f"/api/turns/{shown['turn_id']}", user_id="ada")["memory"]["update"]
        assert pending["status"] == "pending"
        fake.recover()
        assert running.settled(shown["turn_id"], seconds=60)["memory"]["update"]["status"] == "done"
        assert finds(running, "The parrot again.", "The parrot again.")
