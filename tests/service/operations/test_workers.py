"""Processes that share servers: several behind one port, those that answer alone, and those that only work.

No Qdrant answers here: what a turn owes waits for it, and its tries tell who works.
"""

import os
import signal
import subprocess
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from pymongo import MongoClient

from tests.fakes.openai_answers import Answer, Body, extraction_tool
from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.running import Service, model_settings, service, until
from tests.service.support.scripts import facts, learning, texts

START_SECONDS = 90.0
"""Two interpreters start, and import everything."""
HANDED_OVER_SECONDS = 1.5
"""The pages promise half a second; this machine runs other tests beside."""
NOBODY = "http://127.0.0.1:9"


@pytest.fixture
def settings(mongodb_url: str, fake: FakeOpenAI) -> Iterator[dict[str, str]]:
    """Yield the settings of processes on a database of the test's own."""
    fake.on_chat = learning
    name = f"recollect_test_{uuid4().hex[:12]}"
    shared = {"MONGODB_URL": mongodb_url, "MONGODB_DATABASE": name, "QDRANT_URL": NOBODY, "SHUTDOWN_SECONDS": "1"}
    yield model_settings(fake.url, **shared)
    with MongoClient[dict[str, Any]](mongodb_url) as client:
        client.drop_database(name)


@contextmanager
def worker(folder: Path, **settings: str) -> Generator[Service]:
    """Run `recollect worker`, and stop it at the end."""
    folder.mkdir()
    running = Service(folder, **settings)
    running.arguments = ["worker"]
    running.start(wait=False)
    try:
        until(lambda: "action=working" in running.log)
        yield running
    finally:
        running.__exit__(None, None, None)


@contextmanager
def two_processes(folder: Path, **settings: str) -> Generator[Service]:
    """Run `recollect serve --workers 2` until both serve, and stop it at the end."""
    running = Service(folder, **settings)
    running.arguments = ["serve", "--workers", "2"]
    running.start(wait=False)
    try:
        until(lambda: running.log.count("action=serving") == 2, START_SECONDS)
        yield running
    finally:
        running.__exit__(None, None, None)


def children(running: Service) -> list[int]:
    """Return the ids of the processes that a service has started to serve."""
    assert running.process is not None
    found = subprocess.run(
        ["pgrep", "-P", str(running.process.pid), "-f", "spawn_main"], capture_output=True, check=False
    )
    return [int(pid) for pid in found.stdout.split()]


def tries(running: Service, turn_id: str) -> int:
    """Return how often the steps of the turn's update were tried."""
    steps = running.get(f"/api/turns/{turn_id}", user_id="ada")["memory"]["update"]["steps"]
    return sum(step["tries"] for step in steps.values())


@pytest.mark.parametrize(
    ("arguments", "more"), [(["serve", "--workers", "2"], {}), (["serve"], {"WORKER": "off"}), (["worker"], {})]
)
@pytest.mark.parametrize("half", [{}, {"QDRANT_URL": NOBODY}, {"MONGODB_URL": "mongodb://127.0.0.1:9"}])
def test_embedded_stores_refuse_further_processes(
    tmp_path: Path, arguments: list[str], more: dict[str, str], half: dict[str, str]
) -> None:
    running = Service(tmp_path, **half, **more)
    running.arguments = arguments
    running.start(wait=False)
    assert running.process is not None
    assert running.process.wait(START_SECONDS) == 2
    assert "set MONGODB_URL and QDRANT_URL" in running.log


@pytest.mark.slow  # Interpreters of their own start.
def test_processes_behind_one_port_are_replaced_and_all_end(tmp_path: Path, settings: dict[str, str]) -> None:
    with two_processes(tmp_path, **settings) as running:
        first = children(running)
        assert len(first) == 2
        os.kill(first[0], signal.SIGKILL)
        with ThreadPoolExecutor(8) as clients:
            said = list[int](clients.map(partial(say, running), range(24)))
        assert said == [200] * 24
        until(lambda: len(children(running)) == 2 and running.log.count("action=serving") == 3, START_SECONDS)
        assert running.stop() == 0
    assert children(running) == []


def say(running: Service, number: int) -> int:
    """Send a turn on a connection of its own, again where its process was killed; return the status."""
    body = {"user_id": "ada", "thread_id": f"t{number}", "message": "Hello.", "turn_id": f"turn{number}"}
    for _ in range(3):
        with httpx.Client() as client:
            try:
                return client.post(f"{running.url}/api/agent", json=body, timeout=30).status_code
            except httpx.TransportError:
                time.sleep(0.1)
    raise AssertionError("nobody answers")


@pytest.mark.slow  # Interpreters of their own start.
def test_processes_end_with_the_one_that_started_them(tmp_path: Path, settings: dict[str, str]) -> None:
    with two_processes(tmp_path, **settings) as running:
        running.kill()
        until(lambda: running.log.count("action=stopped") == 2)


def test_a_service_without_updates_answers_and_a_worker_works_them_off(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    with service(tmp_path, **settings, WORKER="off") as running:
        turn = running.turn("my city is Paris", turn_id="one")
        assert turn["memory"]["update"]["status"] == "pending"
        time.sleep(1)
        assert tries(running, "one") == 0
        with worker(tmp_path / "worker", **settings) as working:
            until(lambda: tries(running, "one") > 0)
            assert working.stop() == 0
            assert "action=stopped" in working.log
        assert len(texts(running)) == 2


def test_a_worker_that_is_told_to_stop_hands_its_users_over_at_once(
    tmp_path: Path, settings: dict[str, str], fake: FakeOpenAI
) -> None:
    def reply_then_hang(body: Body) -> Answer | None:
        if extraction_tool(body) is None:
            fake.hang()
        return learning(body)

    fake.on_chat = reply_then_hang
    with service(tmp_path, **settings, WORKER="off") as running, worker(tmp_path / "one", **settings) as one:
        running.turn("my city is Paris", turn_id="one")
        until(lambda: len(fake.extractions) == 1)
        with worker(tmp_path / "other", **settings):
            fake.on_chat = learning
            assert one.process is not None
            one.process.send_signal(signal.SIGTERM)
            told = time.monotonic()
            until(lambda: len(fake.extractions) == 2)
            assert time.monotonic() - told < HANDED_OVER_SECONDS, "not when its claim has run out, after 15 s"
            fake.release()
            until(lambda: facts(running) == {"city": "Paris"})
            assert one.process.wait(10) == 0
        assert len(texts(running)) == 2
        assert len(fake.extractions) == 2, "neither lost nor learned twice"
        assert len(running.get("/api/users/ada/facts")["items"]) == 1
