"""A key that is bound to an agent writes that agent's label, and sees what has it, at every door."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.service.support.commands import recollect
from tests.service.support.locked import bearer, caller, key_caller, owner_token
from tests.service.support.running import Service, service
from tests.service.support.shapes import fields, refused
from tests.service.support.visitor import Visitor

Json = dict[str, Any]
ADA = {"user_id": "ada"}


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with service(tmp_path_factory.mktemp("agents"), AUTH="api_key") as running:
        yield running


@pytest.fixture(scope="module")
def agent(locked: Service) -> Iterator[httpx.Client]:
    """Yield the client of an agent's key, made at the terminal."""
    made = recollect(locked, "keys", "create", "--agent", "support")
    assert made.returncode == 0, made.stderr
    with caller(locked, made.stdout.strip()) as client:
        yield client


@pytest.fixture(scope="module")
def anyone(locked: Service) -> Iterator[httpx.Client]:
    """Yield the client of a key without an agent, whose user has told another agent something."""
    with key_caller(locked, "service") as client:
        body = {**ADA, "thread_id": "t1", "message": "I work as a nurse.", "agent_id": "sales", "wait_for_memory": True}
        assert client.post("/api/agent", json=body).status_code == 200
        document = {**ADA, "text": "Rates for nurses.", "agent_id": "sales"}
        assert client.post("/api/documents", json=document).status_code == 201
        yield client


def done(answer: httpx.Response) -> Json:
    assert answer.status_code in {200, 201}, answer.text
    said: Json = answer.json()
    return said


def test_what_another_agent_was_told_is_out_of_sight(agent: httpx.Client, anyone: httpx.Client) -> None:
    turn = done(anyone.get("/api/threads/t1/messages", params=ADA))["items"][0]["turn_id"]
    (fact,) = done(anyone.get("/api/users/ada/facts"))["items"]
    (document,) = done(anyone.get("/api/documents", params=ADA))["items"]
    assert fact["agent_id"] == document["agent_id"] == "sales"
    for path, shown in (("/api/threads", "items"), ("/api/threads/t1/messages", "items"), ("/api/documents", "items")):
        assert done(agent.get(path, params=ADA))[shown] == []
    known = done(agent.get("/api/users/ada/facts"))
    assert (known["items"], known["facts"]) == ([], {})
    for path in (f"/api/turns/{turn}", f"/api/documents/{document['id']}", f"/api/memory/{fact['id']}"):
        refused(agent.get(path, params=ADA), 404, "not_found")
    for method in ("GET", "PATCH", "DELETE"):
        edit = {"value": "pilot"} if method == "PATCH" else None
        refused(agent.request(method, f"/api/users/ada/facts/{fact['id']}", json=edit), 404, "not_found")
    assert agent.get("/api/users/ada/export").text == ""
    body = {**ADA, "query": "nurse", "score_threshold": -1.0, "top_k": 50}
    assert done(agent.post("/api/memory/search", json=body))["hits"] == []
    context = done(agent.post("/api/context", json={**ADA, "thread_id": "t1", "message": "What is my job?"}))
    assert (context["window"], context["facts"], context["hits"]) == ([], {}, [])
    asked = {"filter": json.dumps({"agent_id": "sales"})}
    assert done(agent.get("/api/users/ada/facts", params=asked))["items"] == []
    call: Json = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_facts", "arguments": {}}}
    headers = {"X-Memory-User": "ada", "Accept": "application/json, text/event-stream"}
    assert "nurse" not in agent.post("/mcp", json=call, headers=headers).text
    assert "nurse" in anyone.post("/mcp", json=call, headers=headers).text


def test_what_it_writes_has_its_label_at_every_door(agent: httpx.Client, anyone: httpx.Client) -> None:
    eve = {"user_id": "eve"}
    said = {**eve, "thread_id": "t1", "message": "I like jazz.", "wait_for_memory": True}
    done(agent.post("/api/agent", json=said))
    exchange = {**eve, "thread_id": "t2", "user": {"content": "I like tea."}, "wait_for_memory": True}
    done(agent.post("/api/exchanges", json=exchange))
    chat = {"messages": [{"role": "user", "content": "I like rain."}], "user": "eve", "memory_id": "t3"}
    done(agent.post("/v1/chat/completions", json=chat))
    line = {**eve, "thread_id": "t4", "role": "user", "content": "I like snow.", "timestamp": "2026-01-01T00:00:00Z"}
    assert done(agent.post("/api/import", content=json.dumps(line)))["failed"] == []
    assert done(agent.put("/api/users/eve/facts/by-key/city", json={"value": "Oslo"}))["agent_id"] == "support"
    assert done(agent.post("/api/memory", json={**eve, "content": "Eve has a dog."}))["agent_id"] == "support"
    assert done(agent.post("/api/documents", json={**eve, "text": "On jazz."}))["agent_id"] == "support"
    for thread in ("t1", "t2", "t3", "t4"):
        messages = done(anyone.get(f"/api/threads/{thread}/messages", params=eve))["items"]
        assert {message["agent_id"] for message in messages} == {"support"}, thread
    assert {fact["agent_id"] for fact in done(anyone.get("/api/users/eve/facts"))["items"]} == {"support"}
    found = done(agent.post("/api/memory/search", json={**eve, "query": "jazz", "score_threshold": -1.0}))
    assert {"I like jazz.", "On jazz."} <= {hit["content"] for hit in found["hits"]}


def test_another_agents_label_is_refused(agent: httpx.Client) -> None:
    other = {**ADA, "agent_id": "sales"}
    assert fields(agent.post("/api/agent", json={**other, "thread_id": "t1", "message": "Hi."})) == ["agent_id"]
    assert fields(agent.post("/api/memory", json={**other, "content": "Ada flies."})) == ["agent_id"]
    assert fields(agent.post("/api/documents", json={**other, "text": "On flying."})) == ["agent_id"]
    assert fields(agent.post("/api/memory/add", json={**other, "content": "I fly."})) == ["agent_id"]
    message = {**other, "role": "user", "content": "I fly."}
    assert fields(agent.post("/api/threads/t1/messages", json=message)) == ["agent_id"]
    chat = {"user": "ada", "messages": [{"role": "user", "content": "Hi"}], "memory_agent_id": "sales"}
    refusal = agent.post("/v1/chat/completions", json=chat)
    assert (refusal.status_code, refusal.json()["error"]["param"]) == (400, "memory_agent_id")


def test_keys_name_their_agent(locked: Service) -> None:
    owner = bearer(owner_token(locked))
    body = {"role": "user:zoe", "agent_id": "support"}
    made = done(locked.http.post("/api/admin/keys", json=body, headers=owner))
    assert (made["role"], made["agent_id"]) == ("user:zoe", "support")
    wrong = locked.http.post("/api/admin/keys", json={"role": "service", "agent_id": "a b"}, headers=owner)
    assert fields(wrong) == ["agent_id"]
    assert recollect(locked, "keys", "create").returncode == 2
    with Visitor(locked) as visitor:
        assert visitor.sign_in(made["key"]).status_code == 403
