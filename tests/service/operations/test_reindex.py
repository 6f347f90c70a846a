"""`recollect reindex`: while the service runs, without it, and after a kill."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.commands import recollect, recollecting
from tests.service.support.running import Service, model_settings, service, until
from tests.service.support.shapes import refused

TURNS = 40


@pytest.fixture
def talked(fake: FakeOpenAI, tmp_path: Path) -> Iterator[Service]:
    """Yield a service whose embedder is the scripted one, with many indexed messages."""
    with service(tmp_path, **model_settings(fake.url, EMBEDDING_MODEL="fake-embed", SHUTDOWN_SECONDS="2")) as running:
        for number in range(TURNS):
            running.turn(f"I saw number {number} today.", thread=f"t{number % 4}")
        healthy(running)
        yield running


def healthy(running: Service) -> dict[str, Any]:
    """Return the doctor's report, once nothing is wrong or pending."""

    def is_settled() -> bool:
        report = running.get("/api/admin/doctor")
        return report["healthy"] and not report["totals"]["pending"]

    until(is_settled)
    return running.get("/api/admin/doctor")


def hits(running: Service, user: str = "ada") -> int:
    """Return how many memories a turn recalls from all threads."""
    memory = {"scope": "user", "top_k": 20, "window": 0, "score_threshold": -1.0}
    turn = running.turn("Which number did I see today?", user=user, thread="asking", memory=memory)
    assert turn["memory"]["degraded"] == []
    return len(turn["memory"]["hits"])


def is_rebuild(body: dict[str, Any]) -> bool:
    """Tell whether so many texts are embedded at once as only a rebuild does."""
    return isinstance(body["input"], list) and len(body["input"]) > 4  # pyright: ignore[reportUnknownArgumentType] - JSON


def collections(running: Service) -> list[str]:
    return [item.name.rpartition("-")[2] for item in (running.data_dir / "index").iterdir() if item.is_dir()]


def test_the_index_is_rebuilt_while_the_service_answers(talked: Service, fake: FakeOpenAI) -> None:
    assert hits(talked) == 20
    fake.embedding_seconds = 0.2
    command = recollecting(talked, "reindex")
    seen = [hits(talked)]
    while command.poll() is None:
        seen.append(hits(talked))
    fake.embedding_seconds = 0
    told, shown = command.communicate()
    assert command.returncode == 0, shown
    assert "Reindexed" in told
    assert set(seen) == {20}
    healthy(talked)
    assert collections(talked) == ["64.r2"]


def test_a_dry_run_changes_nothing(talked: Service) -> None:
    ended = recollect(talked, "reindex", "--dry-run")
    assert ended.returncode == 0, ended.stderr
    assert f"Would make {2 * TURNS} points" in ended.stdout
    assert collections(talked) == ["64"]


def test_without_a_service_the_command_does_it_itself(talked: Service) -> None:
    talked.stop()
    ended = recollect(talked, "reindex")
    assert ended.returncode == 0, ended.stderr
    assert f"Reindexed {2 * TURNS} points: {2 * TURNS} embedded, 0 reused" in ended.stdout
    assert collections(talked) == ["64.r2"]
    assert recollect(talked, "doctor").returncode == 0
    ended = recollect(talked, "reindex", "--user", "ada")
    assert f"Reindexed {2 * TURNS} points of ada" in ended.stdout
    assert recollect(talked, "reindex", "--user", "no one").returncode == 1
    talked.start()
    assert hits(talked) == 20


def test_a_rebuild_goes_on_when_its_caller_leaves_and_there_is_one_at_a_time(talked: Service, fake: FakeOpenAI) -> None:
    fake.hang()
    with talked.http.stream("POST", "/api/admin/reindex", json={}) as response:
        assert response.status_code == 200
        until(lambda: any(map(is_rebuild, fake.embeddings)))
        refused(talked.http.post("/api/admin/reindex", json={}), 409, "reindex_running")
    fake.release()
    until(lambda: collections(talked) == ["64.r2"])
    healthy(talked)
    lines = talked.http.post("/api/admin/reindex", json={"dry_run": True}).text.splitlines()
    assert json.loads(lines[-1])["report"]["points"] == 2 * TURNS


@pytest.mark.slow
def test_a_service_that_is_killed_on_the_way_goes_on_after_its_start(talked: Service, fake: FakeOpenAI) -> None:
    def hang_after_the_first(body: dict[str, Any]) -> None:
        if is_rebuild(body):
            fake.hang()

    fake.on_embeddings = hang_after_the_first
    command = recollecting(talked, "reindex")
    until(lambda: sum(map(is_rebuild, fake.embeddings)) == 2)
    talked.kill()
    told, shown = command.communicate()
    assert command.returncode == 1, told + shown
    assert "Traceback" not in shown
    fake.on_embeddings = None
    fake.release()
    talked.start()
    healthy(talked)
    ended = recollect(talked, "reindex")
    assert ended.returncode == 0, ended.stderr
    assert f"Reindexed {2 * TURNS} points: {2 * TURNS - 64} embedded, 64 reused" in ended.stdout
    healthy(talked)


def test_an_embedder_that_is_down_leaves_the_old_index(talked: Service, fake: FakeOpenAI) -> None:
    fake.fail(503, times=-1, path="embeddings")
    ended = recollect(talked, "reindex")
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert "error:" in ended.stderr
    fake.recover()
    assert hits(talked) == 20
    assert recollect(talked, "reindex").returncode == 0


@pytest.mark.slow
def test_a_service_stops_in_the_middle_of_a_rebuild(talked: Service, fake: FakeOpenAI) -> None:
    fake.hang()
    command = recollecting(talked, "reindex")
    until(lambda: any(map(is_rebuild, fake.embeddings)))
    assert talked.stop() == 0
    fake.release()
    told, shown = command.communicate()
    assert command.returncode == 1, told + shown
    assert "Traceback" not in shown
