"""Metadata and the agent's label of facts, memories, documents and turns: written, filtered, exported, forgotten."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.service.support.running import Service, service, until

Json = dict[str, Any]
METADATA = {"project": "apollo", "priority": 3, "a.b": {"$c": [None, "\u00fc"]}}
SECRET = "heliotrope-marker"


def put(running: Service, user: str, key: str, **fields: Any) -> Json:
    answer = running.http.put(f"/api/users/{user}/facts/by-key/{key}", json=fields)
    assert answer.status_code == 200, answer.text
    fact: Json = answer.json()
    return fact


def write(running: Service, user: str, content: str, **fields: Any) -> Json:
    answer = running.http.post("/api/memory", json={"user_id": user, "content": content, **fields})
    assert answer.status_code == 201, answer.text
    memory: Json = answer.json()
    return memory


def listed(running: Service, path: str, asked: Json, **query: Any) -> list[str]:
    return [item["id"] for item in running.get(path, filter=json.dumps(asked), **query)["items"]]


def test_facts_and_memories_have_metadata_which_filters_see(offline: Service, user: str) -> None:
    city = put(offline, user, "city", value="Oslo", metadata=METADATA)
    note = write(offline, user, "Ada likes rockets.", metadata={"project": "gemini"}, agent_id="support")
    assert (city["metadata"], note["metadata"], note["agent_id"]) == (METADATA, {"project": "gemini"}, "support")
    assert "agent_id" not in city
    facts = f"/api/users/{user}/facts"
    assert listed(offline, facts, {"project": "apollo", "priority": {"gte": 3}}) == [city["id"]]
    assert listed(offline, facts, {"agent_id": "support"}) == [note["id"]]
    assert listed(offline, "/api/memory", {"project": {"ne": "gemini"}}, user_id=user) == []
    for asked, expected in (({"project": "apollo"}, [city["id"]]), ({"agent_id": "support"}, [note["id"]])):
        body = {"user_id": user, "query": "rockets Oslo", "kinds": ["fact"], "score_threshold": -1.0, "filter": asked}
        assert [hit["id"] for hit in offline.http.post("/api/memory/search", json=body).json()["hits"]] == expected


def test_a_change_keeps_the_metadata_until_it_gives_others(offline: Service, user: str) -> None:
    fact = put(offline, user, "city", value="Oslo", metadata=METADATA)
    path = f"/api/users/{user}/facts/{fact['id']}"
    assert offline.http.patch(path, json={"value": "Bergen"}).json()["metadata"] == METADATA
    assert offline.http.patch(path, json={"metadata": {"project": "gemini"}}).json()["metadata"] == {
        "project": "gemini"
    }
    past = [version["metadata"] for version in offline.get(f"{path}/history")["items"]]
    assert past == [METADATA, METADATA, {"project": "gemini"}]


def nested(levels: int, innermost: Json) -> Json:
    for _ in range(levels):
        innermost = {"a": innermost}
    return innermost


@pytest.mark.parametrize("metadata", [nested(19, {"a": 1}), nested(20, {})])
def test_what_a_message_may_have_a_fact_and_an_import_may_have(offline: Service, user: str, metadata: Json) -> None:
    offline.turn("Hello.", user=user, metadata=metadata, wait_for_memory=True)
    assert put(offline, user, "city", value="Oslo", metadata=metadata)["metadata"] == metadata
    exported = offline.http.get(f"/api/users/{user}/export").content
    assert offline.http.delete(f"/api/users/{user}").status_code == 200
    answer = offline.http.post("/api/import", content=exported).json()
    assert (answer["imported"], answer["failed"]) == (4, [])


@pytest.mark.parametrize("metadata", [[], "x", None, {"a": "\x00"}, {"a": "\ud800"}, json.loads("[" * 30 + "]" * 30)])
def test_what_no_store_can_hold_is_refused(offline: Service, user: str, metadata: Any) -> None:
    body = json.dumps({"value": "Oslo", "metadata": metadata})
    answer = offline.http.put(
        f"/api/users/{user}/facts/by-key/city", content=body, headers={"content-type": "application/json"}
    )
    assert answer.status_code == 422
    assert answer.json()["error"]["details"][0]["field"].startswith("metadata")


def test_turns_and_documents_carry_the_label_of_their_agent(offline: Service, user: str) -> None:
    offline.turn("I work as a nurse.", user=user, thread="t1", agent_id="support", wait_for_memory=True)
    offline.turn("I like jazz.", user=user, thread="t1", wait_for_memory=True)
    document = {"user_id": user, "text": "Jazz for nurses.", "agent_id": "support"}
    assert offline.http.post("/api/documents", json=document).json()["agent_id"] == "support"
    messages = offline.get("/api/threads/t1/messages", user_id=user)["items"]
    assert [message.get("agent_id") for message in messages] == ["support", "support", None, None]
    facts = offline.get(f"/api/users/{user}/facts", filter=json.dumps({"agent_id": "support"}))
    assert [fact["key"] for fact in facts["items"]] == ["occupation"]
    body = {"user_id": user, "query": "jazz", "score_threshold": -1.0, "filter": {"agent_id": "support"}, "top_k": 50}
    hits = offline.http.post("/api/memory/search", json=body).json()["hits"]
    assert {hit["kind"] for hit in hits} == {"episode", "fact", "document"}
    assert "I like jazz." not in [hit["content"] for hit in hits]


def test_metadata_and_labels_travel_with_an_export(offline: Service, user: str, tmp_path: Path) -> None:
    put(offline, user, "city", value="Oslo", metadata=METADATA, agent_id="support")
    offline.turn("Hello.", user=user, agent_id="support", metadata={"k": 1}, wait_for_memory=True)
    for form in ("jsonl", "markdown"):
        (tmp_path / form).mkdir()
        exported = offline.http.get(f"/api/users/{user}/export", params={"format": form}).content
        with service(tmp_path / form) as other:
            kind = {"content-type": "application/zip" if form == "markdown" else "application/x-ndjson"}
            imported = other.http.post("/api/import", content=exported, headers=kind)
            assert imported.status_code == 200, imported.text
            until(lambda other=other: bool(other.get(f"/api/users/{user}/facts")["items"]))
            (fact,) = other.get(f"/api/users/{user}/facts", filter=json.dumps({"agent_id": "support"}))["items"]
            assert fact["metadata"] == METADATA
            messages = other.get("/api/threads/t1/messages", user_id=user)["items"]
            assert [message["agent_id"] for message in messages] == ["support", "support"]


def test_lines_of_other_systems_bring_metadata(offline: Service, user: str) -> None:
    line = {"type": "fact", "user_id": user, "value": "likes jazz", "metadata": METADATA, "agent_id": "support"}
    assert offline.http.post("/api/import", content=json.dumps(line)).status_code == 200
    (fact,) = offline.get(f"/api/users/{user}/facts")["items"]
    assert (fact["metadata"], fact["agent_id"]) == (METADATA, "support")
    bad = offline.http.post("/api/import", content=json.dumps({**line, "metadata": [1]}))
    assert "metadata" in bad.text


def test_a_forgotten_facts_metadata_leave_every_file(tmp_path: Path) -> None:
    with service(tmp_path) as running:
        fact = put(running, "ada", "city", value="Oslo", metadata={"tag": SECRET})
        path = f"/api/users/ada/facts/{fact['id']}"
        assert running.http.patch(path, json={"metadata": {"tag": f"{SECRET}-2"}}).status_code == 200
        assert running.http.delete(path).status_code == 204
        assert running.get(path)["metadata"] == {}
        files = [file for file in (tmp_path / "data").rglob("*") if file.is_file()]
        assert [file.name for file in files if SECRET.encode() in file.read_bytes()] == []


def test_the_label_of_an_agent_is_taken_at_every_door_of_turns(offline: Service, user: str) -> None:
    def sent(path: str, body: Json, label: str = "") -> None:
        headers = {"X-Memory-Agent-Id": label} if label else {}
        answer = offline.http.post(path, json={"user_id": user, **body}, headers=headers)
        assert answer.status_code == 200, answer.text

    sent("/api/threads/t1/messages", {"role": "user", "content": "I like jazz.", "agent_id": "one"})
    reply = {"role": "assistant", "content": "Noted."}
    wrong = {"user_id": user, **reply, "agent_id": "other"}
    assert offline.http.post("/api/threads/t1/messages", json=wrong).status_code == 422
    sent("/api/threads/t1/messages", {**reply, "agent_id": "one"})
    sent("/api/memory/add", {"content": "I work as a nurse.", "agent_id": "two"})
    chat: Json = {"user": user, "messages": [{"role": "user", "content": "I like rain."}]}
    sent("/v1/chat/completions", {**chat, "memory_id": "t3", "memory_agent_id": "three"})
    sent("/v1/chat/completions", {**chat, "memory_id": "t4"}, label="four")
    sent("/v1/responses", {"user": user, "input": "I like snow.", "memory_id": "t5", "memory_agent_id": "five"})
    for thread_id, label in (("t1", "one"), ("t3", "three"), ("t4", "four"), ("t5", "five")):
        messages = offline.get(f"/api/threads/{thread_id}/messages", user_id=user)["items"]
        assert [message["agent_id"] for message in messages] == [label] * 2
    assert [len(listed(offline, f"/api/users/{user}/facts", {"agent_id": label})) for label in ("two", "six")] == [1, 0]
