import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from recollect.memory.ports.keys import Key
from recollect.memory.ports.store import Store
from tests.contracts.store.conftest import Backend
from tests.contracts.store.samples import NASTY_IDS, NOW, SECOND

ADAS = Key("00000000000000aa", "d" * 64, "user", "ada", "Zürich \U0001f3d4", NOW)
SERVICE = Key("00000000000000bb", "e" * 64, "service", None, None, NOW + SECOND)
ADMIN = Key("00000000000000cc", "f" * 64, "admin", None, "root", NOW + 2 * SECOND, "support")


async def insert(store: Store, *keys: Key) -> None:
    for key in keys:
        assert await store.keys.insert(key)


class KeysContract:
    @pytest.mark.parametrize("given", [ADAS, SERVICE, ADMIN], ids=["user", "service", "admin"])
    async def test_a_key_comes_back_as_it_was_stored(self, store: Store, given: Key):
        assert await store.keys.key(given.id) is None
        await insert(store, given)
        assert await store.keys.key(given.id) == given
        assert await store.keys.key("00000000000000ff") is None

    async def test_an_id_is_stored_once(self, store: Store):
        await insert(store, ADAS)
        assert not await store.keys.insert(replace(SERVICE, id=ADAS.id))
        assert await store.keys.key(ADAS.id) == ADAS
        rivals = [replace(SERVICE, digest=str(number) * 64) for number in range(9)]
        won = await asyncio.gather(*(store.keys.insert(rival) for rival in rivals))
        assert sum(won) == 1
        assert await store.keys.key(SERVICE.id) == rivals[won.index(True)]

    async def test_pages_are_oldest_first_and_go_on_where_the_last_ended(self, store: Store):
        same_time = [replace(SERVICE, id=f"{number:016x}") for number in range(3)]
        given = [ADAS, *same_time, ADMIN]
        await insert(store, *reversed(given))
        assert await store.keys.page(limit=9) == given
        found: list[Key] = []
        while page := await store.keys.page(limit=2, after=(found[-1].created_at, found[-1].id) if found else None):
            assert len(page) <= 2
            found += page
        assert found == given
        assert await store.keys.page(limit=9, after=(NOW - timedelta(days=1), "")) == given
        assert await store.keys.page(limit=0) == []

    async def test_a_removed_key_is_gone(self, store: Store):
        await insert(store, ADAS, SERVICE)
        assert [await store.keys.remove(ADAS.id) for _ in range(2)] == [True, False]
        assert await store.keys.key(ADAS.id) is None
        assert await store.keys.page(limit=9) == [SERVICE]

    async def test_a_users_own_keys_are_counted_and_deleted(self, store: Store):
        second, bobs = replace(ADAS, id="00000000000000ab"), replace(ADAS, id="00000000000000ba", user_id="bob")
        await insert(store, ADAS, second, bobs, SERVICE)
        assert [await store.keys.count(user_id) for user_id in ("ada", "bob", "eve")] == [2, 1, 0]
        assert [await store.keys.delete("ada") for _ in range(2)] == [2, 0]
        assert await store.keys.count("ada") == 0
        assert await store.keys.page(limit=9) == [bobs, SERVICE]

    async def test_hostile_ids_are_only_ids(self, store: Store):
        given = [replace(ADAS, id=f"{number:016x}", user_id=user_id) for number, user_id in enumerate(NASTY_IDS)]
        await insert(store, *given)
        for key in given:
            assert await store.keys.count(key.user_id or "") == 1
        assert await store.keys.delete(NASTY_IDS[0]) == 1
        assert await store.keys.page(limit=99) == given[1:]

    async def test_reopening_keeps_them(self, backend: Backend):
        async with backend() as store:
            await insert(store, ADAS)
        async with backend() as store:
            assert await store.keys.key(ADAS.id) == ADAS
