"""Makes all that there is of a user, in an order that every store keeps."""

from dataclasses import replace

import pytest

from recollect.memory.ports.store import Store
from recollect.memory.values.fact import Fact
from recollect.memory.values.scope import Scope
from recollect.memory.values.thread_record import ThreadRecord
from recollect.memory.values.turn import Turn
from tests.contracts.store.samples import NASTY_IDS, NOW, asked, fact, finish, full_update, superseded
from tests.contracts.store.suite.past_turns import past, placed, stored, without_message, without_reply

ADA = Scope("ada")


async def every_turn(store: Store, scope: Scope = ADA) -> list[Turn]:
    return [turn async for batch in store.conversations.every(scope) for turn in batch]


async def every_fact(store: Store, user_id: str = "ada") -> list[Fact]:
    return [one async for batch in store.facts.every(user_id) for one in batch]


async def every_record(store: Store, user_id: str = "ada") -> list[ThreadRecord]:
    return [record async for batch in store.threads.every(user_id) for record in batch]


class WholeUserContract:
    more_than_a_batch = 260

    async def test_turns_come_thread_by_thread_and_by_position(self, store: Store):
        await store.imports.insert([past(1, thread_id="b"), past(2, thread_id="B", update=full_update())])
        await store.imports.insert([without_reply(past(3, thread_id="a")), without_message(past(4, thread_id="b"))])
        await store.imports.insert([past(9, user_id="ada2"), past(9, user_id="ad")])
        half = await store.conversations.accept(asked("open", thread_id="b"))
        await finish(store, "live", thread_id="b")
        expected = [await stored(store, name) for name in ("turn2", "turn3", "turn1", "turn4", "open", "live")]
        assert expected[4] == Turn(half)
        assert await every_turn(store) == expected
        assert await every_turn(store, Scope("ada", "b")) == expected[2:]
        assert await every_turn(store, Scope("ada", "B")) == expected[:1]
        assert await every_turn(store, Scope("ada", "c")) == []
        assert await every_turn(store, Scope("eve")) == []

    async def test_turns_come_in_batches(self, store: Store):
        given = [past(number, thread_id=f"t{number % 3}") for number in range(self.more_than_a_batch)]
        await store.imports.insert(given)
        batches = [batch async for batch in store.conversations.every(ADA)]
        assert len(batches) > 1
        assert max(map(len, batches)) <= 250
        found = [turn.message for batch in batches for turn in batch]
        assert len({message.id for message in found}) == len(given)
        assert [(one.thread_id, one.position) for one in found] == sorted(
            (one.thread_id, one.position) for one in found
        )
        assert await every_turn(store, Scope("ada", "t1")) == [
            placed(turn, 2 * place + 1) for place, turn in enumerate(given[1::3])
        ]

    async def test_facts_come_in_every_state_by_their_ids(self, store: Store):
        given = [
            fact("A"),
            superseded("a"),
            fact("a1", status="forgotten", key=None, value="", statement=""),
            fact("a:", scope="thread", thread_id="t1"),
            fact("b", status="proposed", proposes="update"),
        ]
        for one in reversed(given):
            assert await store.facts.insert(one)
        assert await store.facts.insert(fact("A", user_id="ada2"))
        assert await every_fact(store) == given
        assert await every_fact(store, "ad") == []

    @pytest.mark.parametrize("user_id", NASTY_IDS[:3])
    async def test_facts_and_records_come_in_batches(self, store: Store, user_id: str):
        names = [f"{number:04}" for number in range(520 if user_id == NASTY_IDS[0] else 3)]
        for name in names:
            assert await store.facts.insert(fact(name, user_id=user_id))
            assert await store.threads.put(ThreadRecord(user_id, name, revision=1), revision=0)
        assert [one.id for one in await every_fact(store, user_id)] == names
        assert [record.thread_id for record in await every_record(store, user_id)] == names

    async def test_records_come_by_their_threads(self, store: Store):
        full = ThreadRecord("ada", "t1", "Title", "Text.", "model", 3, NOW, 5, NOW, closing=True, revision=4)
        given = [replace(full, thread_id=name) for name in ("B", "a", "a.b", "aa")]
        for record in reversed(given):
            assert await store.threads.put(record, revision=0)
        assert await store.threads.put(replace(full, user_id="ad"), revision=0)
        assert await every_record(store) == given
        assert await every_record(store, "eve") == []
