"""`GET /memory-stats`: how much is remembered, of whom."""

from pathlib import Path

import pytest

from tests.service.support.facts_of import FactsOf
from tests.service.support.running import Service, service
from tests.service.support.shapes import fields

FIGURES = ("users", "threads", "turns", "messages", "facts", "documents", "points", "pending")


def figures(running: Service, **query: str) -> tuple[int, ...]:
    shown = running.get("/memory-stats", **query)
    assert tuple(shown) == FIGURES
    assert all(type(count) is int for count in shown.values())
    return tuple(shown.values())


def test_a_users_and_a_sessions_figures(offline: Service, user: str) -> None:
    assert figures(offline, user_id=user) == (0,) * 8
    offline.turn("My name is Ada.", user=user, thread="one", wait_for_memory=True)
    offline.turn("Lovely weather today, is it not?", user=user, thread="one", wait_for_memory=True)
    offline.turn("I live in Oslo.", user=user, thread="two", wait_for_memory=True)
    FactsOf(offline, user).put("task", value="pack", scope="thread", thread_id="two")
    assert figures(offline, user_id=user) == (1, 2, 3, 6, 3, 0, 9, 0)
    assert figures(offline, user_id=user, session_id="one") == (1, 1, 2, 4, 0, 0, 4, 0)
    assert figures(offline, user_id=user, session_id="two") == (1, 1, 1, 2, 1, 0, 3, 0)
    assert figures(offline, user_id=user, session_id="three") == (0,) * 8
    assert figures(offline, user_id=f"{user}-other") == (0,) * 8


@pytest.mark.parametrize(
    ("query", "named"),
    [({"session_id": "one"}, "user_id"), ({"user_id": "no one"}, "user_id"), ({"session_id": "a/b"}, "session_id")],
)
def test_wrong_requests_are_refused(offline: Service, query: dict[str, str], named: str) -> None:
    assert fields(offline.http.get("/memory-stats", params=query)) == [named]


def test_the_whole_services_figures(tmp_path: Path) -> None:
    with service(tmp_path) as running:
        assert figures(running) == (0,) * 8
        running.turn("My name is Ada.", wait_for_memory=True)
        running.turn("My name is Bob.", user="bob", wait_for_memory=True)
        FactsOf(running, None).put("motto", value="be kind")
        assert figures(running) == (2, 2, 2, 4, 3, 0, 7, 0)
        assert running.http.delete("/api/threads/t1", params={"user_id": "bob"}).status_code == 204
        assert figures(running) == (2, 1, 1, 2, 3, 0, 5, 0)
        assert figures(running, user_id="bob") == (1, 0, 0, 0, 1, 0, 1, 0)
