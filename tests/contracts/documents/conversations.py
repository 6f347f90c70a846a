import asyncio
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from memory.documents import Documents
from memory.scope import Scope
from memory.turn import Exchange, Message, Turn
from memory.update import not_owed, owed
from tests.contracts.documents.conftest import Backend
from tests.contracts.documents.samples import (
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


async def ids_of_indexed(documents: Documents, user_id: str | None = None) -> list[str]:
    found: list[Message] = []
    async for batch in documents.conversations.indexed_messages(user_id=user_id):
        assert 0 < len(batch) <= 500
        found += batch
    return sorted(message.id for message in found)


class ConversationsContract:
    more_than_a_batch = 260

    async def test_a_turn_comes_back_as_it_was_stored(self, documents: Documents):
        given = replace(asked(), name="Ada L.", metadata=NASTY_METADATA)
        message = await documents.conversations.accept(given)
        assert message == replace(given, position=1)
        assert await documents.conversations.turn(user_id="ada", turn_id="turn1") == Turn(message)
        reply = replace(answer(message), name="Bot", metadata=NASTY_METADATA)
        update = full_update()
        assert await documents.conversations.commit(reply, result=NASTY_METADATA, update=update)
        stored = await documents.conversations.turn(user_id="ada", turn_id="turn1")
        assert stored == Turn(message, reply, NASTY_METADATA, update)
        assert await documents.conversations.messages(ADA_T1, limit=9) == [message, reply]
        assert await documents.conversations.recent(ADA_T1, limit=9) == [Exchange(message, reply)]

    @pytest.mark.parametrize("content", NASTY_TEXTS)
    async def test_any_text_comes_back(self, documents: Documents, content: str):
        message = await documents.conversations.accept(replace(asked(content=content), name=content))
        reply = answer(message, content)
        assert await documents.conversations.commit(reply, result={"text": content}, update=not_owed(content))
        stored = await documents.conversations.turn(user_id="ada", turn_id="turn1")
        assert stored == Turn(message, reply, {"text": content}, not_owed(content))
        assert message.content == content

    async def test_a_megabyte_comes_back(self, documents: Documents):
        text = "é\U0001f600x\n" * 250_000
        message = await documents.conversations.accept(asked(content=text))
        reply = answer(message, text)
        assert await documents.conversations.commit(reply, result={}, update=owed())
        assert await documents.conversations.messages(ADA_T1, limit=9) == [message, reply]
        assert message.content == text

    async def test_hostile_ids_are_only_ids(self, documents: Documents):
        for user_id in NASTY_IDS:
            for other_id in NASTY_IDS[:3]:
                await finish(documents, other_id, user_id=user_id, thread_id=other_id)
        for user_id in NASTY_IDS:
            assert await documents.conversations.count_turns(Scope(user_id), at_most=99) == 3
            (exchange,) = await documents.conversations.recent(Scope(user_id, "a:b@c.-_"), limit=9)
            assert (exchange.user.user_id, exchange.user.turn_id) == (user_id, "a:b@c.-_")

    async def test_positions_are_odd_and_times_rise(self, documents: Documents):
        first = await documents.conversations.accept(asked("1"))
        second = await documents.conversations.accept(asked("2"))
        assert (first.position, second.position) == (1, 3)
        assert (first.created_at, second.created_at) == (NOW, NOW + MILLISECOND)
        reply = replace(answer(second), created_at=NOW + timedelta(hours=1))
        assert await documents.conversations.commit(reply, result={}, update=owed())
        third = await documents.conversations.accept(asked("3"))
        assert (third.position, third.created_at) == (5, reply.created_at + MILLISECOND)
        late = replace(answer(first), created_at=NOW + timedelta(hours=2))
        assert await documents.conversations.commit(late, result={}, update=owed())
        fourth = await documents.conversations.accept(asked("4"))
        assert (fourth.position, fourth.created_at) == (7, late.created_at + MILLISECOND)
        fifth = await documents.conversations.accept(replace(asked("5"), created_at=NOW + timedelta(days=1)))
        assert fifth.created_at == NOW + timedelta(days=1)
        assert await documents.conversations.accept(asked("1", thread_id="t2")) == first
        assert (await documents.conversations.accept(asked("6", thread_id="t2"))).position == 1

    async def test_times_are_kept_in_whole_milliseconds(self, documents: Documents):
        message = await documents.conversations.accept(replace(asked(), created_at=NOW + timedelta(microseconds=999)))
        assert message.created_at == NOW
        assert await documents.conversations.messages(ADA_T1, limit=1) == [message]

    async def test_a_repeated_accept_returns_the_stored_message(self, documents: Documents):
        first = await documents.conversations.accept(asked())
        await documents.conversations.accept(asked("turn2"))
        assert await documents.conversations.accept(asked(content="Other.", thread_id="t2")) == first
        assert await documents.conversations.messages(Scope("ada", "t2"), limit=9) == []
        assert len(await documents.conversations.messages(ADA_T1, limit=9)) == 2

    async def test_a_repeated_commit_changes_nothing(self, documents: Documents):
        exchange = await finish(documents, "turn1")
        before = await documents.conversations.turn(user_id="ada", turn_id="turn1")
        other = replace(exchange.assistant, content="Other.")
        assert not await documents.conversations.commit(other, result={"x": 1}, update=owed())
        assert await documents.conversations.turn(user_id="ada", turn_id="turn1") == before

    async def test_concurrent_accepts_of_a_thread_get_places_of_their_own(self, documents: Documents):
        turns = [str(number) for number in range(50)]
        stored = await asyncio.gather(*(documents.conversations.accept(asked(turn)) for turn in turns))
        assert sorted(message.position for message in stored) == list(range(1, 100, 2))
        listed = await documents.conversations.messages(ADA_T1, limit=99)
        assert listed == sorted(stored, key=lambda message: message.position)
        assert all(one.created_at < other.created_at for one, other in pairwise(listed))

    async def test_concurrent_accepts_of_one_turn_store_it_once(self, documents: Documents):
        stored = await asyncio.gather(*(documents.conversations.accept(asked()) for _ in range(10)))
        assert stored == [stored[0]] * 10
        assert await documents.conversations.messages(ADA_T1, limit=9) == stored[:1]

    async def test_of_concurrent_commits_one_wins(self, documents: Documents):
        message = await documents.conversations.accept(asked())
        replies = [answer(message, str(number)) for number in range(10)]
        commits = (documents.conversations.commit(reply, result={}, update=owed()) for reply in replies)
        won = await asyncio.gather(*commits)
        assert sum(won) == 1
        stored = await documents.conversations.turn(user_id="ada", turn_id="turn1")
        assert stored is not None
        assert stored.reply == replies[won.index(True)]

    async def test_a_turn_deleted_while_it_ran_cannot_be_committed(self, documents: Documents):
        message = await documents.conversations.accept(asked())
        await documents.conversations.delete(ADA)
        later = await documents.conversations.accept(asked("turn2"))
        assert not await documents.conversations.commit(answer(message), result={}, update=owed())
        assert await documents.conversations.messages(ADA_T1, limit=9) == [later]
        assert await documents.conversations.commit(answer(later), result={}, update=owed())
        assert not await documents.conversations.commit(answer(message), result={}, update=owed())

    async def test_the_window_is_the_last_finished_turns(self, documents: Documents):
        done = [await finish(documents, f"{number}") for number in range(1, 4)]
        open_turns = [await documents.conversations.accept(asked(f"open{number}")) for number in range(9)]
        done.append(await finish(documents, "last"))
        recent = documents.conversations.recent
        assert await recent(ADA_T1, limit=50) == done
        assert await recent(ADA_T1, limit=2) == done[-2:]
        assert await recent(ADA_T1, limit=0) == []
        assert await recent(ADA_T1, limit=2, before=open_turns[0].position) == done[1:3]
        assert await recent(ADA_T1, limit=2, before=done[1].user.position) == done[:1]
        assert await recent(ADA_T1, limit=2, before=1) == []
        listed = await documents.conversations.messages(ADA_T1, limit=99)
        assert len(listed) == 2 * 4 + 9
        assert [message for message in listed if message.turn_id.startswith("open")] == open_turns

    async def test_a_turn_finished_late_keeps_its_place(self, documents: Documents):
        message = await documents.conversations.accept(asked("early"))
        later = await finish(documents, "later")
        repeated = await documents.conversations.accept(asked("early"))
        assert await documents.conversations.commit(answer(repeated), result={}, update=owed())
        assert await documents.conversations.recent(ADA_T1, limit=9) == [Exchange(message, answer(message)), later]

    async def test_messages_come_in_pages(self, documents: Documents):
        for number in range(5):
            await finish(documents, str(number))
        everything = await documents.conversations.messages(ADA_T1, limit=99)
        assert len(everything) == 10
        paged: list[Message] = []
        while page := await documents.conversations.messages(ADA_T1, limit=3, after=paged[-1].position if paged else 0):
            assert len(page) <= 3
            paged += page
        assert paged == everything
        assert await documents.conversations.messages(ADA_T1, limit=0) == []

    async def test_finished_turns_are_counted_up_to_a_bound(self, documents: Documents):
        for number in range(3):
            await finish(documents, str(number))
            await finish(documents, f"other{number}", thread_id="t2")
        await documents.conversations.accept(asked("open"))
        count = documents.conversations.count_turns
        assert [await count(ADA_T1, at_most=most) for most in (0, 1, 3, 99)] == [0, 1, 3, 3]
        assert [await count(ADA, at_most=most) for most in (0, 4, 99)] == [0, 4, 6]
        assert await count(Scope("bob"), at_most=9) == 0

    async def test_users_and_threads_do_not_see_each_other(self, documents: Documents):
        ada = await finish(documents, "turn1")
        bob = await finish(documents, "turn1", user_id="bob")
        other = await finish(documents, "turn2", thread_id="t2")
        recent = documents.conversations.recent
        assert await recent(ADA_T1, limit=9) == [ada]
        assert await recent(Scope("bob", "t1"), limit=9) == [bob]
        assert await recent(Scope("ada", "t2"), limit=9) == [other]
        assert await documents.conversations.turn(user_id="bob", turn_id="turn2") is None
        assert await documents.conversations.messages(Scope("bob", "t2"), limit=9) == []

    async def test_deleting_a_thread_leaves_the_rest(self, documents: Documents):
        await finish(documents, "turn1")
        await documents.conversations.accept(asked("open"))
        other = await finish(documents, "turn2", thread_id="t2")
        bob = await finish(documents, "turn1", user_id="bob")
        assert await documents.conversations.delete(ADA_T1) == 3
        assert await documents.conversations.delete(ADA_T1) == 0
        assert await documents.conversations.messages(ADA_T1, limit=9) == []
        assert await documents.conversations.turn(user_id="ada", turn_id="turn1") is None
        assert await documents.conversations.recent(Scope("ada", "t2"), limit=9) == [other]
        assert await documents.conversations.recent(Scope("bob", "t1"), limit=9) == [bob]
        assert (await documents.conversations.accept(asked("turn1"))).position == 1

    async def test_deleting_a_user_leaves_nothing_of_theirs(self, documents: Documents):
        await finish(documents, "turn1", update=indexed())
        await finish(documents, "turn2", thread_id="t2", update=owed())
        bob = await finish(documents, "turn1", user_id="bob", update=indexed())
        assert await documents.conversations.delete(ADA) == 4
        assert await documents.conversations.delete(ADA) == 0
        assert await documents.conversations.count_turns(ADA, at_most=9) == 0
        assert await documents.updates.pending_users(limit=9) == ["bob"]
        assert await documents.updates.pending("ada", limit=9) == []
        assert await ids_of_indexed(documents) == sorted([bob.user.id, bob.assistant.id])

    async def test_only_indexed_turns_are_in_the_index(self, documents: Documents):
        ada = await finish(documents, "turn1", update=indexed())
        await finish(documents, "turn2", update=owed())
        bob = await finish(documents, "turn1", user_id="bob", update=indexed())
        ids_of_ada, ids_of_bob = sorted([ada.user.id, ada.assistant.id]), sorted([bob.user.id, bob.assistant.id])
        assert await ids_of_indexed(documents) == sorted(ids_of_ada + ids_of_bob)
        assert await ids_of_indexed(documents, "ada") == ids_of_ada
        assert await ids_of_indexed(documents, "eve") == []
        assert await documents.conversations.count_indexed_messages() == 4

    async def test_indexed_messages_come_in_batches(self, documents: Documents):
        await asyncio.gather(
            *(
                finish(documents, str(number), thread_id=f"t{number}", update=indexed())
                for number in range(self.more_than_a_batch)
            )
        )
        found = await ids_of_indexed(documents)
        assert len(found) == len(set(found)) == 2 * self.more_than_a_batch
        assert found == await ids_of_indexed(documents, "ada")
        assert await documents.conversations.count_indexed_messages() == 2 * self.more_than_a_batch

    async def test_reopening_keeps_everything(self, backend: Backend):
        async with backend() as documents:
            exchange = await finish(documents, "turn1", update=full_update())
            stored = await documents.conversations.turn(user_id="ada", turn_id="turn1")
        async with backend() as documents:
            assert await documents.conversations.turn(user_id="ada", turn_id="turn1") == stored
            assert await documents.conversations.recent(ADA_T1, limit=9) == [exchange]
            assert (await documents.conversations.accept(asked("turn2"))).position == 3
