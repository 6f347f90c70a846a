"""Bounds over HTTP, with tiny settings: what was evicted is gone from lists and search, counted and logged."""

import json
from pathlib import Path

from tests.fakes.openai_server import FakeOpenAI
from tests.service.search.test_search import search
from tests.service.support.running import Service, model_settings, service, until
from tests.service.support.scripts import facts

SWEEP = {"SWEEP_SECONDS": "0.1"}
MOMENT = str(2 / 86_400)  # two seconds, in days


def evicted(running: Service) -> dict[str, float]:
    answer = running.http.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    lines = [line for line in answer.text.splitlines() if line.startswith("recollect_evictions_total{")]
    return {line.split('"')[1]: float(line.rsplit(" ", 1)[1]) for line in lines}


def test_nothing_is_evicted_by_default(offline: Service, user: str) -> None:
    offline.turn("My name is Ada.", user=user, wait_for_memory=True)
    assert evicted(offline) == {
        "fact_age": 0,
        "episode_age": 0,
        "fact_count": 0,
        "episode_count": 0,
        "working_memory": 0,
    }


def test_the_oldest_turns_go_where_a_user_has_too_many(tmp_path: Path) -> None:
    with service(tmp_path, **SWEEP, MAX_EPISODES_PER_USER="4") as running:
        for number in range(5):
            running.turn(f"Message {number} of tea.", thread=f"t{number}", wait_for_memory=True)
        running.turn("Another's message of tea.", user="bob", wait_for_memory=True)
        until(lambda: evicted(running)["episode_count"] == 6)
        assert [thread["thread_id"] for thread in running.get("/api/threads", user_id="ada")["items"]] == ["t4", "t3"]
        hits = search(running, "ada", "Message of tea.", kinds=["episode"], top_k=50, score_threshold=-1.0)
        assert {hit["thread_id"] for hit in hits} == {"t4", "t3"}
        assert len(running.get("/api/threads/t1/messages", user_id="bob")["items"]) == 2
        assert '"reason": "episode_count"' in running.log or "episode_count" in running.log
        assert "of tea" not in running.log


def test_facts_beyond_the_most_go_from_documents_and_index(tmp_path: Path, fake: FakeOpenAI) -> None:
    with service(tmp_path, **model_settings(fake.url), **SWEEP, MAX_FACTS_PER_USER="2") as running:
        for key in ("city", "job", "dog"):
            running.turn(f"my {key} is {key}-value", wait_for_memory=True)
        until(lambda: evicted(running)["fact_count"] == 1)
        assert facts(running) == {"job": "job-value", "dog": "dog-value"}
        hits = search(running, "ada", "The user's city", kinds=["fact"], top_k=50, score_threshold=-1.0)
        assert "city-value" not in json.dumps(hits)
        assert len(hits) == 2


def test_what_is_past_its_age_goes(tmp_path: Path) -> None:
    limits = {"FACT_RETENTION_DAYS": MOMENT, "EPISODE_RETENTION_DAYS": MOMENT}
    with service(tmp_path, **SWEEP, **limits) as running:
        running.turn("My name is Ada.", wait_for_memory=True)
        until(lambda: evicted(running)["fact_age"] == 1 and evicted(running)["episode_age"] == 2)
        assert facts(running) == {}
        assert running.get("/api/threads", user_id="ada")["items"] == []
        assert search(running, "ada", "name Ada", score_threshold=-1.0) == []


def test_a_start_looks_at_everyone(tmp_path: Path) -> None:
    running = Service(tmp_path)
    with running:
        for number in range(3):
            running.turn(f"Message {number}.", wait_for_memory=True)
        running.stop()
    with service(tmp_path, MAX_EPISODES_PER_USER="2") as again:
        until(lambda: evicted(again)["episode_count"] == 4)
        assert len(again.get("/api/threads/t1/messages", user_id="ada")["items"]) == 2
