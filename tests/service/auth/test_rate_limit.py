import time
from dataclasses import dataclass
from pathlib import Path

import jwt
import pytest

from recollect.api.auth.rate_limit import MOST_BUCKETS, RateLimit
from tests.service.support.locked import bearer, made_key
from tests.service.support.running import service
from tests.service.support.shapes import refused


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


def test_memory_is_bounded_by_dropping_who_asked_least_lately(seconds: Seconds) -> None:
    limit = RateLimit(60, 1, monotonic=seconds)
    limit.take("first")
    limit.take("second")
    for number in range(MOST_BUCKETS - 2):
        limit.take(f"{number}")
    limit.take("first")
    limit.take("one more")
    assert len(limit) == MOST_BUCKETS
    assert limit.take("first") == 1
    assert limit.take("second") == 0


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


@pytest.mark.slow
def test_wrong_keys_lock_no_valid_one_out_and_failures_alone_are_counted(tmp_path: Path) -> None:
    with service(tmp_path, AUTH="api_key", RATE_LIMIT_PER_MINUTE="6", RATE_LIMIT_BURST="3") as running:
        guessed = [running.http.get("/api/threads", headers=bearer("wrong")) for _ in range(12)]
        refused(guessed[-1], 429, "rate_limited")
        assert 1 <= int(guessed[-1].headers["retry-after"]) <= 10
        assert running.http.get("/docs").status_code == 200, "pages that are open to all have a bucket of their own"
        keys = [bearer(made_key(running, f"user:ada{number}")["key"]) for number in range(5)]
        for fresh in keys:
            assert running.http.get("/api/threads", headers=fresh).status_code == 200, "no key was seen before"
        running.kill()
        running.start()
        for _ in range(3):
            assert running.http.get("/api/threads", headers=keys[0]).status_code == 200
        spent = [running.http.get("/api/threads", headers=keys[0]).status_code for _ in range(2)]
        assert spent == [429, 429]
        guessed = [running.http.get("/api/threads", headers=bearer("wrong")) for _ in range(3)]
        assert [answer.status_code for answer in guessed] == [401, 401, 401], "good ones count for their key alone"


def test_fresh_tokens_pass_beside_forged_ones(tmp_path: Path) -> None:
    secret = "a-secret-of-at-least-32-characters"
    settings = {"AUTH": "jwt", "JWT_SECRET": secret, "RATE_LIMIT_PER_MINUTE": "2"}

    def token(subject: str, *, key: str = secret) -> dict[str, str]:
        return bearer(jwt.encode({"sub": subject, "exp": int(time.time()) + 600}, key, "HS256"))

    with service(tmp_path, **settings) as running:
        forged = token("ada", key=secret[::-1])
        statuses = [running.http.get("/api/threads", headers=forged).status_code for _ in range(4)]
        assert statuses == [401, 401, 429, 429]
        for subject in ("ada", "bob", "eve"):
            assert running.http.get("/api/threads", headers=token(subject)).status_code == 200
