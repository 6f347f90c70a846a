import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from recollect.api.auth.signing_keys import FRESH_SECONDS, MOST_BYTES, PAUSE_SECONDS, Issuer, read_keys
from recollect.memory.values.errors import IssuerUnavailable
from tests.fakes.issuer import FakeIssuer

ALGORITHMS = ("RS256", "ES256")


@dataclass
class Seconds:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def fake() -> Iterator[FakeIssuer]:
    with FakeIssuer() as made:
        made.add("old", curve=True)
        yield made


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


@pytest.fixture
async def issuer(fake: FakeIssuer, seconds: Seconds) -> AsyncIterator[Issuer]:
    async with httpx.AsyncClient(trust_env=False) as client:
        made = Issuer(client, fake.url, ALGORITHMS, monotonic=seconds)
        yield made
        await made.close()


async def test_a_new_key_is_fetched_when_a_token_names_it(issuer: Issuer, fake: FakeIssuer, seconds: Seconds) -> None:
    assert await issuer.key("old", "ES256")
    fake.add("new", curve=True)
    assert await issuer.key("new", "ES256") is None, "the issuer was asked just now"
    seconds.now += PAUSE_SECONDS
    assert await issuer.key("new", "ES256")
    assert fake.fetches == 2


async def test_many_that_wait_cause_one_fetch(issuer: Issuer, fake: FakeIssuer) -> None:
    found = await asyncio.gather(*(issuer.key("old", "ES256") for _ in range(20)))
    assert all(found)
    assert fake.fetches == 1


async def test_old_keys_are_fetched_anew_behind_the_callers_back(
    issuer: Issuer, fake: FakeIssuer, seconds: Seconds
) -> None:
    assert await issuer.key("old", "ES256")
    fake.published.clear()
    fake.add("new", curve=True)
    seconds.now += FRESH_SECONDS
    assert await issuer.key("old", "ES256"), "nobody waits for it"
    await _settled()
    assert await issuer.key("old", "ES256") is None
    assert await issuer.key("new", "ES256")
    assert fake.fetches == 2


async def test_keys_serve_on_while_the_issuer_is_down(issuer: Issuer, fake: FakeIssuer, seconds: Seconds) -> None:
    assert await issuer.key("old", "ES256")
    fake.status = 503
    for _ in range(3):
        seconds.now += FRESH_SECONDS
        assert await issuer.key("old", "ES256")
        await _settled()
    assert fake.fetches == 4
    with pytest.raises(IssuerUnavailable):
        await issuer.key("new", "ES256")
    fake.status = 200
    fake.add("new", curve=True)
    seconds.now += PAUSE_SECONDS
    assert await issuer.key("new", "ES256")


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"keys": 7}', b"<html>", b'{"keys": []' + b" " * MOST_BYTES + b"}"]
)
async def test_what_is_no_key_set_counts_as_out_of_order(issuer: Issuer, fake: FakeIssuer, body: bytes) -> None:
    fake.body = body
    with pytest.raises(IssuerUnavailable):
        await issuer.key("old", "ES256")


def test_only_public_keys_for_signatures_of_these_algorithms_are_read(fake: FakeIssuer) -> None:
    fake.add("rsa")
    fake.add("other", alg="RS512")
    fake.add("for encryption", use="enc")
    fake.add("for signatures", use="sig", alg="ES256", curve=True)
    broken = [
        None,
        7,
        {},
        {"kty": "oct", "k": "c2VjcmV0", "kid": "s"},
        {"kty": "RSA", "kid": "r"},
        {"kty": "?", "kid": "x"},
    ]
    found = read_keys({"keys": [*broken, *fake.published]}, ALGORITHMS)
    assert set(found) == {("old", "ES256"), ("rsa", "RS256"), ("for signatures", "ES256"), (None, "RS256")}
    assert read_keys({"keys": []}, ALGORITHMS) == {}


async def _settled() -> None:
    """Wait for the fetch that nobody waits for."""
    await asyncio.gather(*(task for task in asyncio.all_tasks() if task.get_name() == "signing-keys"))


@pytest.mark.parametrize(
    "body",
    [b"[" * 400_000, b'{"keys": ' + b"[" * 400_000, b'{"keys": [' * 100_000, b'{"a":' * 100_000],
)
async def test_a_set_that_is_nested_too_deeply_is_none(issuer: Issuer, fake: FakeIssuer, body: bytes) -> None:
    fake.body = body
    with pytest.raises(IssuerUnavailable):
        await issuer.key("old", "ES256")


def test_odd_fields_of_a_key_make_it_none() -> None:
    with FakeIssuer() as good:
        good.add("good", curve=True)
    values: list[Any] = [{}, ["a"], 7, True, None, "", "§", "A" * 100_000]
    odd: list[dict[str, Any]] = [{**good.published[0], "kid": kid} for kid in values[:4]]
    odd += [{**good.published[0], "x": x, "kid": "odd"} for x in values]
    odd += [{"kty": "RSA", "kid": "odd", "n": n, "e": e} for n in values for e in values]
    found = read_keys({"keys": [*odd, *good.published]}, ALGORITHMS)
    assert set(found) == {("good", "ES256"), (None, "ES256")}
