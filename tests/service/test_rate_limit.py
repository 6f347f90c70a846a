from dataclasses import dataclass
from pathlib import Path

import pytest

from api.rate_limit import MOST_BUCKETS, RateLimit
from tests.service.locked import bearer, made_key
from tests.service.running import service
from tests.service.shapes import refused


@dataclass
class Seconds:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


def test_a_burst_passes_and_then_as_many_as_the_minute_allows(seconds: Seconds) -> None:
    limit = RateLimit(30, 4, monotonic=seconds)
    assert [limit.take("a") for _ in range(6)] == [0, 0, 0, 0, 2, 2]
    seconds.now = 1.9
    assert limit.take("a") == 1
    seconds.now = 2.0
    assert [limit.take("a") for _ in range(2)] == [0, 2]
    seconds.now = 10_000.0
    assert [limit.take("a") for _ in range(5)] == [0, 0, 0, 0, 2], "it never holds more than a burst"


def test_senders_have_buckets_of_their_own(seconds: Seconds) -> None:
    limit = RateLimit(60, 1, monotonic=seconds)
    assert [limit.take(name) for name in ("a", "b", "a", "b")] == [0, 0, 1, 1]


def test_whoever_keeps_asking_waits_no_longer(seconds: Seconds) -> None:
    limit = RateLimit(60, 1, monotonic=seconds)
    limit.take("a")
    for tenth in range(1, 10):
        seconds.now = tenth / 10
        assert limit.take("a") == 1
    seconds.now = 1.0
    assert limit.take("a") == 0


def test_asking_how_long_takes_nothing(seconds: Seconds) -> None:
    limit = RateLimit(1, 1, monotonic=seconds)
    assert [limit.wait("a") for _ in range(3)] == [0, 0, 0]
    assert (limit.take("a"), limit.wait("a")) == (0, 60)
    seconds.now = 30.5
    assert limit.wait("a") == 30


def test_memory_is_bounded_by_dropping_who_asked_least_lately(seconds: Seconds) -> None:
    limit = RateLimit(60, 1, monotonic=seconds)
    limit.take("first")
    limit.take("second")
    for number in range(MOST_BUCKETS - 2):
        limit.take(f"{number}")
    limit.take("first")
    limit.take("one more")
    assert len(limit) == MOST_BUCKETS
    assert limit.wait("first") == 1
    assert limit.wait("second") == 0


def test_whoever_asks_too_often_is_told_how_long_to_wait(tmp_path: Path) -> None:
    with service(tmp_path, AUTH="api_key", RATE_LIMIT_PER_MINUTE="6", RATE_LIMIT_BURST="3") as running:
        ada, service_key = (bearer(made_key(running, role)["key"]) for role in ("user:ada", "service"))
        for _ in range(3):
            assert running.http.get("/api/threads", headers=ada).status_code == 200
        for method, path in (("GET", "/api/threads"), ("POST", "/api/agent"), ("GET", "/nowhere")):
            answer = running.http.request(method, path, headers=ada)
            refused(answer, 429, "rate_limited")
            assert 1 <= int(answer.headers["retry-after"]) <= 10
        chat = running.http.get("/v1/models", headers=ada)
        assert (chat.status_code, chat.json()["error"]["code"]) == (429, "rate_limited")
        assert running.http.get("/api/threads?user_id=ada", headers=service_key).status_code == 200
        for path in ("/health", "/health/ready"):
            assert running.http.get(path, headers=ada).status_code == 200
        statuses = [running.http.get("/api/threads", headers=bearer("wrong")).status_code for _ in range(5)]
        assert statuses == [401, 401, 401, 429, 429]
