"""The lock by itself, in front of an application that only says who calls: what no test can be on the network."""

import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from recollect.api.auth.admission import Admission
from recollect.api.auth.bearer import bearer_token, is_from_this_machine, sender
from recollect.api.auth.caller import Caller, caller_of
from recollect.api.auth.lock import Lock
from recollect.api.auth.rate_limit import RateLimit
from recollect.api.auth.visits import VisitRules, Visits
from recollect.memory.values.errors import Unauthorized
from tests.service.support.shapes import refused

OWNERS = "the-owners-token"
ADA = {"Authorization": "Bearer adas"}


class Known:
    """Credentials that know three tokens."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def caller(self, token: str) -> Caller:
        self.asked.append(token)
        found = {"adas": Caller("a", "ada"), "services": Caller("s"), "admins": Caller("r", is_admin=True)}.get(token)
        if found is None:
            raise Unauthorized
        return found


async def who(scope: Scope, receive: Receive, send: Send) -> None:
    caller = caller_of(Request(scope).state)
    await JSONResponse([caller.name, caller.user_id, caller.is_admin])(scope, receive, send)


VISITS = Visits(VisitRules())


def locked(admission: Admission, *, own: tuple[str, ...] = ("/",)) -> ASGIApp:
    return Lock(who, admission=lambda: admission, visits=lambda: VISITS, own=own)


async def ask(app: ASGIApp, path: str = "/api/x", *, at: str = "127.0.0.1", **headers: str) -> httpx.Response:
    transport = httpx.ASGITransport(app, client=(at, 1234))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        return await client.get(path, headers=headers)


@pytest.fixture
def known() -> Known:
    return Known()


@pytest.fixture
def admission(known: Known) -> Admission:
    return Admission(known, None, None, owner_token=OWNERS)


@pytest.mark.parametrize("at", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"])
async def test_the_owners_token_opens_from_this_machine(admission: Admission, at: str, known: Known) -> None:
    answer = await ask(locked(admission), at=at, Authorization=f"Bearer {OWNERS}")
    assert answer.json() == ["owner", None, True]
    assert known.asked == []


@pytest.mark.parametrize("at", ["192.0.2.7", "10.0.0.1", "2001:db8::1", "::ffff:192.0.2.7", "testclient", ""])
async def test_the_owners_token_opens_nothing_from_elsewhere(admission: Admission, at: str) -> None:
    forwarded = {"X-Forwarded-For": "127.0.0.1", "Forwarded": "for=127.0.0.1", "X-Real-IP": "127.0.0.1"}
    answer = await ask(locked(admission), at=at, Authorization=f"Bearer {OWNERS}", **forwarded)
    refused(answer, 401, "unauthorized")


async def test_without_auth_anybody_is_the_administrator_whatever_they_show() -> None:
    for limits in (None, RateLimit(60, 20)):
        app = locked(Admission(None, limits, None, owner_token=OWNERS))
        for headers in ({}, {"Authorization": "Bearer x"}, {"Authorization": "Basic x"}):
            assert (await ask(app, **headers)).json() == ["anybody", None, True]


@pytest.mark.parametrize(
    ("shown", "token"),
    [
        ([b"Bearer adas"], b"adas"),
        ([b"bearer  adas "], b"adas"),
        ([b"BEARER a b"], b"a b"),
        ([], None),
        ([b""], None),
        ([b"adas"], None),
        ([b"Bearer"], None),
        ([b"Bearer "], None),
        ([b"Basic adas"], None),
        ([b"Bearer adas", b"Bearer admins"], None),
    ],
)
def test_a_bearer_token_is_shown_once(shown: list[bytes], token: bytes | None) -> None:
    assert bearer_token({"headers": [(b"authorization", value) for value in shown]}) == token


async def test_open_paths_need_no_key_and_tell_no_caller(admission: Admission, known: Known) -> None:
    for path in ("/static/x", "/health", "/health/ready", "/docs", "/redoc", "/openapi.json"):
        assert (await ask(locked(admission), path)).json() == ["nobody", "", False]
    for path in ("/healthy", "/health-x", "/docs/", "/metrics", "/api", "/Health", "/v1/models", "/mcp"):
        refused_at = await ask(locked(admission), path)
        assert (refused_at.status_code, refused_at.headers["www-authenticate"]) == (401, "Bearer"), path
    assert known.asked == []


async def test_a_token_of_odd_bytes_is_refused_like_any_other(admission: Admission, known: Known) -> None:
    app = locked(admission)
    scope: dict[str, Any] = {"type": "http", "path": "/api/x", "headers": [], "client": ("127.0.0.1", 1)}
    for value in (b"Bearer \xff\xfe", b"Bearer \xc3\xa9", b"Bearer " + b"x" * 100_000):
        sent: list[Any] = []

        async def send(message: Any, sent: list[Any] = sent) -> None:
            sent.append(message)

        async def receive() -> Any:
            raise AssertionError("no body is read")

        await app({**scope, "headers": [(b"authorization", value)]}, receive, send)
        assert sent[0]["status"] == 401
    assert len(known.asked) == 3


async def test_another_programs_paths_are_the_administrators(admission: Admission) -> None:
    app = locked(admission, own=("/api", "/health"))
    for token, status in (("admins", 200), ("services", 403), ("adas", 403), ("x", 401)):
        assert (await ask(app, "/threads", Authorization=f"Bearer {token}")).status_code == status
    assert (await ask(app, "/api/x", **ADA)).json() == ["a", "ada", False]
    free = locked(Admission(None, None, None, owner_token=OWNERS), own=("/api",))
    assert (await ask(free, "/threads")).status_code == 200


async def test_each_caller_has_a_bucket_of_its_own(known: Known) -> None:
    app = locked(Admission(known, RateLimit(60, 3), None, owner_token=OWNERS))
    for _ in range(3):
        assert (await ask(app, **ADA)).status_code == 200
    error = await ask(app, **ADA)
    refused(error, 429, "rate_limited")
    assert error.headers["retry-after"] == "1"
    assert (await ask(app, Authorization="Bearer services")).status_code == 200
    for path in ("/health", "/health/ready", "/metrics"):
        for _ in range(9):
            assert (await ask(app, path, **ADA)).status_code == 200
    assert (await ask(app, Authorization=f"Bearer {OWNERS}")).status_code == 200
    assert (await ask(app, **ADA)).status_code == 429


async def test_keys_cannot_be_guessed_at_speed_and_a_guesser_locks_nobody_out(known: Known) -> None:
    app = locked(Admission(known, RateLimit(60, 5), RateLimit(60, 5), owner_token=OWNERS))
    assert (await ask(app, **ADA)).status_code == 200
    statuses = [(await ask(app, Authorization=f"Bearer {number}")).status_code for number in range(20)]
    assert statuses == [401] * 5 + [429] * 15
    assert len(known.asked) == 21, "each key is looked at before its address is counted"
    assert (await ask(app)).status_code == 429
    assert (await ask(app, Authorization="Bearer services")).status_code == 200, "a valid key is locked out by nobody"
    assert (await ask(app, **ADA)).status_code == 200
    assert (await ask(app, at="192.0.2.9", Authorization="Bearer services")).status_code == 200


async def test_without_auth_addresses_are_counted(known: Known) -> None:
    app = locked(Admission(None, RateLimit(60, 2), None, owner_token=OWNERS))
    assert [(await ask(app, at="192.0.2.1")).status_code for _ in range(4)] == [200, 200, 429, 429]
    assert [(await ask(app, at="192.0.2.2", Authorization=f"Bearer {n}")).status_code for n in range(3)] == [
        200,
        200,
        429,
    ]
    assert [(await ask(app, at=f"2001:db8::{n}")).status_code for n in range(3)] == [200, 200, 429], "one network"
    assert (await ask(app, at="2001:db8:0:1::1")).status_code == 200
    assert [(await ask(app, "/metrics", at="192.0.2.1")).status_code for _ in range(3)] == [200] * 3
    assert (await ask(app, at="192.0.2.1", Authorization=f"Bearer {OWNERS}")).status_code == 429
    for _ in range(5):
        assert (await ask(app, at="127.0.0.1", Authorization=f"Bearer {OWNERS}")).json()[0] == "owner"


def test_a_connection_from_the_machines_own_address_is_from_this_machine() -> None:
    def from_(client: str, server: str) -> bool:
        return is_from_this_machine({"client": (client, 1), "server": (server, 2)})

    assert from_("192.0.2.7", "192.0.2.7")
    assert from_("fe80::1%eth0", "fe80::1")
    assert not from_("192.0.2.8", "192.0.2.7")
    assert not is_from_this_machine({"client": None, "server": None})
    assert not is_from_this_machine({"server": ("/socket", None)})
    assert sender({"client": None}) == sender({}) == "None"


async def test_without_auth_and_limits_the_lock_costs_next_to_nothing(record_property: Callable[..., None]) -> None:
    async def nothing(scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"]["caller"]

    async def never(*given: Any) -> Any:
        raise AssertionError(given)

    admission = Admission(None, None, None, owner_token=OWNERS)
    lock = Lock(nothing, admission=lambda: admission, visits=lambda: VISITS)
    scope: Scope = {"type": "http", "path": "/api/agent", "headers": [], "state": {}}
    begun = time.perf_counter()
    for _ in range(10_000):
        await lock(scope, never, never)
    micros = (time.perf_counter() - begun) * 100
    record_property("microseconds", micros)
    assert micros < 50
