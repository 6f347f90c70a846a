import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from recollect.memory.ports.sessions import Session
from recollect.memory.ports.store import Store
from recollect.memory.values.scope import Scope
from tests.contracts.store.conftest import Backend
from tests.contracts.store.samples import NASTY_IDS, NOW, SECOND

END = NOW + timedelta(hours=12)
ADAS = Session("a" * 64, "key:00000000000000aa", "ada", False, "00000000000000aa", NOW, NOW + SECOND, END)
SERVICES = Session("b" * 64, "key:00000000000000bb", None, False, "00000000000000bb", NOW, NOW + 2 * SECOND, END)
ADMINS = Session("c" * 64, "subject:0", None, True, None, NOW, NOW + 3 * SECOND, END)


async def insert(store: Store, *sessions: Session) -> None:
    for session in sessions:
        assert await store.sessions.insert(session)


async def left(store: Store, *sessions: Session) -> list[str]:
    return [session.digest for session in sessions if await store.sessions.session(session.digest) is not None]


class SessionsContract:
    @pytest.mark.parametrize("given", [ADAS, SERVICES, ADMINS], ids=["user", "service", "admin"])
    async def test_a_session_comes_back_as_it_was_stored(self, store: Store, given: Session):
        assert await store.sessions.session(given.digest) is None
        await insert(store, given)
        assert await store.sessions.session(given.digest) == given
        assert await store.sessions.session("d" * 64) is None

    async def test_a_digest_is_stored_once(self, store: Store):
        rivals = [replace(ADMINS, name=f"subject:{number}") for number in range(9)]
        won = await asyncio.gather(*(store.sessions.insert(rival) for rival in rivals))
        assert sum(won) == 1
        assert await store.sessions.session(ADMINS.digest) == rivals[won.index(True)]

    async def test_an_end_only_moves_on(self, store: Store):
        await insert(store, ADAS)
        later = NOW + 5 * SECOND
        assert await store.sessions.extend(ADAS.digest, expires_at=later)
        for at in (later, NOW, NOW + SECOND):
            assert not await store.sessions.extend(ADAS.digest, expires_at=at)
        assert await store.sessions.session(ADAS.digest) == replace(ADAS, expires_at=later)
        assert not await store.sessions.extend(ADMINS.digest, expires_at=later)
        assert await store.sessions.session(ADMINS.digest) is None

    async def test_a_removed_session_is_gone(self, store: Store):
        await insert(store, ADAS, ADMINS)
        assert [await store.sessions.remove(ADAS.digest) for _ in range(2)] == [True, False]
        assert await left(store, ADAS, ADMINS) == [ADMINS.digest]

    async def test_a_callers_oldest_sessions_go_first(self, store: Store):
        mine = [replace(ADAS, digest=f"{number:064x}", started_at=NOW + number * SECOND) for number in range(5)]
        await insert(store, *reversed(mine), SERVICES)
        assert await store.sessions.trim(ADAS.name, keep=5) == 0
        assert await store.sessions.trim(ADAS.name, keep=2) == 3
        assert await left(store, *mine, SERVICES) == [mine[3].digest, mine[4].digest, SERVICES.digest]

    async def test_sessions_expire_the_first_first(self, store: Store):
        await insert(store, ADMINS, ADAS, SERVICES)
        at = NOW + 2 * SECOND
        assert await store.sessions.expire(at, limit=0) == 0
        assert await store.sessions.expire(at, limit=1) == 1
        assert await left(store, ADAS, SERVICES, ADMINS) == [SERVICES.digest, ADMINS.digest]
        assert [await store.sessions.expire(at, limit=9) for _ in range(2)] == [1, 0]
        assert await left(store, ADAS, SERVICES, ADMINS) == [ADMINS.digest]

    async def test_a_users_own_sessions_are_counted_and_deleted(self, store: Store):
        second, bobs = replace(ADAS, digest="e" * 64), replace(ADAS, digest="f" * 64, user_id="bob")
        await insert(store, ADAS, second, bobs, SERVICES)
        assert await store.erasures.count("sessions", Scope("ada")) == 2
        assert [await store.sessions.delete("ada") for _ in range(2)] == [2, 0]
        assert await left(store, ADAS, second, bobs, SERVICES) == [bobs.digest, SERVICES.digest]

    async def test_hostile_ids_are_only_ids(self, store: Store):
        given = [replace(ADAS, digest=f"{number:064x}", user_id=user_id) for number, user_id in enumerate(NASTY_IDS)]
        await insert(store, *given)
        assert await store.sessions.delete(NASTY_IDS[0]) == 1
        assert await left(store, *given) == [session.digest for session in given[1:]]

    async def test_reopening_keeps_them(self, backend: Backend):
        async with backend() as store:
            await insert(store, ADAS)
        async with backend() as store:
            assert await store.sessions.session(ADAS.digest) == ADAS
