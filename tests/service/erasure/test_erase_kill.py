"""kill -9 in the middle of an erasure: the next start goes on with it, and everyone else is whole."""

import contextlib
import json
import threading
import time
from pathlib import Path

import httpx
import pytest

from tests.service.erasure.test_erase_bytes import left
from tests.service.support.running import Service, service, until

USER, TURNS = "zoltan.kodaly", 150


def fill(running: Service, user: str) -> None:
    lines = [
        {
            "user_id": user,
            "thread_id": f"t{number % 5}",
            "role": role,
            "content": f"{user} said {number}",
            "timestamp": 1_700_000_000 + number,
        }
        for number in range(TURNS)
        for role in ("user", "assistant")
    ]
    answer = running.http.post("/api/import", content="\n".join(map(json.dumps, lines)))
    assert answer.json()["imported"] == 2 * TURNS, answer.text


def erase_and_kill(running: Service, seconds: float) -> None:
    """Ask for the erasure, and kill the service so long afterwards."""

    def ask() -> None:
        with contextlib.suppress(httpx.TransportError):  # a quick machine may be through before the kill
            httpx.delete(f"{running.url}/api/users/{USER}", timeout=60).raise_for_status()

    asking = threading.Thread(target=ask)
    asking.start()
    time.sleep(seconds)  # the moment of the kill is what this test varies
    running.kill()
    asking.join(30)


def is_clean(running: Service) -> bool:
    try:
        return left(running.data_dir, "zoltan") == {}
    except FileNotFoundError:  # old files are just being removed
        return False


@pytest.mark.parametrize("seconds", [0.1, *(pytest.param(each, marks=pytest.mark.slow) for each in (0.02, 0.2, 0.4))])
def test_a_killed_erasure_is_ended_by_the_next_start(tmp_path: Path, seconds: float) -> None:
    with service(tmp_path) as running:
        for user in ("bob", USER):
            fill(running, user)
        running.turn("My name is Bob.", user="bob", wait_for_memory=True)
        erase_and_kill(running, seconds)
        running.start()
        counted = running.get("/memory-stats", user_id=USER)["messages"]
        if counted == 2 * TURNS:
            # It was killed before the erasure was written down: nobody was told that it had begun.
            assert running.http.delete(f"/api/users/{USER}").status_code == 200
        until(lambda: is_clean(running), 30)
        assert running.get("/memory-stats", user_id=USER)["points"] == 0
        stats = running.get("/memory-stats", user_id="bob")
        assert (stats["messages"], stats["facts"]) == (2 * TURNS + 2, 1)
        assert stats["points"] == 2 * TURNS + 3
        assert running.get("/api/admin/doctor")["healthy"]
        again = running.http.delete(f"/api/users/{USER}").json()
        assert set(again["remaining"].values()) == {0}
        assert running.turn("My name is Zoltan.", user=USER, wait_for_memory=True)["memory"]["facts"] == {}
