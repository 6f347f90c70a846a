from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from recollect.api.auth.caller import Caller
from recollect.api.auth.page_sessions import EXTENDED_EVERY, LONGEST, MOST_OF_A_CALLER, PageSessions
from recollect.api.auth.visits import VisitRules, Visits
from recollect.memory.erasure.fenced_records import FencedSessions
from recollect.memory.erasure.fences import Fences
from recollect.memory.ports.key_ring import KeyRing
from recollect.memory.ports.store import Store
from recollect.memory.stores.sqlite import open_sqlite_store

IDLE = timedelta(minutes=60)
SECOND = timedelta(seconds=1)


@dataclass
class Clock:
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_sqlite_store(tmp_path / "documents.db") as store:
        yield store


def opened(store: Store, clock: Clock, *, has_keys: bool = False, idle: timedelta = IDLE) -> PageSessions:
    sessions = FencedSessions(store.sessions, Fences(store.erasures))
    return PageSessions(sessions, KeyRing(store.keys, clock), clock=clock, idle=idle, has_keys=has_keys)


async def test_it_ends_after_so_long_without_an_act(store: Store, clock: Clock) -> None:
    sessions = opened(store, clock)
    secret = await sessions.open(Caller("subject:1", "ada"))
    clock.now += IDLE - SECOND
    assert await sessions.caller(secret, is_act=True) == Caller("subject:1", "ada")
    clock.now += IDLE - SECOND
    assert await sessions.caller(secret, is_act=False) == Caller("subject:1", "ada")
    clock.now += SECOND
    assert await sessions.caller(secret, is_act=True) is None
    clock.now -= IDLE
    assert await sessions.caller(secret, is_act=True) is None, "it does not come back"


async def test_it_ends_after_half_a_day_whatever_is_done(store: Store, clock: Clock) -> None:
    sessions = opened(store, clock)
    secret = await sessions.open(Caller("subject:1", is_admin=True))
    started = clock.now
    while clock.now < started + LONGEST:
        assert await sessions.caller(secret, is_act=True) == Caller("subject:1", is_admin=True)
        clock.now += IDLE / 2
    assert await sessions.caller(secret, is_act=True) is None


async def test_it_ends_with_its_token(store: Store, clock: Clock) -> None:
    sessions = opened(store, clock)
    secret = await sessions.open(Caller("subject:1", "ada", ends_at=clock.now + 10 * SECOND))
    clock.now += 9 * SECOND
    assert await sessions.caller(secret, is_act=True) is not None
    clock.now += SECOND
    assert await sessions.caller(secret, is_act=True) is None


async def test_it_ends_with_its_key(store: Store, clock: Clock) -> None:
    now = [0.0]
    ring, other = (KeyRing(store.keys, clock, monotonic=lambda: now[0]) for _ in range(2))
    sessions = PageSessions(
        FencedSessions(store.sessions, Fences(store.erasures)), ring, clock=clock, idle=IDLE, has_keys=True
    )
    key, _ = await ring.create("user:ada")
    secret = await sessions.open(Caller(f"key:{key.id}", "ada", key_id=key.id))
    assert await sessions.caller(secret, is_act=True) is not None
    await other.revoke(key.id)
    now[0] += 5
    assert await sessions.caller(secret, is_act=True) is None


async def test_a_session_of_another_way_of_auth_lets_nobody_in(store: Store, clock: Clock) -> None:
    secret = await opened(store, clock).open(Caller("subject:1", "ada"))
    assert await opened(store, clock, has_keys=True).caller(secret, is_act=True) is None


async def test_acts_are_recorded_now_and_then(store: Store, clock: Clock) -> None:
    sessions = opened(store, clock, idle=timedelta(minutes=1))
    secret = await sessions.open(Caller("subject:1", "ada"))
    for _ in range(40):
        clock.now += EXTENDED_EVERY - SECOND
        assert await sessions.caller(secret, is_act=True) is not None


async def test_a_caller_has_so_many_sessions(store: Store, clock: Clock) -> None:
    sessions = opened(store, clock)
    secrets: list[str] = []
    for _ in range(MOST_OF_A_CALLER + 2):
        secrets.append(await sessions.open(Caller("subject:1", "ada")))
        clock.now += SECOND
    living = [await sessions.caller(secret, is_act=False) is not None for secret in secrets]
    assert living == [False, False] + [True] * MOST_OF_A_CALLER


async def test_what_a_page_does_by_itself_is_no_act(store: Store, clock: Clock) -> None:
    sessions = opened(store, clock)
    visits = Visits(VisitRules(), sessions)
    secret = await sessions.open(Caller("subject:1", "ada"))
    cookie = (b"cookie", f"a=b; recollect-8000={secret}; c=d".encode())
    live = (b"recollect-live", b"1")
    scope = {"type": "http", "method": "GET", "scheme": "http", "server": ("127.0.0.1", 8000), "path": "/"}
    clock.now += IDLE / 2
    visit = await visits.enter({**scope, "headers": [cookie, live]})
    assert visit.caller == Caller("subject:1", "ada")
    clock.now += IDLE / 2
    assert (await visits.enter({**scope, "headers": [cookie, live]})).caller is None
    twice = [cookie, (b"cookie", f"recollect-8000={secret}".encode())]
    assert (await visits.enter({**scope, "headers": twice})).is_new, "a planted cookie is not believed"
