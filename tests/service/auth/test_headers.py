from collections.abc import Iterator

import httpx
import pytest

from tests.service.support.locked import bearer, made_key
from tests.service.support.running import Service, service
from tests.service.support.shapes import refused

APP = "https://app.example"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Yield a service with keys that two pages may call."""
    settings = {"AUTH": "api_key", "CORS_ORIGINS": f"{APP}, http://localhost:3000"}
    with service(tmp_path_factory.mktemp("shared"), **settings) as running:
        yield running


def preflight(running: Service, origin: str, path: str = "/api/agent", **headers: str) -> httpx.Response:
    asked = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type,x-memory-user",
        **headers,
    }
    return running.http.options(path, headers=asked)


def check_headers(answer: httpx.Response, *, policy: str = "default-src 'none'; frame-ancestors 'none'") -> None:
    assert answer.headers.get_list("x-content-type-options") == ["nosniff"]
    assert answer.headers.get_list("referrer-policy") == ["no-referrer"]
    assert answer.headers.get_list("content-security-policy") == [policy]


def test_every_answer_says_that_nothing_runs_and_nothing_is_kept(offline: Service, user: str) -> None:
    body = {"user_id": user, "thread_id": "t1", "message": "Hello."}
    answers = [
        offline.http.post("/api/agent", json=body),
        offline.http.post("/api/agent", json={**body, "stream": True}),
        offline.http.post("/api/agent", content=b"{"),
        offline.http.post("/api/agent", content=b"x" * 1_000_001),
        offline.http.get("/api/threads", params={"user_id": user}),
        offline.http.get("/api/threads/t1/messages", params={"user_id": user, "format": "text"}),
        offline.http.get("/api/turns/none", params={"user_id": user}),
        offline.http.delete("/api/threads/t1", params={"user_id": user}),
        offline.http.get("/v1/models"),
        offline.http.get("/mcp"),
        offline.http.get("/metrics"),
        offline.http.get("/health"),
        offline.http.put("/health"),
        offline.http.get("/nowhere"),
        offline.http.get("/api/threads", headers={"host": "evil.example"}),
        offline.http.get("/api/threads", headers={"origin": "https://evil.example"}),
    ]
    for answer in answers:
        check_headers(answer)
        assert answer.headers["cache-control"].startswith("no-"), answer.request.url
    assert answers[0].headers.get_list("cache-control") == ["no-store"]


def test_the_text_of_the_api_may_be_kept(offline: Service) -> None:
    check_headers(offline.http.get("/openapi.json"))
    assert "cache-control" not in offline.http.get("/openapi.json").headers


def test_no_page_may_read_answers_unless_it_is_named(offline: Service) -> None:
    answer = offline.http.get("/health", headers={"origin": offline.url})
    assert answer.status_code == 200
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert "access-control-allow-origin" not in preflight(offline, offline.url).headers
    refused(preflight(offline, APP), 403, "foreign_origin")


@pytest.mark.parametrize("origin", [APP, "http://localhost:3000"])
def test_a_named_page_may_call_with_a_key(shared: Service, origin: str, user: str) -> None:
    asked = preflight(shared, origin)
    assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (200, origin)
    assert "access-control-allow-credentials" not in asked.headers
    assert "x-memory-user" in asked.headers["access-control-allow-headers"].lower()
    key = made_key(shared, f"user:{user}")["key"]
    answer = shared.http.get("/api/threads", headers={**bearer(key), "Origin": origin})
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, origin)
    check_headers(answer)
    without = shared.http.get("/api/threads", headers={"Origin": origin})
    refused(without, 401, "unauthorized")
    assert without.headers["access-control-allow-origin"] == origin, "so that the page can read why"


@pytest.mark.parametrize(
    "origin", ["https://evil.example", f"{APP}.evil.example", "http://app.example", f"{APP}:8443", "null"]
)
def test_other_pages_may_not(shared: Service, origin: str) -> None:
    refused(preflight(shared, origin), 403, "foreign_origin")
    refused(shared.http.get("/health", headers={"Origin": origin}), 403, "foreign_origin")


def test_a_named_page_cannot_come_under_a_foreign_host(shared: Service) -> None:
    refused(preflight(shared, APP, Host="evil.example"), 421, "foreign_host")
