"""Settings of recall are the defaults of their fields on every door; a request goes before them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from recollect.memory.values.errors import ConfigurationError
from recollect.settings import load_settings
from tests.service.support.running import Service, service

SETTINGS = {
    "MEMORY_SCOPE": "thread",
    "MEMORY_RECENCY_WEIGHT": "1.0",
    "MEMORY_MMR_LAMBDA": "1.0",
    "MEMORY_TIME": "filter",
    "MEMORY_TIMEZONE": "Pacific/Kiritimati",
    "MEMORY_FALLBACK_RECENT": "true",
    "MEMORY_SCORE_THRESHOLD": "-1.0",
    "MEMORY_WINDOW": "0",
}
Json = dict[str, Any]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with service(tmp_path_factory.mktemp("settings"), **SETTINGS) as started:
        for thread in ("here", "there"):
            started.turn(f"I drink green tea {thread}.", thread=thread, wait_for_memory=True)
        yield started


def asked(running: Service, door: str, **options: Any) -> list[Json]:
    """Return the hits of a door for "green tea", asked in the thread `here`."""
    post = running.http.post
    if door == "search":
        answer = post("/api/memory/search", json={"user_id": "ada", "query": "green tea", **options})
        return answer.json()["hits"]
    if door == "context":
        body = {"user_id": "ada", "thread_id": "here", "message": "green tea", "memory": options}
        return post("/api/context", json=body).json()["hits"]
    if door == "agent":
        body = {"user_id": "ada", "thread_id": "here", "message": "green tea", "memory": options}
        return post("/api/agent", json=body).json()["memory"]["hits"]
    if door == "v1":
        more = {f"memory_{name}": value for name, value in options.items()}
        body = {"user": "ada", "memory_id": "here", "messages": [{"role": "user", "content": "green tea"}], **more}
        return post("/v1/chat/completions", json=body).json()["memory_hits"]
    call = {"name": "search_memory", "arguments": {"query": "green tea", **options}}
    headers = {"Accept": "application/json, text/event-stream", "X-Memory-User": "ada"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    return json.loads(post("/mcp", json=body, headers=headers).json()["result"]["content"][0]["text"])["hits"]


DOORS = ("search", "context", "v1", "mcp")


@pytest.mark.parametrize("door", [*DOORS, "agent"])
def test_a_setting_is_the_fields_default(running: Service, door: str) -> None:
    found = asked(running, door)
    assert found
    # Recency alone orders them: what was said within minutes scores almost 1.
    assert all(hit["score"] == pytest.approx(1.0, abs=0.01) for hit in found)  # pyright: ignore[reportUnknownMemberType]


@pytest.mark.parametrize("door", ["context", "v1"])
def test_scope_is_the_turns_default_and_a_request_goes_before_it(running: Service, door: str) -> None:
    def said(**options: Any) -> set[str]:
        return {hit["content"] for hit in asked(running, door, **options)}

    elsewhere = "I drink green tea there."
    assert elsewhere not in said()
    assert elsewhere in said(scope="auto")
    assert elsewhere in said(scope="user")


def test_a_requests_field_goes_before_the_setting(running: Service) -> None:
    assert any(hit["score"] != hit["recency"] for hit in asked(running, "search", recency_weight=0.0))
    far = {"query": "lavender hills", "score_threshold": 1.0}
    assert asked(running, "search", **far, fallback_recent=False) == []
    assert asked(running, "search", **far), "the newest, by MEMORY_FALLBACK_RECENT"
    asks: tuple[dict[str, str], ...] = ({}, {"fallback_recent": "0"})
    pages = [running.http.get("/users/ada/search", params={**far, **more}).text for more in asks]
    assert ["for want of a hit" in page for page in pages] == [True, False]


def test_a_time_is_filtered_by_days_of_the_configured_zone(running: Service) -> None:
    query = {"query": "green tea yesterday", "now": "2999-01-01T10:30:00Z", "fallback_recent": False}
    assert asked(running, "search", **query) == []
    assert asked(running, "search", **query, time="boost")


def test_a_wrong_zone_is_refused_at_the_start() -> None:
    with pytest.raises(ConfigurationError, match="MEMORY_TIMEZONE"):
        load_settings(memory_timezone="Mars/Olympus")
