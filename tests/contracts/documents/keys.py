import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from memory.documents import Documents
from memory.keys import Key
from tests.contracts.documents.conftest import Backend
from tests.contracts.documents.samples import NASTY_IDS, NOW, SECOND

ADAS = Key("00000000000000aa", "d" * 64, "user", "ada", "Zürich \U0001f3d4", NOW)
SERVICE = Key("00000000000000bb", "e" * 64, "service", None, None, NOW + SECOND)
ADMIN = Key("00000000000000cc", "f" * 64, "admin", None, "root", NOW + 2 * SECOND)


async def store(documents: Documents, *keys: Key) -> None:
    for key in keys:
        assert await documents.keys.insert(key)


class KeysContract:
    @pytest.mark.parametrize("given", [ADAS, SERVICE, ADMIN], ids=["user", "service", "admin"])
    async def test_a_key_comes_back_as_it_was_stored(self, documents: Documents, given: Key):
        assert await documents.keys.key(given.id) is None
        await store(documents, given)
        assert await documents.keys.key(given.id) == given
        assert await documents.keys.key("00000000000000ff") is None

    async def test_an_id_is_stored_once(self, documents: Documents):
        await store(documents, ADAS)
        assert not await documents.keys.insert(replace(SERVICE, id=ADAS.id))
        assert await documents.keys.key(ADAS.id) == ADAS
        rivals = [replace(SERVICE, digest=str(number) * 64) for number in range(9)]
        won = await asyncio.gather(*(documents.keys.insert(rival) for rival in rivals))
        assert sum(won) == 1
        assert await documents.keys.key(SERVICE.id) == rivals[won.index(True)]

    async def test_pages_are_oldest_first_and_go_on_where_the_last_ended(self, documents: Documents):
        same_time = [replace(SERVICE, id=f"{number:016x}") for number in range(3)]
        given = [ADAS, *same_time, ADMIN]
        await store(documents, *reversed(given))
        assert await documents.keys.page(limit=9) == given
        found: list[Key] = []
        while page := await documents.keys.page(limit=2, after=(found[-1].created_at, found[-1].id) if found else None):
            assert len(page) <= 2
            found += page
        assert found == given
        assert await documents.keys.page(limit=9, after=(NOW - timedelta(days=1), "")) == given
        assert await documents.keys.page(limit=0) == []

    async def test_a_removed_key_is_gone(self, documents: Documents):
        await store(documents, ADAS, SERVICE)
        assert [await documents.keys.remove(ADAS.id) for _ in range(2)] == [True, False]
        assert await documents.keys.key(ADAS.id) is None
        assert await documents.keys.page(limit=9) == [SERVICE]

    async def test_a_users_own_keys_are_counted_and_deleted(self, documents: Documents):
        second, bobs = replace(ADAS, id="00000000000000ab"), replace(ADAS, id="00000000000000ba", user_id="bob")
        await store(documents, ADAS, second, bobs, SERVICE)
        assert [await documents.keys.count(user_id) for user_id in ("ada", "bob", "eve")] == [2, 1, 0]
        assert [await documents.keys.delete("ada") for _ in range(2)] == [2, 0]
        assert await documents.keys.count("ada") == 0
        assert await documents.keys.page(limit=9) == [bobs, SERVICE]

    async def test_hostile_ids_are_only_ids(self, documents: Documents):
        given = [replace(ADAS, id=f"{number:016x}", user_id=user_id) for number, user_id in enumerate(NASTY_IDS)]
        await store(documents, *given)
        for key in given:
            assert await documents.keys.count(key.user_id or "") == 1
        assert await documents.keys.delete(NASTY_IDS[0]) == 1
        assert await documents.keys.page(limit=99) == given[1:]

    async def test_reopening_keeps_them(self, backend: Backend):
        async with backend() as documents:
            await store(documents, ADAS)
        async with backend() as documents:
            assert await documents.keys.key(ADAS.id) == ADAS
