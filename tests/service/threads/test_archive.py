from pathlib import Path
from typing import Any

import pytest

from tests.fakes.openai_answers import Answer, Body
from tests.fakes.openai_server import FakeOpenAI, is_summary
from tests.service.search.test_search import search
from tests.service.support.running import Service, model_settings, service, until
from tests.service.threads.test_summaries import summarising


def archive(running: Service, user: str = "ada", thread: str = "t1") -> dict[str, Any]:
    answer = running.http.post(f"/api/threads/{thread}/archive", params={"user_id": user})
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


def thread_of(running: Service, user: str = "ada", thread: str = "t1") -> dict[str, Any]:
    return running.get(f"/api/threads/{thread}", user_id=user)


def summaries(running: Service, user: str = "ada") -> list[str]:
    found = search(running, user, "summary", kinds=["summary"], top_k=50, score_threshold=-1.0)
    return [hit["content"] for hit in found]


def test_an_archived_thread_is_listed_readable_and_found_by_meaning(offline: Service, user: str) -> None:
    offline.turn("I plan a trip to Lisbon in May.", user=user, thread="trip", wait_for_memory=True)
    offline.turn("I like strong tea.", user=user, thread="tea", wait_for_memory=True)
    shown = archive(offline, user, "trip")
    assert (shown["archived"], shown["summary_status"], shown["summary_by"]) == (True, "done", "extract")
    assert shown["summary"] == "User: I plan a trip to Lisbon in May."
    assert shown["archived_at"] is not None
    assert shown == thread_of(offline, user, "trip")
    listed = offline.get("/api/threads", user_id=user)["items"]
    assert {thread["thread_id"]: thread["archived"] for thread in listed} == {"trip": True, "tea": False}
    assert len(offline.get("/api/threads/trip/messages", user_id=user)["items"]) == 2
    (hit,) = search(offline, user, "trip to Lisbon", kinds=["summary"])
    assert (hit["content"], hit["thread_id"]) == (shown["summary"], "trip")
    assert archive(offline, user, "trip") == shown


def test_writing_to_an_archived_thread_reopens_it(offline: Service, user: str) -> None:
    offline.turn("I plan a trip to Lisbon.", user=user, wait_for_memory=True)
    archive(offline, user)
    turn = offline.turn("I booked a hotel for 5 nights.", user=user, wait_for_memory=True)
    assert turn["memory"]["window"] == 1
    assert turn["memory"]["summary"] == "User: I plan a trip to Lisbon."
    assert thread_of(offline, user)["archived"] is False
    assert archive(offline, user)["summary"] == "User: I plan a trip to Lisbon.\nUser: I booked a hotel for 5 nights."
    assert len(summaries(offline, user)) == 1


def test_a_person_edits_the_summary_of_an_archived_thread(offline: Service, user: str) -> None:
    offline.turn("I plan a trip to Lisbon.", user=user, wait_for_memory=True)
    archive(offline, user)
    path, query = "/api/threads/t1/summary", {"user_id": user}
    assert offline.http.put(path, params=query, json={"summary": "A trip to Porto."}).status_code == 200
    assert summaries(offline, user) == ["A trip to Porto."]
    assert offline.http.put(path, params=query, json={"summary": None}).status_code == 200
    assert summaries(offline, user) == []


def test_a_model_outage_leaves_it_pending_until_the_model_is_back(tmp_path: Path, fake: FakeOpenAI) -> None:
    down = True

    def flaky(body: Body) -> Answer | None:
        return 503 if down and is_summary(body) else summarising(body)

    fake.on_chat = flaky
    with service(tmp_path, **model_settings(fake.url, SWEEP_SECONDS="0.1")) as running:
        running.turn("apples", wait_for_memory=True)
        shown = archive(running)
        assert (shown["archived"], shown["summary"], shown["summary_status"]) == (True, None, "pending")
        down = False
        until(lambda: thread_of(running)["summary_status"] == "done")
        assert thread_of(running)["summary"] == "They spoke of apples."
        until(lambda: summaries(running) == ["They spoke of apples."])


@pytest.mark.slow
@pytest.mark.parametrize("hanging", [True, False])
def test_a_process_killed_while_it_archives_finishes_at_the_next_start(
    tmp_path: Path, fake: FakeOpenAI, hanging: bool
) -> None:
    """Nothing needs a "recovery" of an unsaved session: what was archived is finished, what was not is still there."""
    fake.on_chat = lambda body: 503 if is_summary(body) and not hanging else summarising(body)
    running = Service(tmp_path, **model_settings(fake.url, MEMORY_WAIT_SECONDS="0.5"))
    with running:
        running.turn("apples")
        until(lambda: running.turn("pears", wait_for_memory=True)["memory"]["update"]["status"] == "done")
        if hanging:
            fake.hang()
        assert archive(running)["summary_status"] == "pending"
        running.kill()
        fake.release()
        fake.on_chat = summarising
        running.start()
        until(lambda: thread_of(running)["summary_status"] == "done")
        shown = thread_of(running)
        assert shown["archived"] is True
        assert shown["summary"].startswith("They spoke of apples, pears")
        until(lambda: summaries(running) == [shown["summary"]])
        assert shown["messages"] == 2 * shown["turns"]


def test_a_thread_past_its_tokens_is_archived_by_itself(tmp_path: Path) -> None:
    settings = {"ARCHIVE_TOKENS": "60", "SUMMARY_EVERY": "0", "SWEEP_SECONDS": "0.1"}
    with service(tmp_path, **settings) as running:
        running.turn("I plan a trip to Lisbon.", wait_for_memory=True)
        assert thread_of(running)["archived"] is False
        running.turn(f"I pack {'socks and shoes ' * 20}.", wait_for_memory=True)
        until(lambda: thread_of(running)["archived"])
        until(lambda: len(summaries(running)) == 1)
        assert thread_of(running)["summary"].startswith("User: I plan a trip to Lisbon.")
        running.turn("I like tea.", wait_for_memory=True)
        assert thread_of(running)["archived"] is False
