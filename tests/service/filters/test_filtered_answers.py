"""Filters over HTTP: in turns, contexts and searches, in lists and exports, and at the other doors."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.service.support.running import Service, service

Json = dict[str, Any]
APOLLO = {"project": "apollo", "priority": {"gte": 2}}


def say(running: Service, text: str, thread: str, **metadata: Any) -> None:
    running.turn(text, thread=thread, metadata=metadata, wait_for_memory=True)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Provide a service in which one user has said things about two projects; tests only read."""
    with service(tmp_path_factory.mktemp("filtered")) as running:
        say(running, "The launch window is in spring.", "t1", project="apollo", priority=3)
        say(running, "The launch window of the other one is late.", "t2", project="gemini", priority=3)
        say(running, "The launch rehearsal is on Monday.", "t3", project="apollo", priority=1)
        say(running, "The launch needs a crew of three.", "t4", project=["mercury", "apollo"], priority=2)
        for title, project in (("Launch plan", "apollo"), ("Launch budget", "gemini")):
            body = {"user_id": "ada", "title": title, "text": f"{title}: the launch.", "metadata": {"project": project}}
            assert running.http.post("/api/documents", json=body).status_code == 201
        yield running


def search(running: Service, asked: Json, **more: Any) -> Json:
    body = {"user_id": "ada", "query": "launch", "top_k": 50, "score_threshold": -1.0, "filter": asked, **more}
    answer = running.http.post("/api/memory/search", json=body)
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()
    return found


def threads_of(hits: list[Json]) -> set[str]:
    return {hit["thread_id"] for hit in hits}


def test_a_search_finds_what_fulfils_the_filter(filled: Service) -> None:
    found = search(filled, APOLLO, kinds=["episode"])
    assert threads_of(found["hits"]) == {"t1", "t4"}
    assert {hit["role"] for hit in found["hits"]} == {"user"}
    assert found["filter"] == {"complete": True}
    assert threads_of(search(filled, {"project": {"ne": "apollo"}, "role": "user"}, kinds=["episode"])["hits"]) == {
        "t2",
        "t4",
    }
    assert search(filled, {"project": "voyager"})["hits"] == []
    assert {hit["role"] for hit in search(filled, {"role": "assistant"}, kinds=["episode"])["hits"]} == {"assistant"}


def test_documents_and_facts_are_filtered_too(filled: Service) -> None:
    found = search(filled, {"project": "apollo"}, kinds=["document"])["hits"]
    assert {hit["document"]["title"] for hit in found} == {"Launch plan"}
    body = {"value": "astronaut"}
    assert filled.http.put("/api/users/eve/facts/by-key/job", json=body).status_code == 200
    for source, expected in (("manual", 1), ("turn", 0)):
        found = search(filled, {"source": source}, user_id="eve", query="astronaut")["hits"]
        assert len(found) == expected


def test_sessions_neighbours_and_periods_keep_to_the_filter(filled: Service) -> None:
    asked = {"role": "user", "project": "apollo"}
    for more in ({"expand": "thread"}, {"token_budget": 5_000}, {"query": "What did I say today?"}):
        found = search(filled, asked, kinds=["episode"], **more)["hits"]
        assert threads_of(found) == {"t1", "t3", "t4"}
        assert {hit["role"] for hit in found} == {"user"}


def test_a_turn_and_a_context_recall_what_fulfils_the_filter(filled: Service) -> None:
    memory = {"scope": "user", "top_k": 50, "score_threshold": -1.0, "filter": APOLLO, "enabled": True}
    body = {"user_id": "ada", "thread_id": "new", "message": "When is the launch?", "memory": memory}
    context = filled.http.post("/api/context", json=body).json()
    turn = filled.http.post("/api/agent", json={**body, "user_id": "ada", "turn_id": "asked"}).json()
    for hits in (context["hits"], turn["memory"]["hits"]):
        assert threads_of([hit for hit in hits if hit["kind"] == "episode"]) == {"t1", "t4"}
    assert context["filter"] == turn["memory"]["filter"] == {"complete": True}
    assert filled.http.delete("/api/threads/new", params={"user_id": "ada"}).status_code == 204


@pytest.mark.parametrize("top_k", [0, 5])
def test_an_answer_speaks_of_its_filter_where_there_is_nothing_to_search(filled: Service, top_k: int) -> None:
    body = {"user_id": "new", "thread_id": "t", "message": "Hi", "memory": {"top_k": top_k, "filter": APOLLO}}
    context = filled.http.post("/api/context", json=body).json()
    turn = filled.http.post("/api/agent", json={**body, "user_id": f"new{top_k}"}).json()["memory"]
    found = search(filled, APOLLO, user_id="new", top_k=top_k)
    assert context["filter"] == turn["filter"] == found["filter"] == {"complete": True}


def test_openai_clients_filter_by_the_body_or_a_header(filled: Service) -> None:
    body = {"messages": [{"role": "user", "content": "launch"}], "user": "ada", "memory_top_k": 50}
    body = {**body, "memory_score_threshold": -1.0}
    inside = filled.http.post("/v1/chat/completions", json={**body, "memory_filter": APOLLO})
    header = filled.http.post("/v1/chat/completions", json=body, headers={"X-Memory-Filter": json.dumps(APOLLO)})
    for answer in (inside, header):
        assert answer.status_code == 200, answer.text
        said = answer.json()
        hits = [hit["content"] for hit in said["memory_hits"] if hit["role"] == "user"]
        assert sorted(hits) == ["The launch needs a crew of three.", "The launch window is in spring."]
        assert said["memory_filter"] == {"complete": True}


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/api/memory/search", {"query": "x", "filter": {"priority": {"gte": True}}}, "filter.priority.gte"),
        ("/api/memory/search", {"query": "x", "filter": []}, "filter"),
        ("/api/context", {"thread_id": "t", "message": "x", "memory": {"filter": {"a": None}}}, "memory.filter.a"),
        ("/api/agent", {"thread_id": "t", "message": "x", "memory": {"filter": {"a": {}}}}, "memory.filter.a"),
    ],
)
def test_a_bad_filter_is_named_and_nothing_is_stored(filled: Service, path: str, body: Json, field: str) -> None:
    answer = filled.http.post(path, json={"user_id": "ned", **body})
    assert answer.status_code == 422, answer.text
    error = answer.json()["error"]
    assert (error["code"], error["details"][0]["field"]) == ("invalid_request", field)
    assert filled.get("/api/threads", user_id="ned")["items"] == []


def test_a_bad_filter_of_an_openai_client_is_named(filled: Service) -> None:
    body = {"messages": [{"role": "user", "content": "x"}], "user": "ada", "memory_filter": {"a": {"above": 1}}}
    answer = filled.http.post("/v1/chat/completions", json=body)
    assert answer.status_code == 400
    assert "memory_filter" in answer.text


def listed(running: Service, path: str, asked: Json, **query: Any) -> Json:
    found = running.get(path, user_id="ada", filter=json.dumps(asked), **query)
    assert found["filter"] == {"complete": True}
    return found


def test_lists_take_a_filter_in_the_address(filled: Service) -> None:
    threads = listed(filled, "/api/threads", {"project": "apollo"})["items"]
    assert {thread["thread_id"] for thread in threads} == {"t1", "t3", "t4"}
    page = listed(filled, "/api/threads", {"project": "apollo"}, limit=2)
    rest = listed(filled, "/api/threads", {"project": "apollo"}, limit=2, cursor=page["next_cursor"])
    assert [*page["items"], *rest["items"]] == threads
    assert rest["next_cursor"] is None
    messages = listed(filled, "/api/threads/t1/messages", {"role": "user"})["items"]
    assert [message["metadata"] for message in messages] == [{"project": "apollo", "priority": 3}]
    documents = listed(filled, "/api/documents", {"project": {"in": ["apollo"]}})["items"]
    assert [document["title"] for document in documents] == ["Launch plan"]
    answer = filled.http.get("/api/documents", params={"user_id": "ada", "filter": "{"})
    assert answer.json()["error"]["details"][0]["field"] == "filter"


def test_the_list_of_what_a_thread_has_attached_takes_a_filter(filled: Service) -> None:
    for document in filled.get("/api/documents", user_id="ada")["items"]:
        path = f"/api/threads/attached/documents/{document['id']}"
        assert filled.http.put(path, params={"user_id": "ada"}).status_code == 200
    path = "/api/threads/attached/documents"
    assert [one["title"] for one in listed(filled, path, {"project": "apollo"})["items"]] == ["Launch plan"]
    assert len(filled.get(path, user_id="ada")["items"]) == 2
    answer = filled.http.get(path, params={"user_id": "ada", "filter": '{"project": {"above": 1}}'})
    assert answer.json()["error"]["details"][0]["field"] == "filter.project.above"
    assert filled.http.delete("/api/threads/attached", params={"user_id": "ada"}).status_code == 204


def test_pages_of_facts_and_notes_keep_to_the_filter(filled: Service) -> None:
    for number in range(5):
        assert filled.http.post("/api/memory", json={"user_id": "fay", "content": f"Note {number}."}).status_code == 201
    notes = filled.get("/api/memory", user_id="fay")["items"]
    at = notes[2]["created_at"]
    asked = json.dumps({"created_at": {"lte": at}, "source": "manual"})
    for path, ids in (
        ("/api/memory", [note["id"] for note in notes[2:]]),
        ("/api/users/fay/facts", [note["id"] for note in notes[:1:-1]]),
    ):
        query = {"filter": asked, "limit": 2} | ({"user_id": "fay"} if path == "/api/memory" else {})
        page = filled.get(path, **query)
        rest = filled.get(path, cursor=page["next_cursor"], **query)
        assert [one["id"] for one in [*page["items"], *rest["items"]]] == ids
        assert (rest["next_cursor"], rest["filter"]) == (None, {"complete": True})


def test_an_export_with_a_filter_can_be_imported(filled: Service, tmp_path: Path) -> None:
    answer = filled.http.get("/api/users/ada/export", params={"filter": json.dumps({"project": "apollo"})})
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert {line["thread_id"] for line in lines if line["type"] in {"message", "turn"}} == {"t1", "t3", "t4"}
    assert {line["title"] for line in lines if line["type"] == "document"} == {"Launch plan"}
    with service(tmp_path) as other:
        imported = other.http.post("/api/import", content=answer.content)
        assert imported.status_code == 200, imported.text
        assert {one["thread_id"] for one in other.get("/api/threads", user_id="ada")["items"]} == {"t1", "t3", "t4"}
