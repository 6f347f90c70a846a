"""Processes with different MEMORY_FILTER_KEYS on one database: both say so, and both answer rightly."""

from pathlib import Path
from typing import Any
from uuid import uuid4

from pymongo import MongoClient

from tests.service.support.running import Service, service, until

QUERY = {"user_id": "ada", "query": "launch", "kinds": ["fact"], "score_threshold": -1.0}


def warnings(running: Service) -> str:
    return " ".join(running.get("/health")["warnings"])


def found(running: Service, **asked: Any) -> list[str]:
    answer = running.http.post("/api/memory/search", json={**QUERY, "filter": asked})
    assert answer.status_code == 200, answer.text
    assert answer.json()["filter"] == {"complete": True}
    return [hit["content"] for hit in answer.json()["hits"]]


def told(running: Service, key: str, **metadata: Any) -> None:
    body = {"value": "launch", "metadata": metadata}
    assert running.http.put(f"/api/users/ada/facts/by-key/{key}", json=body).status_code == 200


def test_the_process_that_started_last_has_its_keys_and_both_warn_once(tmp_path: Path, mongodb_url: str) -> None:
    name = f"recollect_test_{uuid4().hex[:12]}"
    shared = {"MONGODB_URL": mongodb_url, "MONGODB_DATABASE": name, "SWEEP_SECONDS": "0.2"}
    for process in ("first", "last"):
        (tmp_path / process).mkdir()
    try:
        with service(tmp_path / "first", MEMORY_FILTER_KEYS="project:keyword", **shared) as first:
            told(first, "a", project="apollo", priority=1)
            with service(tmp_path / "last", MEMORY_FILTER_KEYS="priority:integer", **shared) as last:
                until(lambda: "priority:integer in a process that started later" in warnings(first), 20)
                until(lambda: "project:keyword in a process beside this one" in warnings(last), 20)
                told(first, "b", project="apollo", priority=2)
                told(last, "c", project="apollo", priority=3)
                for running in (first, last):
                    assert len(found(running, priority={"gte": 2})) == len(found(running, priority={"gte": 1})) - 1 > 0
                    assert found(running, project="apollo")
                    assert running.log.count("MEMORY_FILTER_KEYS is") == 1
    finally:
        with MongoClient[dict[str, Any]](mongodb_url) as client:
            client.drop_database(name)
