"""Reads exports, and feeds services with them."""

import json
from typing import Any

import httpx

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.running import Service, until
from tests.service.support.scripts import facts

Line = dict[str, Any]


def exported(running: Service, user: str, **query: Any) -> bytes:
    """Return the whole stream."""
    answer = running.http.get(f"/api/users/{user}/export", params=query)
    assert answer.status_code == 200, answer.text
    return answer.content


def lines(content: bytes) -> list[Line]:
    return [json.loads(line) for line in content.decode().split("\n") if line]


def of_type(content: bytes, kind: str) -> list[Line]:
    return [line for line in lines(content) if line["type"] == kind]


def posted(running: Service, content: bytes, **query: str) -> httpx.Response:
    return running.http.post("/api/import", content=content, params=query)


def taken(running: Service, content: bytes) -> tuple[int, int, list[Any]]:
    """Import content that must be accepted; return the numbers of new and known lines, and the failed ones."""
    answer = posted(running, content)
    assert answer.status_code == 200, answer.text
    said = answer.json()
    return said["imported"], said["known"], said["failed"]


def settled(running: Service) -> None:
    """Wait until no update is pending and the index is complete."""

    def is_settled() -> bool:
        report = running.get("/api/admin/doctor")
        return report["healthy"] and not report["totals"]["pending"]

    until(is_settled, 60)


def full_memory(running: Service, user: str, model: FakeOpenAI) -> None:
    """Make a memory with data of every kind: `learning` answers its extractions, two turns are its window."""
    say: dict[str, Any] = {"user": user, "wait_for_memory": True}
    for text in ("My name is Ada", "My city is Paris", "My job is chemistry", "My city is Rome"):
        running.turn(text, thread="t1", metadata={"a.b": [1.5, {"$x": None}]}, **say)
    undone = running.turn("My pet is Felix", thread="T1", **say)
    assert running.http.post(f"/api/turns/{undone['turn_id']}/undo", params={"user_id": user}).is_success
    running.turn("My secret is hush-hush", thread="a:b", **say)
    path = f"/api/users/{user}/facts"
    secret = next(fact for fact in running.get(path)["items"] if fact["key"] == "secret")
    assert running.http.delete(f"{path}/{secret['id']}").status_code == 204
    name = {"value": "Ada L.", "tags": ["who"], "importance": 0.9, "pinned": True}
    assert running.http.put(f"{path}/by-key/name", json=name).is_success
    assert running.http.put(f"{path}/by-key/name", json={"value": "Ada Lovelace"}).is_success
    bounded = {"value": "May", "valid_from": "2026-01-01", "valid_to": "2027-01-01", "scope": "thread"}
    assert running.http.put(f"{path}/by-key/month", json={**bounded, "thread_id": "a:b"}).is_success
    nasty = "---\ntype: fact\n---\n <!-- assistant --> \r\n naïve \U0001f469\u200d\U0001f467 '; --"
    running.turn(f"\n\n{nasty}\n\n", thread="t2", **say)
    summary = {"summary": f"Of {nasty} x"}
    assert running.http.put("/api/threads/t2/summary", params={"user_id": user}, json=summary).is_success
    running.turn("Not remembered.", thread="t2", memory={"enabled": False}, user=user)
    assert running.http.post("/api/threads/T1/archive", params={"user_id": user}).is_success
    settled(running)
    model.fail(400, times=-1, path="chat")
    unanswered = {"user_id": user, "thread_id": "t2", "message": "Never answered.", "turn_id": "open"}
    assert not running.http.post("/api/agent", json=unanswered).is_success
    model.recover()
    past = [
        {"role": "user", "content": "Long ago.", "timestamp": "1999-12-31T23:59:59.999Z", "name": "Ada"},
        {"role": "assistant", "content": f"\u2028{nasty}\x85\ufeff\n", "timestamp": "2000-01-01T00:00:00Z"},
        {"role": "user", "content": "Nobody answered.", "timestamp": "2000-01-01T00:00:00Z", "message_id": "m 1"},
        {"role": "assistant", "content": "I did.", "timestamp": "2000-01-02T00:00:00Z", "metadata": {"k": "v"}},
        {"role": "assistant", "content": "Twice.", "timestamp": "2000-01-02T00:00:00Z"},
    ]
    whole = [{"user_id": user, "thread_id": "past", **line} for line in past]
    note = {"type": "fact", "user_id": user, "value": "Ada keeps bees.", "timestamp": "2001-01-01T00:00:00Z"}
    content = b"".join(json.dumps(line).encode() + b"\n" for line in [*whole, note])
    assert taken(running, content) == (6, 0, [])
    body = {
        "user_id": user,
        "text": f"# Bees\n\n{nasty} " + "They dance. " * 2_000,
        "domain": "garden",
        "source": "s:1",
    }
    for document in (body, {"user_id": user, "text": "Short.\n", "title": "A note", "metadata": {"a.b": [1]}}):
        made = running.http.post("/api/documents", json=document)
        assert made.is_success, made.text
        path = f"/api/threads/t9/documents/{made.json()['id']}"
        assert running.http.put(path, params={"user_id": user}).is_success
    settled(running)
    assert facts(running, user=user)["city"] == "Rome"
