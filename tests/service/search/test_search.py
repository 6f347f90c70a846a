from pathlib import Path
from typing import Any

import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.commands import recollect
from tests.service.support.lessons import add, teach
from tests.service.support.running import Service, model_settings, service, until
from tests.service.support.scripts import facts
from tests.service.support.shapes import HIT, check, fields, refused


def search(running: Service, user: str, query: str, **more: Any) -> list[dict[str, Any]]:
    body = {"user_id": user, "query": query, **more}
    answer = running.http.post("/api/memory/search", json=body)
    assert answer.status_code == 200, answer.text
    shown = answer.json()
    assert set(shown) == {"hits", "took_ms"}
    assert shown["took_ms"] > 0
    for hit in shown["hits"]:
        check(HIT, hit)
    found: list[dict[str, Any]] = shown["hits"]
    return found


def test_messages_facts_and_summaries_are_found(offline: Service, user: str) -> None:
    offline.turn("I work as a nurse in Bergen.", user=user, thread="job", wait_for_memory=True)
    offline.turn("I like strong tea.", user=user, thread="tea", wait_for_memory=True)
    offline.http.post("/api/threads/job/archive", params={"user_id": user})
    found = search(offline, user, "nurse", top_k=20)
    kinds = {hit["kind"] for hit in found}
    assert kinds == {"episode", "fact", "summary"}
    assert [hit["score"] for hit in found] == sorted((hit["score"] for hit in found), reverse=True)
    summary = next(hit for hit in found if hit["kind"] == "summary")
    assert (summary["thread_id"], summary["turn_id"]) == ("job", None)
    assert "nurse" in summary["content"]
    for kind in kinds:
        assert {hit["kind"] for hit in search(offline, user, "nurse", kinds=[kind])} == {kind}
    assert {hit["thread_id"] for hit in search(offline, user, "tea", thread_id="job", score_threshold=-1.0)} == {"job"}
    assert search(offline, user, "nurse", kinds=[]) == []
    assert search(offline, user, "nurse", top_k=0) == []
    assert len(search(offline, user, "nurse", top_k=1)) == 1
    assert search(offline, f"{user}-other", "nurse", score_threshold=-1.0) == []


def test_only_facts_that_hold_now_are_found(served: Service, model: FakeOpenAI, user: str) -> None:
    later = add("Bergen", key="city") | {"decision": "update"}
    past = "I went skiing from 2001 until 2002."
    ended = add("skiing", key="sport", evidence=past, valid_from="2001", valid_to="2002")
    teach(model, {"Oslo city.": [add("Oslo", key="city")], "Bergen city.": [later], past: [ended]})
    for message in ("Oslo city.", "Bergen city.", past):
        served.turn(message, user=user, wait_for_memory=True)
    assert facts(served, user=user)["city"] == "Bergen"
    found = search(served, user, "city", kinds=["fact"], top_k=50, score_threshold=-1.0)
    assert [hit["content"] for hit in found] == ["The user's city is Bergen."]


def test_the_weights_are_those_of_recall(offline: Service, user: str) -> None:
    for text in ("Tea one.", "Tea two.", "Tea three."):
        offline.turn(text, user=user, wait_for_memory=True)
    plain = search(offline, user, "Tea one.", kinds=["episode"])
    assert plain[0]["content"] == "Tea one."
    weighted = search(offline, user, "Tea one.", kinds=["episode"], recency_weight=1.0)
    assert all(hit["score"] == hit["recency"] for hit in weighted)
    various = search(offline, user, "Tea one.", kinds=["episode"], mmr_lambda=0.5, top_k=2)
    assert various[0]["content"] == "Tea one."
    assert search(offline, user, "Tea one.", score_threshold=1.0, kinds=["episode"]) == plain[:1]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"query": ""}, "query"),
        ({"query": "x" * 200_001}, "query"),
        ({"query": "a\x00b"}, "query"),
        ({"query": None}, "query"),
        ({"user_id": "a b"}, "user_id"),
        ({"user_id": "*"}, "user_id"),
        ({"thread_id": ""}, "thread_id"),
        ({"top_k": 51}, "top_k"),
        ({"top_k": "5"}, "top_k"),
        ({"score_threshold": 2}, "score_threshold"),
        ({"recency_weight": -0.1}, "recency_weight"),
        ({"mmr_lambda": True}, "mmr_lambda"),
        ({"kinds": ["dream"]}, "kinds.0"),
        ({"filter": {}}, "filter"),
    ],
)
def test_what_is_wrong_is_named(offline: Service, user: str, changes: dict[str, Any], field: str) -> None:
    answer = offline.http.post("/api/memory/search", json={"user_id": user, "query": "tea", **changes})
    assert fields(answer) == [field]


def test_a_long_query_is_searched(offline: Service, user: str) -> None:
    offline.turn("I like strong tea.", user=user, wait_for_memory=True)
    assert search(offline, user, "strong tea " * 2_900, score_threshold=-1.0)


def test_four_memories_beside_three_turns_are_all_given(offline: Service, user: str) -> None:
    notes = ["Ada plays chess.", "Ada owns a boat.", "Ada paints birds.", "Ada bakes bread."]
    for note in notes:
        offline.http.post("/api/memory", json={"user_id": user, "content": note}).raise_for_status()
    for message in ("Hello.", "How are you?", "Good to hear."):
        offline.turn(message, user=user, wait_for_memory=True)
    asked = {"user_id": user, "thread_id": "t1", "message": "zebra quux"}
    hits = offline.http.post("/api/context", json=asked).json()["hits"]
    assert sorted(hit["content"] for hit in hits) == sorted(notes)


def test_four_memories_beside_a_long_document_are_all_given(offline: Service, user: str) -> None:
    notes = ["Ada plays chess.", "Ada owns a boat.", "Ada paints birds.", "Ada bakes bread."]
    for note in notes:
        offline.http.post("/api/memory", json={"user_id": user, "content": note}).raise_for_status()
    text = "\n\n".join(f"Passage {number} on steam engines and their boilers. " * 30 for number in range(8))
    made = offline.http.post("/api/documents", json={"user_id": user, "title": "Steam", "text": text}).json()
    path = f"/api/documents/{made['id']}"
    until(lambda: offline.get(path, user_id=user)["status"] == "done")
    until(lambda: sorted(hit["content"] for hit in search(offline, user, "zebra quux")) == sorted(notes))
    asked = {"user_id": user, "query": "steam engines", "top_k": 30}
    steam = offline.http.post("/api/memory/search", json=asked).json()["hits"]
    assert steam[0]["kind"] == "document"
    assert sorted(hit["content"] for hit in steam if hit["kind"] == "fact") == sorted(notes)


def test_for_want_of_a_hit_the_newest_facts_are_given_too(offline: Service, user: str) -> None:
    offline.turn("Hello there.", user=user, wait_for_memory=True)
    offline.http.put(f"/api/users/{user}/facts/by-key/drink", json={"value": "tea"})
    far = {"score_threshold": 1.0, "fallback_recent": True}
    newest = search(offline, user, "zebra quux", **far)
    assert [hit["kind"] for hit in newest] == ["fact", "episode", "episode"]
    assert [hit["kind"] for hit in search(offline, user, "zebra quux", **far, kinds=["fact"])] == ["fact"]


def test_with_the_index_down_the_newest_are_searched_by_words(tmp_path: Path, fake: FakeOpenAI) -> None:
    with service(tmp_path, **model_settings(fake.url), QDRANT_URL="http://127.0.0.1:9") as running:
        for message in ("I like strong tea.", "My car is red.", "I LIKE strong tea!"):
            running.turn(message)
        running.http.put("/api/users/ada/facts/by-key/drink", json={"value": "tea", "pinned": True})
        running.turn("I like tea too.", user="bob")
        answer = running.http.post("/api/memory/search", json={"user_id": "ada", "query": "Which tea?"})
        assert (answer.status_code, answer.json()["degraded"]) == (200, ["search_memories"])
        found = [
            (hit["kind"], hit["content"], hit["repeats"] and hit["repeats"]["count"]) for hit in answer.json()["hits"]
        ]
        assert sorted(found, key=str) == [
            ("episode", "I LIKE strong tea!", 2),
            ("fact", "drink: tea", None),
        ]
        only = {"user_id": "ada", "query": "tea", "kinds": ["fact"], "top_k": 1}
        assert [hit["kind"] for hit in running.http.post("/api/memory/search", json=only).json()["hits"]] == ["fact"]
        lacking = {"user_id": "ada", "query": "zebra quux", "kinds": ["episode"]}
        assert running.http.post("/api/memory/search", json=lacking).json()["hits"] == []
        recent = running.http.post("/api/memory/search", json={**lacking, "fallback_recent": True}).json()
        said = [hit["content"] for hit in recent["hits"] if hit["role"] == "user"]
        assert (said, recent["degraded"]) == (["I LIKE strong tea!", "My car is red."], ["search_memories"])
        listed = {"user_id": "ada", "query": "List everything I said about my car or tea", "kinds": ["episode"]}
        covered = running.http.post("/api/memory/search", json={**listed, "explain": True}).json()
        said = [hit["content"] for hit in covered["hits"] if hit["role"] == "user"]
        assert (said, covered["degraded"]) == (["My car is red.", "I LIKE strong tea!"], ["search_memories"])
        assert {"coverage"} == {one["stage"] for one in covered["trace"]} - {"repeat", "rank"}
        printed = recollect(running, "search", "tea", "--user", "ada").stdout
        page = running.http.get("/users/ada/search", params={"query": "tea"}).text
        assert "The index is down" in printed
        assert "The index is down" in page
        turn = running.turn("Which tea?", memory={"window": 0})
        assert (turn["memory"]["hits"], turn["memory"]["degraded"]) == ([], ["search_memories"])


def test_an_embedder_that_is_down_is_said(tmp_path: Path, fake: FakeOpenAI) -> None:
    with service(tmp_path, **model_settings(fake.url, EMBEDDING_MODEL="fake-embed")) as running:
        running.turn("I like strong tea.", wait_for_memory=True)
        fake.fail(503, times=-1, path="embeddings")
        answer = running.http.post("/api/memory/search", json={"user_id": "ada", "query": "tea"})
        refused(answer, 502, "model_unavailable")
