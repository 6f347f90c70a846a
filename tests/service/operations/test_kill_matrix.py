"""kill -9 at 50 random moments under load: what was acknowledged is there once, was learned once, and in order."""

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pymongo import MongoClient

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.load import Talker, changes_of, expected_changes, said, turn_id
from tests.service.support.running import Service, model_settings, service
from tests.service.support.scripts import facts, learning, texts

KILLS = 50
USERS = 6
LONGEST_LIFE = 1.0
"""Seconds of load before a kill, at most: long enough for several turns of each user, and for their updates."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def talk_and_kill(services: Sequence[Service], *, kills: int, seed: int) -> list[Talker]:
    """Let users talk while the services are killed in turn at random moments, each started again at once."""
    choice, stop = random.Random(seed), threading.Event()
    talkers = [Talker(f"user{number}", services, random.Random(seed + number)) for number in range(USERS)]
    threads = [threading.Thread(target=talker.talk, args=(stop,), daemon=True) for talker in talkers]
    for thread in threads:
        thread.start()
    try:
        for number in range(kills):
            time.sleep(choice.uniform(0, LONGEST_LIFE))  # The moment of the kill is what this test varies.
            victim = services[number % len(services)]
            victim.kill()
            victim.start()
    finally:
        stop.set()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "a turn was never acknowledged"
    assert [talker.problems for talker in talkers] == [[]] * USERS
    return talkers


def check(running: Service, talkers: Sequence[Talker], *, seconds: float) -> None:
    """Check that each acknowledged turn is there once, was learned from once, and after those before it."""
    for talker in talkers:
        count = talker.acknowledged
        assert count > 0
        for number in range(count):
            turn = running.settled(turn_id(number), user=talker.user, seconds=seconds)
            assert turn["memory"]["update"]["status"] == "done"
            assert changes_of(turn) == expected_changes(number), (talker.user, number)
        stored = [content for role, content in pages(running, talker.user) if role == "user"]
        assert stored == [said(number) for number in range(count)]
        known = facts(running, user=talker.user)
        assert known["home"] == f"place{count - 1}"
        assert known[f"k{(count - 1) % 5}"] == f"v{count - 1}"


def pages(running: Service, user: str) -> list[tuple[str, str]]:
    """Return all messages of the user's thread."""
    found, cursor = list[tuple[str, str]](), None
    while True:
        query = {"limit": 200} | ({"cursor": cursor} if cursor else {})
        page = running.get("/api/threads/t1/messages", user_id=user, **query)
        found += [(message["role"], message["content"]) for message in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            return found


def recollect(folder: Path, settings: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Return a command beside the service in `folder`."""
    return subprocess.run(
        [sys.executable, "-c", "from recollect.api.cli.main import main; main()", *arguments],
        cwd=folder,
        env={**os.environ, **settings, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def report(kills: int, talkers: Sequence[Talker]) -> None:
    """Print the counts."""
    turns = sum(talker.acknowledged for talker in talkers)
    repeats = sum(talker.repeats for talker in talkers)
    print(f"\n{kills} kills, {turns} turns acknowledged, {repeats} repeats, 0 lost, 0 learned twice")  # noqa: T201


def test_fifty_kills_lose_nothing_and_learn_nothing_twice(tmp_path: Path, fake: FakeOpenAI) -> None:
    fake.on_chat = learning
    with service(tmp_path, **model_settings(fake.url)) as running:
        talkers = talk_and_kill([running], kills=KILLS, seed=20261121)
        check(running, talkers, seconds=60)
        done = recollect(tmp_path, {"DATA_DIR": str(running.data_dir)}, "doctor", "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        report(KILLS, talkers)


@pytest.mark.server
def test_fifty_kills_of_two_processes_on_one_database(tmp_path: Path, fake: FakeOpenAI, mongodb_url: str) -> None:
    fake.on_chat = learning
    database = f"recollect_kills_{uuid4().hex[:8]}"
    settings = model_settings(fake.url, MONGODB_URL=mongodb_url, MONGODB_DATABASE=database, THREAD_WAIT_SECONDS="60")
    with MongoClient[dict[str, Any]](mongodb_url) as client, ExitStack() as stack:
        stack.callback(client.drop_database, database)
        folders = [tmp_path / name for name in ("one", "other")]
        for folder in folders:
            folder.mkdir()
        pair = [stack.enter_context(service(folder, **settings)) for folder in folders]
        talkers = talk_and_kill(pair, kills=KILLS, seed=11)
        for running in pair:
            check(running, talkers, seconds=120)
        assert [texts(pair[0], user=talker.user) for talker in talkers] == [
            texts(pair[1], user=talker.user) for talker in talkers
        ]
        for running in pair:
            own = {**settings, "DATA_DIR": str(running.data_dir)}
            rebuilt = recollect(running.folder, own, "reindex")
            assert rebuilt.returncode == 0, rebuilt.stdout + rebuilt.stderr
            examined = recollect(running.folder, own, "doctor", "--json")
            assert examined.returncode == 0, examined.stdout + examined.stderr
            assert json.loads(examined.stdout)["healthy"] is True
        report(KILLS, talkers)
