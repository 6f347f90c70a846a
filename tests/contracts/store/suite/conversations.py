import asyncio
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from recollect.memory.ports.store import Store
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Exchange, Message, Turn
from recollect.memory.values.update import not_owed, owed
from tests.contracts.store.conftest import Backend
from tests.contracts.store.samples import (
    NASTY_IDS,
    NASTY_METADATA,
    NASTY_TEXTS,
    NOW,
    answer,
    asked,
    finish,
    full_update,
    indexed,
)

ADA = Scope("ada")
ADA_T1 = Scope("ada", "t1")
MILLISECOND = timedelta(milliseconds=1)


async def ids_of_indexed(store: Store, user_id: str | None = None) -> list[str]:
    found: list[Message] = []
    async for batch in store.conversations.indexed_messages(user_id=user_id):
        assert 0 < len(batch) <= 500
        found += batch
    return sorted(message.id for message in found)


class ConversationsContract:
    more_than_a_batch = 260

    async def test_a_turn_comes_back_as_it_was_stored(self, store: Store):
        given = replace(asked(), name="Ada L.", metadata=NASTY_METADATA, agent_id="support")
        message = await store.conversations.accept(given)
        assert message == replace(given, position=1)
        assert await store.conversations.turn(user_id="ada", turn_id="turn1") == Turn(message)
        reply = replace(answer(message), name="Bot", metadata=NASTY_METADATA)
        update = full_update()
        assert await store.conversations.commit(reply, result=NASTY_METADATA, update=update)
        stored = await store.conversations.turn(user_id="ada", turn_id="turn1")
        assert stored == Turn(message, reply, NASTY_METADATA, update)
        assert await store.conversations.messages(ADA_T1, limit=9) == [message, reply]
        assert await store.conversations.recent(ADA_T1, limit=9) == [Exchange(message, reply)]

    @pytest.mark.parametrize("content", NASTY_TEXTS)
    async def test_any_text_comes_back(self, store: Store, content: str):
        message = await store.conversations.accept(replace(asked(content=content), name=content))
        reply = answer(message, content)
        assert await store.conversations.commit(reply, result={"text": content}, update=not_owed(content))
        stored = await store.conversations.turn(user_id="ada", turn_id="turn1")
        assert stored == Turn(message, reply, {"text": content}, not_owed(content))
        assert message.content == content

    async def test_a_megabyte_comes_back(self, store: Store):
        text = "é\U0001f600x\n" * 250_000
        message = await store.conversations.accept(asked(content=text))
        reply = answer(message, text)
        assert await store.conversations.commit(reply, result={}, update=owed())
        assert await store.conversations.messages(ADA_T1, limit=9) == [message, reply]
        assert message.content == text

    async def test_hostile_ids_are_only_ids(self, store: Store):
        for user_id in NASTY_IDS:
            for other_id in NASTY_IDS[:3]:
                await finish(store, other_id, user_id=user_id, thread_id=other_id)
        for user_id in NASTY_IDS:
            assert await store.conversations.count_turns(Scope(user_id), at_most=99) == 3
            (exchange,) = await store.conversations.recent(Scope(user_id, "a:b@c.-_"), limit=9)
            assert (exchange.user.user_id, exchange.user.turn_id) == (user_id, "a:b@c.-_")

    async def test_positions_are_odd_and_times_rise(self, store: Store):
        first = await store.conversations.accept(asked("1"))
        second = await store.conversations.accept(asked("2"))
        assert (first.position, second.position) == (1, 3)
        assert (first.created_at, second.created_at) == (NOW, NOW + MILLISECOND)
        reply = replace(answer(second), created_at=NOW + timedelta(hours=1))
        assert await store.conversations.commit(reply, result={}, update=owed())
        third = await store.conversations.accept(asked("3"))
        assert (third.position, third.created_at) == (5, reply.created_at + MILLISECOND)
        late = replace(answer(first), created_at=NOW + timedelta(hours=2))
        assert await store.conversations.commit(late, result={}, update=owed())
        fourth = await store.conversations.accept(asked("4"))
        assert (fourth.position, fourth.created_at) == (7, late.created_at + MILLISECOND)
        fifth = await store.conversations.accept(replace(asked("5"), created_at=NOW + timedelta(days=1)))
        assert fifth.created_at == NOW + timedelta(days=1)
        assert await store.conversations.accept(asked("1", thread_id="t2")) == first
        assert (await store.conversations.accept(asked("6", thread_id="t2"))).position == 1

    async def test_times_are_kept_in_whole_milliseconds(self, store: Store):
        message = await store.conversations.accept(replace(asked(), created_at=NOW + timedelta(microseconds=999)))
        assert message.created_at == NOW
        assert await store.conversations.messages(ADA_T1, limit=1) == [message]

    async def test_a_repeated_accept_returns_the_stored_message(self, store: Store):
        first = await store.conversations.accept(asked())
        await store.conversations.accept(asked("turn2"))
        assert await store.conversations.accept(asked(content="Other.", thread_id="t2")) == first
        assert await store.conversations.messages(Scope("ada", "t2"), limit=9) == []
        assert len(await store.conversations.messages(ADA_T1, limit=9)) == 2

    async def test_a_repeated_commit_changes_nothing(self, store: Store):
        exchange = await finish(store, "turn1")
        before = await store.conversations.turn(user_id="ada", turn_id="turn1")
        other = replace(exchange.assistant, content="Other.")
        assert not await store.conversations.commit(other, result={"x": 1}, update=owed())
        assert await store.conversations.turn(user_id="ada", turn_id="turn1") == before

    async def test_concurrent_accepts_of_a_thread_get_places_of_their_own(self, store: Store):
        turns = [str(number) for number in range(50)]
        stored = await asyncio.gather(*(store.conversations.accept(asked(turn)) for turn in turns))
        assert sorted(message.position for message in stored) == list(range(1, 100, 2))
        listed = await store.conversations.messages(ADA_T1, limit=99)
        assert listed == sorted(stored, key=lambda message: message.position)
        assert all(one.created_at < other.created_at for one, other in pairwise(listed))

    async def test_concurrent_accepts_of_one_turn_store_it_once(self, store: Store):
        stored = await asyncio.gather(*(store.conversations.accept(asked()) for _ in range(10)))
        assert stored == [stored[0]] * 10
        assert await store.conversations.messages(ADA_T1, limit=9) == stored[:1]

    async def test_of_concurrent_commits_one_wins(self, store: Store):
        message = await store.conversations.accept(asked())
        replies = [answer(message, str(number)) for number in range(10)]
        commits = (store.conversations.commit(reply, result={}, update=owed()) for reply in replies)
        won = await asyncio.gather(*commits)
        assert sum(won) == 1
        stored = await store.conversations.turn(user_id="ada", turn_id="turn1")
        assert stored is not None
        assert stored.reply == replies[won.index(True)]

    async def test_a_turn_deleted_while_it_ran_cannot_be_committed(self, store: Store):
        message = await store.conversations.accept(asked())
        await store.conversations.delete(ADA)
        later = await store.conversations.accept(asked("turn2"))
        assert not await store.conversations.commit(answer(message), result={}, update=owed())
        assert await store.conversations.messages(ADA_T1, limit=9) == [later]
        assert await store.conversations.commit(answer(later), result={}, update=owed())
        assert not await store.conversations.commit(answer(message), result={}, update=owed())

    async def test_the_window_is_the_last_finished_turns(self, store: Store):
        done = [await finish(store, f"{number}") for number in range(1, 4)]
        open_turns = [await store.conversations.accept(asked(f"open{number}")) for number in range(9)]
        done.append(await finish(store, "last"))
        recent = store.conversations.recent
        assert await recent(ADA_T1, limit=50) == done
        assert await recent(ADA_T1, limit=2) == done[-2:]
        assert await recent(ADA_T1, limit=0) == []
        assert await recent(ADA_T1, limit=2, before=open_turns[0].position) == done[1:3]
        assert await recent(ADA_T1, limit=2, before=done[1].user.position) == done[:1]
        assert await recent(ADA_T1, limit=2, before=1) == []
        listed = await store.conversations.messages(ADA_T1, limit=99)
        assert len(listed) == 2 * 4 + 9
        assert [message for message in listed if message.turn_id.startswith("open")] == open_turns

    async def test_a_turn_finished_late_keeps_its_place(self, store: Store):
        message = await store.conversations.accept(asked("early"))
        later = await finish(store, "later")
        repeated = await store.conversations.accept(asked("early"))
        assert await store.conversations.commit(answer(repeated), result={}, update=owed())
        assert await store.conversations.recent(ADA_T1, limit=9) == [Exchange(message, answer(message)), later]

    async def test_messages_come_in_pages(self, store: Store):
        for number in range(5):
            await finish(store, str(number))
        everything = await store.conversations.messages(ADA_T1, limit=99)
        assert len(everything) == 10
        paged: list[Message] = []
        while page := await store.conversations.messages(ADA_T1, limit=3, after=paged[-1].position if paged else 0):
            assert len(page) <= 3
            paged += page
        assert paged == everything
        assert await store.conversations.messages(ADA_T1, limit=0) == []

    async def test_finished_turns_are_counted_up_to_a_bound(self, store: Store):
        for number in range(3):
            await finish(store, str(number))
            await finish(store, f"other{number}", thread_id="t2")
        await store.conversations.accept(asked("open"))
        count = store.conversations.count_turns
        assert [await count(ADA_T1, at_most=most) for most in (0, 1, 3, 99)] == [0, 1, 3, 3]
        assert [await count(ADA, at_most=most) for most in (0, 4, 99)] == [0, 4, 6]
        assert await count(Scope("bob"), at_most=9) == 0

    async def test_users_and_threads_do_not_see_each_other(self, store: Store):
        ada = await finish(store, "turn1")
        bob = await finish(store, "turn1", user_id="bob")
        other = await finish(store, "turn2", thread_id="t2")
        recent = store.conversations.recent
        assert await recent(ADA_T1, limit=9) == [ada]
        assert await recent(Scope("bob", "t1"), limit=9) == [bob]
        assert await recent(Scope("ada", "t2"), limit=9) == [other]
        assert await store.conversations.turn(user_id="bob", turn_id="turn2") is None
        assert await store.conversations.messages(Scope("bob", "t2"), limit=9) == []

    async def test_deleting_a_thread_leaves_the_rest(self, store: Store):
        await finish(store, "turn1")
        await store.conversations.accept(asked("open"))
        other = await finish(store, "turn2", thread_id="t2")
        bob = await finish(store, "turn1", user_id="bob")
        assert await store.conversations.delete(ADA_T1) == 3
        assert await store.conversations.delete(ADA_T1) == 0
        assert await store.conversations.messages(ADA_T1, limit=9) == []
        assert await store.conversations.turn(user_id="ada", turn_id="turn1") is None
        assert await store.conversations.recent(Scope("ada", "t2"), limit=9) == [other]
        assert await store.conversations.recent(Scope("bob", "t1"), limit=9) == [bob]
        assert (await store.conversations.accept(asked("turn1"))).position == 1

    async def test_deleting_a_user_leaves_nothing_of_theirs(self, store: Store):
        await finish(store, "turn1", update=indexed())
        await finish(store, "turn2", thread_id="t2", update=owed())
        bob = await finish(store, "turn1", user_id="bob", update=indexed())
        assert await store.conversations.delete(ADA) == 4
        assert await store.conversations.delete(ADA) == 0
        assert await store.conversations.count_turns(ADA, at_most=9) == 0
        assert await store.updates.pending_users(limit=9) == ["bob"]
        assert await store.updates.pending("ada", limit=9) == []
        assert await ids_of_indexed(store) == sorted([bob.user.id, bob.assistant.id])

    async def test_only_indexed_turns_are_in_the_index(self, store: Store):
        ada = await finish(store, "turn1", update=indexed())
        await finish(store, "turn2", update=owed())
        bob = await finish(store, "turn1", user_id="bob", update=indexed())
        ids_of_ada, ids_of_bob = sorted([ada.user.id, ada.assistant.id]), sorted([bob.user.id, bob.assistant.id])
        assert await ids_of_indexed(store) == sorted(ids_of_ada + ids_of_bob)
        assert await ids_of_indexed(store, "ada") == ids_of_ada
        assert await ids_of_indexed(store, "eve") == []
        assert await store.conversations.count_indexed_messages() == 4

    async def test_indexed_messages_come_in_batches(self, store: Store):
        await asyncio.gather(
            *(
                finish(store, str(number), thread_id=f"t{number}", update=indexed())
                for number in range(self.more_than_a_batch)
            )
        )
        found = await ids_of_indexed(store)
        assert len(found) == len(set(found)) == 2 * self.more_than_a_batch
        assert found == await ids_of_indexed(store, "ada")
        assert await store.conversations.count_indexed_messages() == 2 * self.more_than_a_batch

    async def test_reopening_keeps_everything(self, backend: Backend):
        async with backend() as store:
            exchange = await finish(store, "turn1", update=full_update())
            stored = await store.conversations.turn(user_id="ada", turn_id="turn1")
        async with backend() as store:
            assert await store.conversations.turn(user_id="ada", turn_id="turn1") == stored
            assert await store.conversations.recent(ADA_T1, limit=9) == [exchange]
            assert (await store.conversations.accept(asked("turn2"))).position == 3
