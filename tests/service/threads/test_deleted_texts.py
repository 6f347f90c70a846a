"""The text of a deleted thread or document is in no other turn's record, and leaves the index's files in time."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.service.support.running import Service, service, until

EVERYTHING = {"scope": "user", "window": 0, "top_k": 20, "score_threshold": -1}


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Service]:
    with service(tmp_path, INDEX_VACUUM_SECONDS="0.5") as started:
        yield started


def hits_of(turn: dict[str, Any]) -> list[dict[str, Any]]:
    hits: list[dict[str, Any]] = turn["memory"]["hits"]
    return hits


def in_index(running: Service, word: str) -> bool:
    """Tell whether a file of the index holds the word, or files are being removed just now."""
    try:
        files = [path for path in (running.data_dir / "index").rglob("*") if path.is_file()]
        return any(word.encode() in path.read_bytes() for path in files)
    except FileNotFoundError:
        return True


def test_deleted_texts_are_in_no_record_and_leave_the_files(running: Service) -> None:
    running.turn("The concert by heliotrope was loud, was it not? " + "la " * 2_000, thread="t1", wait_for_memory=True)
    document = {"user_id": "ada", "text": "All about marzipan and its makers.", "title": "Sweet marzipan"}
    made = running.http.post("/api/documents", json=document).json()
    for user_id in ("ada", "bob"):
        # In its thread alone: a reply that quotes another thread's message stays with the reply's own.
        here = {"scope": "thread"}
        running.turn(
            "Which concert was loud?", user=user_id, thread="t2", turn_id="kept", memory=here, wait_for_memory=True
        )
    asked = running.turn("marzipan concert", thread="t3", turn_id="asked", memory=EVERYTHING, wait_for_memory=True)
    told = [hit for hit in hits_of(asked) if hit["thread_id"] == "t1"]
    assert "heliotrope" in json.dumps(told)
    assert "Sweet marzipan" in json.dumps(hits_of(asked))
    stored = running.get("/api/turns/asked", user_id="ada")
    assert max(len(hit["content"]) for hit in hits_of(stored)) == 2_000
    assert len(hits_of(stored)) == len(hits_of(asked))

    assert running.http.delete("/api/threads/t1?user_id=ada").is_success
    assert running.http.delete(f"/api/documents/{made['id']}?user_id=ada").is_success
    stored = running.get("/api/turns/asked", user_id="ada")
    assert "heliotrope" not in json.dumps(stored)
    assert "Sweet" not in json.dumps(stored)
    assert [hit["id"] for hit in hits_of(stored)] == [hit["id"] for hit in hits_of(asked)]
    assert all(hit["content"] == "" for hit in hits_of(stored) if hit["thread_id"] == "t1" or hit["kind"] == "document")
    assert any(hit["content"] for hit in hits_of(stored)), "other hits stay as they were"
    exported = running.http.get("/api/users/ada/export").text
    assert "heliotrope" not in exported
    assert "Sweet" not in exported

    until(lambda: not in_index(running, "heliotrope") and not in_index(running, "its makers"))
    assert running.get("/api/admin/doctor")["healthy"]


def test_a_forgotten_fact_leaves_the_files(running: Service) -> None:
    made = running.http.post("/api/memory", json={"user_id": "ada", "content": "Ada hides the heliotrope."}).json()
    assert in_index(running, "heliotrope")
    assert running.http.delete(f"/api/memory/{made['id']}?user_id=ada").is_success
    until(lambda: not in_index(running, "heliotrope"))
