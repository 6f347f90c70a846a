"""MEMORY_FILTER_KEYS over HTTP: complete beyond 10,000 items, and filled in behind a service that may be killed."""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.service.support.running import Service, service, until
from tests.service.support.stopped_start import stopped_start

Json = dict[str, Any]
KEYS = "project:keyword,priority:integer,due:datetime,done:boolean,weight:float"
MANY = 10_100
"""So many messages of users; each has a reply."""
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
FIRST = {"project": "mercury"}
"""What the oldest two messages alone fulfil."""
SECRET = "zanzibar-4711"
FILLED = "terms of filters are filled in"


def line(number: int, metadata: Json, *, user: str = "ada", thread: str = "t1") -> Json:
    at = (BEGIN + timedelta(seconds=number)).isoformat()
    said = {"user_id": user, "thread_id": thread, "role": "user", "content": f"launch {number}", "timestamp": at}
    return {**said, "metadata": metadata}


def imported(running: Service, lines: list[Json]) -> None:
    answer = running.http.post("/api/import", content="\n".join(map(json.dumps, lines)), timeout=120)
    assert answer.status_code in {200, 202}, answer.text
    if answer.status_code == 202:
        path = f"/api/import/{answer.json()['import_id']}"
        until(lambda: running.get(path)["status"] == "done", 120)


def found(running: Service, asked: Json, *, user: str = "ada", **more: Any) -> Json:
    body = {"user_id": user, "query": "launch", "top_k": 50, "score_threshold": -1.0, "filter": asked, **more}
    answer = running.http.post("/api/memory/search", json=body)
    assert answer.status_code == 200, answer.text
    shown: Json = answer.json()
    return shown


def contents(shown: Json) -> list[str]:
    return sorted(hit["content"] for hit in shown["hits"])


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Provide a service with many messages of one user, which was started without keys, and has them now."""
    folder = tmp_path_factory.mktemp("large")
    with service(folder, LOG_FORMAT="json") as running:
        lines = [
            line(
                number,
                {
                    "project": "mercury" if number < 2 else "apollo" if number % 3 else "gemini",
                    "priority": number % 10 if number else "urgent",
                    "due": (BEGIN + timedelta(days=number)).date().isoformat() if number < 10_000 else "some day",
                    "serial": number,
                },
                thread=f"t{number % 3}",
            )
            for number in range(MANY)
        ]
        imported(running, lines)
        shown = found(running, FIRST)
        assert (shown["hits"], shown["filter"]) == ([], {"complete": False})
    with service(folder, MEMORY_FILTER_KEYS=KEYS) as running:
        until(lambda: found(running, FIRST)["filter"] == {"complete": True}, 120)
        yield running


@pytest.mark.slow
def test_declared_keys_and_reserved_names_are_complete_beyond_the_newest_items(large: Service) -> None:
    assert contents(found(large, FIRST)) == ["launch 0", "launch 1"]
    for asked, expected in (
        ({**FIRST, "role": "user", "created_at": {"lt": "2026-01-01T00:00:01Z"}}, ["launch 0"]),
        ({**FIRST, "priority": {"gte": 1}}, ["launch 1"]),
        ({**FIRST, "priority": "urgent"}, ["launch 0"]),
        ({**FIRST, "priority": {"ne": 1}}, ["launch 0"]),
        ({"project": {"gt": "gemini"}, "not": {"priority": {"in": [1, 2]}}}, ["launch 0"]),
        ({"due": {"lte": "2026-01-02T00:00:00Z"}}, ["launch 0", "launch 1"]),
        ({"role": "assistant"}, []),
    ):
        shown = found(large, asked)
        assert (contents(shown), shown["filter"]) == (expected, {"complete": True}), asked


@pytest.mark.slow
def test_a_range_that_most_items_fulfil_is_complete_too(large: Service) -> None:
    shown = found(large, {"due": {"gte": "2026-01-02"}, "thread_id": "t1"})
    assert (len(shown["hits"]), shown["filter"]) == (50, {"complete": True})


@pytest.mark.slow
def test_undeclared_keys_stay_incomplete_and_declared_ones_narrow_what_is_looked_at(large: Service) -> None:
    assert found(large, {"serial": 1})["filter"] == {"complete": False}
    shown = found(large, {**FIRST, "serial": 1})
    assert (contents(shown), shown["filter"]) == (["launch 1"], {"complete": True})


@pytest.mark.slow
def test_turns_contexts_lists_and_exports_are_complete_too(large: Service) -> None:
    memory = {"scope": "user", "filter": FIRST, "score_threshold": -1.0}
    body = {"user_id": "ada", "thread_id": "new", "message": "launch", "memory": memory}
    context = large.http.post("/api/context", json=body).json()
    turn = large.http.post("/api/agent", json={**body, "wait_for_memory": True}).json()["memory"]
    for said in (context, turn):
        assert (contents(said), said["filter"]) == (["launch 0", "launch 1"], {"complete": True})
    query = {"user_id": "ada", "filter": json.dumps(FIRST)}
    threads = large.get("/api/threads", **query)
    assert (sorted(one["thread_id"] for one in threads["items"]), threads["filter"]["complete"]) == (["t0", "t1"], True)
    messages = large.get("/api/threads/t1/messages", **query)
    assert ([one["content"] for one in messages["items"]], messages["filter"]["complete"]) == (["launch 1"], True)
    lines = large.http.get("/api/users/ada/export", params={"filter": json.dumps(FIRST)}).text.splitlines()
    assert {"launch 0", "launch 1"} <= {json.loads(one).get("content") for one in lines}


WALKED: tuple[Json, ...] = (
    {"project": "apollo"},
    {"project": {"ne": "apollo"}, "priority": {"lt": 3}},
    {"priority": {"gte": 2}, "or": [{"due": {"gte": "2026-01-03"}}, {"done": True}]},
    {"not": {"weight": {"gt": 0.5}}, "role": "user"},
    {"priority": "high"},
)


def walked(running: Service) -> list[tuple[list[str], Json]]:
    """Return what each filter finds, and what the answer says of it, by searching and in the lists."""
    shown = [found(running, asked) for asked in WALKED]
    lists = [
        running.get(path, user_id="ada", filter=json.dumps(asked), limit=200)
        for asked in WALKED
        for path in ("/api/threads/t1/messages", "/api/threads", "/api/users/ada/facts", "/api/documents")
    ]
    named = [[str(one.get("id") or one.get("thread_id")) for one in page["items"]] for page in lists]
    return [(contents(one), one["filter"]) for one in shown] + [
        (ids, page["filter"]) for ids, page in zip(named, lists, strict=True)
    ]


def test_answers_are_equal_before_during_and_after_a_change_and_across_kills(tmp_path: Path) -> None:
    with service(tmp_path) as running:
        values: list[Any] = [1, 2.5, "high", [1, 3], [], None, True]
        imported(
            running,
            [
                line(
                    number,
                    {
                        "project": ("apollo", "gemini", ["apollo", "x"])[number % 3],
                        "priority": values[number % 7],
                        "due": f"2026-01-0{1 + number % 9}",
                        "done": number % 2 == 0,
                        "weight": number / 40,
                    },
                )
                for number in range(40)
            ],
        )
        for number in range(3):
            body = {"value": f"v{number}", "metadata": {"project": "apollo", "priority": number}}
            assert running.http.put(f"/api/users/ada/facts/by-key/k{number}", json=body).status_code == 200
        text = {"user_id": "ada", "title": "Plan", "text": "The launch.", "metadata": {"project": "apollo"}}
        assert running.http.post("/api/documents", json=text).status_code == 201
        before = walked(running)
    for seconds in (0.0, 0.1):
        with service(tmp_path, MEMORY_FILTER_KEYS=KEYS) as running:
            assert walked(running) == before
            time.sleep(seconds)  # the moment of the kill is what this varies
            running.kill()
    for number, keys in enumerate((KEYS, "priority:integer,project:float")):
        with service(tmp_path, MEMORY_FILTER_KEYS=keys) as running:
            assert walked(running) == before
            until(lambda running=running, number=number: running.log.count(FILLED) > number)
            assert walked(running) == before
            late = {"project": "apollo", "priority": 2, "due": "2026-01-05"}
            running.turn("late", thread="late", metadata=late, wait_for_memory=True)
            assert "late" in contents(found(running, {"due": "2026-01-05"}, kinds=["episode"]))
            assert running.http.delete("/api/threads/late", params={"user_id": "ada"}).status_code == 204
            assert walked(running) == before


def test_a_bad_entry_ends_the_start_with_a_sentence_that_names_it(tmp_path: Path) -> None:
    said = stopped_start(tmp_path, MEMORY_FILTER_KEYS="project:keyword,priority:number")
    assert "MEMORY_FILTER_KEYS: 'priority:number' must be a key and one of the types keyword, integer" in said


def test_terms_leave_the_files_with_what_they_are_of(tmp_path: Path) -> None:
    def is_held() -> bool:
        try:
            files = [file for file in (tmp_path / "data").rglob("*") if file.is_file()]
            return any(SECRET.encode() in file.read_bytes() for file in files)
        except FileNotFoundError:  # old files are just being removed
            return True

    with service(tmp_path, MEMORY_FILTER_KEYS="tag:keyword", INDEX_VACUUM_SECONDS="0.5") as running:
        path = "/api/users/ada/facts/by-key/city"
        fact = running.http.put(path, json={"value": "Oslo", "metadata": {"tag": SECRET}}).json()
        until(lambda: bool(found(running, {"tag": SECRET}, kinds=["fact"], query="Oslo")["hits"]))
        assert is_held()
        edited = running.http.patch(f"/api/users/ada/facts/{fact['id']}", json={"metadata": {"tag": "other"}})
        assert edited.status_code == 200
        assert found(running, {"tag": SECRET}, kinds=["fact"], query="Oslo")["hits"] == []
        assert running.http.delete(f"/api/users/ada/facts/{fact['id']}").status_code == 204
        until(lambda: not is_held())
        running.turn("Hello.", metadata={"tag": SECRET}, wait_for_memory=True)
        assert len(found(running, {"tag": SECRET}, kinds=["episode"])["hits"]) == 1
        exported = running.http.get("/api/users/ada/export").content
        assert running.http.delete("/api/users/ada").status_code == 200
        assert not is_held()
        assert running.http.post("/api/import", content=exported).status_code == 200
        assert len(found(running, {"tag": SECRET}, kinds=["episode"])["hits"]) == 1
