"""Rate limits over processes that share a MongoDB: counted together, and open where it does not answer."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from pymongo import MongoClient

from recollect.api.auth.leased_limit import LEASE_SECONDS, OPEN_SECONDS, LeasedLimit
from recollect.memory.ports.callers.rate_leases import RateLeases
from recollect.memory.stores.mongo import open_mongo_store
from recollect.memory.values.times import from_ms
from tests.service.support.locked import bearer, made_key
from tests.service.support.running import Service, model_settings, service

CLOSED = "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=200"


class Seconds:
    """Stands still until it is moved; also the clock of the processes."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now

    def limit(self, leases: RateLeases, per_minute: int, burst: int) -> LeasedLimit:
        return LeasedLimit(
            leases, "requests", per_minute, burst, clock=lambda: from_ms(int(self.now * 1_000)), monotonic=self
        )


@pytest.fixture
def database(mongodb_url: str) -> Iterator[str]:
    name = f"recollect_test_{uuid4().hex[:12]}"
    yield name
    with MongoClient[dict[str, object]](mongodb_url) as client:
        client.drop_database(name)


@pytest.fixture
async def pair(mongodb_url: str, database: str) -> AsyncGenerator[list[RateLeases]]:
    """Yield the leases of two processes on one database."""
    async with open_mongo_store(mongodb_url, database) as one, open_mongo_store(mongodb_url, database) as other:
        await asyncio.gather(one.ping(), other.ping())  # The first call of a process prepares all collections.
        yield [store.rate_leases for store in (one, other) if store.rate_leases is not None]


async def passed(limits: list[LeasedLimit], each: int, sender: str = "ada") -> int:
    """Send `each` requests to each of the limits at once; return how many pass."""
    waits = await asyncio.gather(*(limit.take(sender) for limit in limits for _ in range(each)))
    return waits.count(0)


async def test_processes_count_together(pair: list[RateLeases]) -> None:
    seconds = Seconds()
    limits = [seconds.limit(leases, 60, 60) for leases in pair for _ in range(2)]
    assert len(limits) == 4
    assert await passed(limits, 60) == 60
    assert await passed(limits, 5) == 0
    assert await passed(limits, 5, "bob") == 20, "each sender has a bucket of its own"
    seconds.now += 30
    assert 27 <= await passed(limits, 60) <= 33, "half a minute's worth"


async def test_what_is_not_used_goes_back(pair: list[RateLeases]) -> None:
    seconds = Seconds()
    one, other = (seconds.limit(leases, 60, 60) for leases in pair)
    assert await passed([one], 1) == 1
    assert await passed([other], 60) == 54, "a lease is a tenth of the limit"
    assert await one.take("ada") == 0, "what it has leased is its own"
    seconds.now += LEASE_SECONDS
    assert await one.take("ada") == 0
    assert await passed([one, other], 60) == 4 + LEASE_SECONDS - 1


async def test_who_is_refused_is_told_when_to_come_again(pair: list[RateLeases]) -> None:
    seconds = Seconds()
    limit = seconds.limit(pair[0], 6, 1)
    assert [await limit.take("ada") for _ in range(3)] == [0, 10, 10]
    seconds.now += 9.5
    assert await limit.take("ada") == 1
    seconds.now += 0.5
    assert await limit.take("ada") == 0


async def test_without_an_answer_requests_pass_and_are_told_of(caplog: pytest.LogCaptureFixture) -> None:
    seconds = Seconds()
    async with open_mongo_store(CLOSED, "recollect_test_nobody") as store:
        assert store.rate_leases is not None
        limit = seconds.limit(store.rate_leases, 6, 1)
        assert not limit.is_open
        with caplog.at_level(logging.WARNING):
            assert await passed([limit], 20) == 20
        assert limit.is_open
        assert limit.uncounted == 20
        said = [getattr(record, "action", None) for record in caplog.records]
        assert said.count("rate_limits_open") == 1, "once, not for each request"
        seconds.now += OPEN_SECONDS
        assert not limit.is_open


def test_two_services_let_a_caller_pass_as_often_as_one(tmp_path: Path, mongodb_url: str, database: str) -> None:
    settings = {"MONGODB_URL": mongodb_url, "MONGODB_DATABASE": database, "AUTH": "api_key"}
    with ExitStack() as stack:
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
        both = [
            stack.enter_context(service(tmp_path / name, **settings, RATE_LIMIT_PER_MINUTE="20"))
            for name in ("one", "two")
        ]
        key = bearer(made_key(both[0], "user:ada")["key"])
        begun = time.monotonic()
        statuses = [each.http.get("/api/threads", headers=key).status_code for _ in range(20) for each in both]
        refilled = (time.monotonic() - begun) * 20 / 60 + 1
    assert set(statuses) == {200, 429}
    assert 18 <= statuses.count(200) <= 20 * 1.1 + refilled


def test_a_service_without_its_store_says_that_it_counts_nobody(tmp_path: Path) -> None:
    settings = model_settings("http://127.0.0.1:9/v1", MONGODB_URL=CLOSED, RATE_LIMIT_PER_MINUTE="2")
    with Service(tmp_path, **settings) as running:
        assert running.get("/health")["warnings"] == warnings_but(running, "Rate limits")
        assert [running.http.get("/docs").status_code for _ in range(6)] == [200] * 6
        (warning,) = [said for said in running.get("/health")["warnings"] if said.startswith("Rate limits")]
        assert "does not answer" in warning
        figures = httpx.get(f"{running.url}/metrics", timeout=30).text
        assert "recollect_rate_limit_uncounted_total 6.0" in figures
        assert "action=rate_limits_open" in running.log


def warnings_but(running: Service, beginning: str) -> list[str]:
    """Return the service's warnings that begin otherwise."""
    said: list[str] = running.get("/health")["warnings"]
    return [each for each in said if not each.startswith(beginning)]
