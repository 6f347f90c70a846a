import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

from recollect.memory.ports.client_records import ClientRecord
from recollect.memory.ports.store import Store
from recollect.memory.values.scope import Scope
from tests.contracts.store.conftest import Backend
from tests.contracts.store.samples import NASTY_IDS, NASTY_METADATA, NASTY_TEXTS, NOW, SECOND

OPEN = ClientRecord("ada", "t1", "r1", "open_round", NOW, NOW + timedelta(days=1), {"messages": [{"role": "user"}]})
MADE = ClientRecord("ada", "t2", "c1", "conversation", NOW, None, {"metadata": {"a": "b"}})
BOBS = replace(OPEN, user_id="bob")


async def put(store: Store, *records: ClientRecord) -> None:
    for record in records:
        await store.client_records.put(record)


async def found(store: Store, scope: Scope) -> list[ClientRecord]:
    return [record async for records in store.client_records.every(scope) for record in records]


class ClientRecordsContract:
    async def test_a_record_comes_back_as_it_was_put(self, store: Store):
        assert await store.client_records.record(user_id="ada", record_id="r1") is None
        await put(store, OPEN, MADE, BOBS)
        for record in (OPEN, MADE, BOBS):
            assert await store.client_records.record(user_id=record.user_id, record_id=record.id) == record
        later = replace(OPEN, thread_id="t9", content={"other": 1})
        await put(store, later)
        assert await store.client_records.record(user_id="ada", record_id="r1") == later
        assert await store.client_records.record(user_id="bob", record_id="r1") == BOBS

    async def test_one_of_several_inserts_wins(self, store: Store):
        rivals = [replace(MADE, thread_id=f"t{number}") for number in range(8)]
        won = await asyncio.gather(*(store.client_records.insert(rival) for rival in rivals))
        assert sum(won) == 1
        assert await store.client_records.record(user_id="ada", record_id="c1") == rivals[won.index(True)]
        assert await store.client_records.insert(replace(MADE, user_id="bob"))

    async def test_puts_at_once_leave_one(self, store: Store):
        rivals = [replace(MADE, content={"number": number}) for number in range(8)]
        await asyncio.gather(*(store.client_records.put(rival) for rival in rivals))
        assert await store.client_records.record(user_id="ada", record_id="c1") in rivals
        assert len(await found(store, Scope("ada"))) == 1

    async def test_they_are_listed_by_user_and_by_thread(self, store: Store):
        many = [replace(OPEN, id=f"m{number:03}") for number in range(230)]
        await put(store, *reversed(many), MADE, BOBS)
        assert await found(store, Scope("ada")) == [MADE, *many]
        assert await found(store, Scope("ada", "t1")) == many
        assert await found(store, Scope("ada", "t2")) == [MADE]
        assert await found(store, Scope("eve")) == []

    async def test_removed_ones_are_gone(self, store: Store):
        await put(store, OPEN, BOBS)
        removed = [await store.client_records.remove(user_id="ada", record_id="r1") for _ in range(2)]
        assert removed == [True, False]
        assert await found(store, Scope("ada")) == []
        assert await found(store, Scope("bob")) == [BOBS]

    async def test_those_whose_time_is_up_expire_the_first_first(self, store: Store):
        def ending(record_id: str, at: datetime) -> ClientRecord:
            return replace(OPEN, id=record_id, expires_at=at)

        await put(store, ending("a", NOW + SECOND), ending("b", NOW), ending("c", NOW - SECOND), MADE)
        assert await store.client_records.expire(NOW, limit=0) == 0
        assert await store.client_records.expire(NOW, limit=1) == 1
        assert [record.id for record in await found(store, Scope("ada"))] == ["a", "b", "c1"]
        assert [await store.client_records.expire(NOW, limit=9) for _ in range(2)] == [1, 0]
        assert [record.id for record in await found(store, Scope("ada"))] == ["a", "c1"]

    async def test_a_thread_or_a_user_is_deleted(self, store: Store):
        await put(store, OPEN, MADE, BOBS)
        assert await store.erasures.count("client_records", Scope("ada")) == 2
        assert await store.erasures.count("client_records", Scope("ada", "t1")) == 1
        assert [await store.client_records.delete(Scope("ada", "t1")) for _ in range(2)] == [1, 0]
        assert await found(store, Scope("ada")) == [MADE]
        assert await store.client_records.delete(Scope("ada")) == 1
        assert await found(store, Scope("bob")) == [BOBS]

    async def test_hostile_ids_and_texts_are_only_that(self, store: Store):
        content = {**NASTY_METADATA, "texts": list(NASTY_TEXTS)}
        given = [
            ClientRecord(user_id, user_id, user_id, "open_round", NOW, NOW + SECOND, content) for user_id in NASTY_IDS
        ]
        await put(store, *given)
        for record in given:
            assert await found(store, record.scope) == [record]
        assert await store.client_records.delete(Scope(NASTY_IDS[0])) == 1
        assert await store.client_records.record(user_id=NASTY_IDS[1], record_id=NASTY_IDS[1]) == given[1]

    async def test_reopening_keeps_them(self, backend: Backend):
        async with backend() as store:
            await put(store, OPEN)
        async with backend() as store:
            assert await found(store, Scope("ada")) == [OPEN]
