"""What is done with turns after they were committed: shown in lists, learned again, let go."""

import asyncio
from dataclasses import replace
from datetime import datetime

from memory.documents import Documents
from memory.scope import Scope
from memory.thread_record import ThreadOverview
from memory.turn import Exchange, Message, Turn
from memory.update import Update, not_owed, owed
from tests.contracts.documents.past_turns import past, without_reply
from tests.contracts.documents.samples import (
    NASTY_METADATA,
    NOW,
    SECOND,
    answer,
    asked,
    failed,
    finish,
    full_update,
    indexed,
)

ADA_T1 = Scope("ada", "t1")


async def finish_at(
    documents: Documents,
    turn_id: str,
    at: datetime,
    *,
    user_id: str = "ada",
    thread_id: str = "t1",
    update: Update | None = None,
) -> Message:
    """A turn whose user's message is of `at`, its reply a second younger; the user's message."""
    asking = replace(asked(turn_id, user_id=user_id, thread_id=thread_id), created_at=at)
    message = await documents.conversations.accept(asking)
    assert await documents.conversations.commit(answer(message), result={}, update=update or not_owed("disabled"))
    return message


async def paged(documents: Documents, *, limit: int) -> list[ThreadOverview]:
    found: list[ThreadOverview] = []
    while True:
        before = (found[-1].last_activity_at, found[-1].thread_id) if found else None
        page = await documents.conversations.overviews("ada", limit=limit, before=before)
        assert len(page) <= limit
        if not page:
            return found
        found += page


class KeptTurnsContract:
    more_than_a_batch = 260

    async def test_a_thread_alone(self, documents: Documents):
        await finish_at(documents, "late", NOW + SECOND, thread_id="t2")
        given = [without_reply(past(-9)), past(-5), without_reply(past(-7))]
        assert await documents.imports.insert(given) == 3
        await documents.conversations.accept(asked("open", thread_id="t3"))
        for thread_id in ("t1", "t2", "t3"):
            (listed,) = [one for one in await paged(documents, limit=9) if one.thread_id == thread_id]
            assert await documents.conversations.overview(Scope("ada", thread_id)) == listed
        alone = await documents.conversations.overview(ADA_T1)
        assert alone == ThreadOverview("t1", past(-5).messages[-1].created_at, 6, 3, 4)
        assert await documents.conversations.overview(Scope("ada", "t4")) is None
        assert await documents.conversations.overview(Scope("eve", "t1")) is None

    async def test_finished_turns_behind_a_position_come_oldest_first(self, documents: Documents):
        done = [await finish(documents, f"{number}") for number in range(1, 4)]
        for number in range(9):
            await documents.conversations.accept(asked(f"open{number}"))
        done.append(await finish(documents, "last"))
        await documents.conversations.accept(asked("open at the end"))
        await finish(documents, "there", thread_id="t2")
        await finish(documents, "bobs", user_id="bob")
        exchanges = documents.conversations.exchanges
        assert await exchanges(ADA_T1, after=0, limit=50) == done
        assert await exchanges(ADA_T1, after=0, limit=2) == done[:2]
        assert await exchanges(ADA_T1, after=1, limit=50) == done[1:]
        assert await exchanges(ADA_T1, after=2, limit=1) == done[1:2]
        assert await exchanges(ADA_T1, after=3, limit=1) == done[2:3]
        assert await exchanges(ADA_T1, after=done[2].user.position, limit=1) == done[3:]
        assert await exchanges(ADA_T1, after=done[3].user.position, limit=9) == []
        assert await exchanges(ADA_T1, after=0, limit=0) == []

    async def test_the_last_position_is_the_threads_greatest(self, documents: Documents):
        last = documents.conversations.last_position
        assert await last(ADA_T1) == 0
        await finish(documents, "1")
        assert await last(ADA_T1) == 2
        message = await documents.conversations.accept(asked("2"))
        await documents.conversations.accept(asked("3"))
        assert await last(ADA_T1) == 5
        assert await documents.conversations.commit(answer(message), result={}, update=owed())
        assert await last(ADA_T1) == 5
        assert [await last(scope) for scope in (Scope("ada", "t2"), Scope("bob", "t1"))] == [0, 0]

    async def test_threads_are_listed_by_their_last_activity(self, documents: Documents):
        await finish_at(documents, "1", NOW, thread_id="old")
        late = await documents.conversations.accept(asked("2", thread_id="busy"))
        await documents.conversations.accept(asked("3", thread_id="busy"))
        for thread_id in ("tie1", "tie3", "tie2"):
            await finish_at(documents, thread_id, NOW + 5 * SECOND, thread_id=thread_id)
        reply = replace(answer(late), created_at=NOW + 9 * SECOND)
        assert await documents.conversations.commit(reply, result={}, update=owed())
        await finish_at(documents, "1", NOW + 99 * SECOND, user_id="bob", thread_id="bobs")
        tied = [ThreadOverview(f"tie{number}", NOW + 6 * SECOND, 2, 1, 2) for number in (3, 2, 1)]
        busy = ThreadOverview("busy", NOW + 9 * SECOND, 3, 1, 3)
        expected = [busy, *tied, ThreadOverview("old", NOW + SECOND, 2, 1, 2)]
        assert await documents.conversations.overviews("ada", limit=9) == expected
        assert await documents.conversations.overviews("ada", limit=0) == []
        assert await documents.conversations.overviews("eve", limit=9) == []
        for limit in (1, 2, 4):
            assert await paged(documents, limit=limit) == expected

    async def test_a_long_thread_hides_no_other(self, documents: Documents):
        await finish_at(documents, "first", NOW, thread_id="small")
        for number in range(110):
            await documents.conversations.accept(replace(asked(f"{number}"), created_at=NOW + 9 * SECOND))
        await finish_at(documents, "last", NOW + 99 * SECOND, thread_id="new")
        assert [each.thread_id for each in await documents.conversations.overviews("ada", limit=9)] == [
            "new",
            "t1",
            "small",
        ]
        assert [each.thread_id for each in await paged(documents, limit=1)] == ["new", "t1", "small"]

    async def test_many_threads_come_in_pages_that_join_up(self, documents: Documents):
        threads = [f"t{number}" for number in range(130)]
        await asyncio.gather(*(documents.conversations.accept(asked(t, thread_id=t)) for t in threads))
        assert [each.thread_id for each in await paged(documents, limit=50)] == sorted(threads, reverse=True)

    async def test_all_finished_turns_of_a_user_are_read(self, documents: Documents):
        turn_ids = [f"turn{number}" for number in range(self.more_than_a_batch)]
        await asyncio.gather(*(finish(documents, t, thread_id=t, update=full_update()) for t in turn_ids))
        await documents.conversations.accept(asked("open"))
        await finish(documents, "bobs", user_id="bob")
        found: list[Turn] = []
        async for batch in documents.conversations.turns("ada"):
            assert batch
            found += batch
        assert sorted(turn.message.turn_id for turn in found) == sorted(turn_ids)
        for turn in found[:3]:
            assert turn == await documents.conversations.turn(user_id="ada", turn_id=turn.message.turn_id)
        assert [batch async for batch in documents.conversations.turns("eve")] == []

    async def test_a_rewrite_compares_the_stored_update(self, documents: Documents):
        await finish(documents, "turn1", update=failed())
        bob = await finish(documents, "turn1", user_id="bob", update=failed())
        turn = await turn_of(documents)
        for update in (full_update(), indexed(), failed("again"), owed()):
            rewritten = replace(turn, result=NASTY_METADATA, update=update)
            assert await documents.conversations.rewrite(turn, result=NASTY_METADATA, update=update)
            assert await turn_of(documents) == rewritten
            assert not await documents.conversations.rewrite(turn, result={}, update=failed("late"))
            assert await turn_of(documents) == rewritten
            turn = rewritten
        stored = await documents.conversations.turn(user_id="bob", turn_id="turn1")
        assert stored == Turn(bob.user, bob.assistant, {"model": "m"}, failed())

    async def test_a_rewritten_update_is_pending_indexed_or_failed_as_it_says(self, documents: Documents):
        await finish(documents, "turn1", update=failed())
        turn = await turn_of(documents)
        assert await documents.conversations.rewrite(turn, result={}, update=owed())
        assert await documents.updates.pending("ada", limit=9) == [await turn_of(documents)]
        assert [batch async for batch in documents.updates.failed()] == []
        assert await documents.conversations.count_indexed_messages() == 0
        assert await documents.conversations.rewrite(await turn_of(documents), result={}, update=indexed())
        assert await documents.conversations.count_indexed_messages() == 2

    async def test_a_rewrite_leaves_the_generation(self, documents: Documents):
        await finish(documents, "turn1", update=owed())
        assert await documents.updates.record(await turn_of(documents), failed(), generation=5)
        turn = await turn_of(documents)
        assert await documents.conversations.rewrite(turn, result={}, update=owed())
        assert not await documents.updates.record(turn, indexed(), generation=4)
        assert await documents.updates.record(turn, indexed(), generation=5)

    async def test_of_concurrent_rewrites_one_wins(self, documents: Documents):
        await finish(documents, "turn1", update=failed())
        turn = await turn_of(documents)
        updates = [failed(str(number)) for number in range(10)]
        won = await asyncio.gather(
            *(documents.conversations.rewrite(turn, result={}, update=update) for update in updates)
        )
        assert sum(won) == 1
        assert (await turn_of(documents)).update == updates[won.index(True)]

    async def test_only_what_is_there_and_finished_is_rewritten(self, documents: Documents):
        message = await documents.conversations.accept(asked("open"))
        assert not await documents.conversations.rewrite(Turn(message), result={}, update=owed())
        assert not await documents.conversations.rewrite(Turn(message, update=owed()), result={}, update=owed())
        assert await documents.conversations.turn(user_id="ada", turn_id="open") == Turn(message)
        missing = Turn(asked("missing"), update=owed())
        assert not await documents.conversations.rewrite(missing, result={}, update=owed())

    async def test_aged_turns_are_those_begun_before(self, documents: Documents):
        old = await finish_at(documents, "old", NOW, update=failed())
        unfinished = await documents.conversations.accept(replace(asked("open"), created_at=NOW + 5 * SECOND))
        await finish_at(documents, "waits", NOW + 6 * SECOND, thread_id="t2", update=owed())
        bobs = await finish_at(documents, "bobs", NOW + 7 * SECOND, user_id="bob")
        new = await finish_at(documents, "new", NOW + 8 * SECOND, thread_id="t3")
        aged = documents.conversations.aged
        assert await aged(before=NOW + 9 * SECOND, limit=9) == [old, unfinished, bobs, new]
        assert await aged(before=NOW + 9 * SECOND, limit=3) == [old, unfinished, bobs]
        assert await aged(before=new.created_at, limit=9) == [old, unfinished, bobs]
        assert await aged(before=NOW, limit=9) == []
        assert await aged(before=NOW + 9 * SECOND, limit=0) == []

    async def test_pending_turns_hide_no_aged_ones_behind_them(self, documents: Documents):
        for number in range(5):
            await finish_at(documents, f"waits{number}", NOW, thread_id=f"t{number}", update=owed())
        done = await finish_at(documents, "done", NOW + SECOND, thread_id="t9")
        assert await documents.conversations.aged(before=NOW + 9 * SECOND, limit=1) == [done]
        assert await documents.conversations.oldest("ada", limit=1) == [done]

    async def test_a_users_oldest_turns_and_the_number_of_their_messages(self, documents: Documents):
        second = await finish_at(documents, "second", NOW + 5 * SECOND)
        first = await finish_at(documents, "first", NOW, thread_id="t2")
        third = await documents.conversations.accept(replace(asked("open"), created_at=NOW + 9 * SECOND))
        await finish_at(documents, "waits", NOW, thread_id="t3", update=owed())
        await finish_at(documents, "bobs", NOW, user_id="bob")
        assert await documents.conversations.oldest("ada", limit=9) == [first, second, third]
        assert await documents.conversations.oldest("ada", limit=2) == [first, second]
        assert await documents.conversations.oldest("ada", limit=0) == []
        assert await documents.conversations.oldest("eve", limit=9) == []
        assert [await documents.conversations.count_messages(user) for user in ("ada", "bob", "eve")] == [7, 2, 0]

    async def test_removed_turns_are_gone_whole(self, documents: Documents):
        for turn_id in ("1", "2", "3"):
            await finish(documents, turn_id, update=indexed())
        await documents.conversations.accept(asked("open"))
        bob = await finish(documents, "1", user_id="bob")
        remove = documents.conversations.remove
        assert await remove(user_id="ada", turn_ids=["1", "2", "open", "missing"]) == 5
        assert await remove(user_id="ada", turn_ids=["1", "2", "open", "missing"]) == 0
        assert await remove(user_id="ada", turn_ids=[]) == 0
        assert await documents.conversations.turn(user_id="ada", turn_id="1") is None
        listed = await documents.conversations.messages(ADA_T1, limit=9)
        assert [message.turn_id for message in listed] == ["3", "3"]
        assert await documents.conversations.count_indexed_messages() == 2
        assert await documents.conversations.recent(Scope("bob", "t1"), limit=9) == [Exchange(bob.user, bob.assistant)]
        assert await remove(user_id="ada", turn_ids=[f"no{number}" for number in range(499)] + ["3"]) == 2


async def turn_of(documents: Documents) -> Turn:
    turn = await documents.conversations.turn(user_id="ada", turn_id="turn1")
    assert turn is not None
    return turn
