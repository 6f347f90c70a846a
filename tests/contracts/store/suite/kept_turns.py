"""Checks what is done with turns after they were committed: shown in lists, learned again, let go."""

import asyncio
from dataclasses import replace
from datetime import datetime

from recollect.memory.ports.store import Store
from recollect.memory.values.scope import Scope
from recollect.memory.values.thread_record import ThreadOverview, ThreadRecord
from recollect.memory.values.turn import Exchange, Message, Turn
from recollect.memory.values.update import Update, not_owed, owed
from tests.contracts.store.samples import (
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
from tests.contracts.store.suite.past_turns import past, without_reply

ADA_T1 = Scope("ada", "t1")


async def finish_at(
    store: Store,
    turn_id: str,
    at: datetime,
    *,
    user_id: str = "ada",
    thread_id: str = "t1",
    update: Update | None = None,
) -> Message:
    """Return a turn whose user's message is of `at`, its reply a second younger; the user's message."""
    asking = replace(asked(turn_id, user_id=user_id, thread_id=thread_id), created_at=at)
    message = await store.conversations.accept(asking)
    assert await store.conversations.commit(answer(message), result={}, update=update or not_owed("disabled"))
    return message


async def paged(store: Store, *, limit: int) -> list[ThreadOverview]:
    found: list[ThreadOverview] = []
    while True:
        before = (found[-1].last_activity_at, found[-1].thread_id) if found else None
        page = await store.conversations.overviews("ada", limit=limit, before=before)
        assert len(page) <= limit
        if not page:
            return found
        found += page


class KeptTurnsContract:
    more_than_a_batch = 260

    async def test_a_thread_alone(self, store: Store):
        await finish_at(store, "late", NOW + SECOND, thread_id="t2")
        given = [without_reply(past(-9)), past(-5), without_reply(past(-7))]
        assert await store.imports.insert(given) == 3
        await store.conversations.accept(asked("open", thread_id="t3"))
        for thread_id in ("t1", "t2", "t3"):
            (listed,) = [one for one in await paged(store, limit=9) if one.thread_id == thread_id]
            assert await store.conversations.overview(Scope("ada", thread_id)) == listed
        alone = await store.conversations.overview(ADA_T1)
        assert alone == ThreadOverview("t1", past(-5).messages[-1].created_at, 6, 3, 4)
        assert await store.conversations.overview(Scope("ada", "t4")) is None
        assert await store.conversations.overview(Scope("eve", "t1")) is None

    async def test_a_thread_as_one_agent_sees_it(self, store: Store):
        for number, agent_id in enumerate((None, "support", "sales", "support")):
            message = await store.conversations.accept(replace(asked(f"{number}"), agent_id=agent_id))
            if number < 3:
                assert await store.conversations.commit(answer(message), result={}, update=not_owed("disabled"))
        support, sales, whole = [
            await store.conversations.overview(ADA_T1, agent_id=agent_id) for agent_id in ("support", "sales", None)
        ]
        assert support is not None
        assert sales is not None
        assert whole is not None
        assert (support.turns, support.messages, support.last_position) == (1, 3, 7)
        assert (sales.turns, sales.messages, sales.last_position) == (1, 2, 6)
        assert (whole.turns, whole.messages) == (3, 7)
        assert await store.conversations.overview(ADA_T1, agent_id="other") is None

    async def test_finished_turns_behind_a_position_come_oldest_first(self, store: Store):
        done = [await finish(store, f"{number}") for number in range(1, 4)]
        for number in range(9):
            await store.conversations.accept(asked(f"open{number}"))
        done.append(await finish(store, "last"))
        await store.conversations.accept(asked("open at the end"))
        await finish(store, "there", thread_id="t2")
        await finish(store, "bobs", user_id="bob")
        exchanges = store.conversations.exchanges
        assert await exchanges(ADA_T1, after=0, limit=50) == done
        assert await exchanges(ADA_T1, after=0, limit=2) == done[:2]
        assert await exchanges(ADA_T1, after=1, limit=50) == done[1:]
        assert await exchanges(ADA_T1, after=2, limit=1) == done[1:2]
        assert await exchanges(ADA_T1, after=3, limit=1) == done[2:3]
        assert await exchanges(ADA_T1, after=done[2].user.position, limit=1) == done[3:]
        assert await exchanges(ADA_T1, after=done[3].user.position, limit=9) == []
        assert await exchanges(ADA_T1, after=0, limit=0) == []

    async def test_the_last_position_is_the_threads_greatest(self, store: Store):
        last = store.conversations.last_position
        assert await last(ADA_T1) == 0
        await finish(store, "1")
        assert await last(ADA_T1) == 2
        message = await store.conversations.accept(asked("2"))
        await store.conversations.accept(asked("3"))
        assert await last(ADA_T1) == 5
        assert await store.conversations.commit(answer(message), result={}, update=owed())
        assert await last(ADA_T1) == 5
        assert [await last(scope) for scope in (Scope("ada", "t2"), Scope("bob", "t1"))] == [0, 0]

    async def test_threads_are_listed_by_their_last_activity(self, store: Store):
        await finish_at(store, "1", NOW, thread_id="old")
        late = await store.conversations.accept(asked("2", thread_id="busy"))
        await store.conversations.accept(asked("3", thread_id="busy"))
        for thread_id in ("tie1", "tie3", "tie2"):
            await finish_at(store, thread_id, NOW + 5 * SECOND, thread_id=thread_id)
        reply = replace(answer(late), created_at=NOW + 9 * SECOND)
        assert await store.conversations.commit(reply, result={}, update=owed())
        await finish_at(store, "1", NOW + 99 * SECOND, user_id="bob", thread_id="bobs")
        tied = [ThreadOverview(f"tie{number}", NOW + 6 * SECOND, 2, 1, 2) for number in (3, 2, 1)]
        busy = ThreadOverview("busy", NOW + 9 * SECOND, 3, 1, 3)
        expected = [busy, *tied, ThreadOverview("old", NOW + SECOND, 2, 1, 2)]
        assert await store.conversations.overviews("ada", limit=9) == expected
        assert await store.conversations.overviews("ada", limit=0) == []
        assert await store.conversations.overviews("eve", limit=9) == []
        for limit in (1, 2, 4):
            assert await paged(store, limit=limit) == expected

    async def test_a_long_thread_hides_no_other(self, store: Store):
        await finish_at(store, "first", NOW, thread_id="small")
        for number in range(110):
            await store.conversations.accept(replace(asked(f"{number}"), created_at=NOW + 9 * SECOND))
        await finish_at(store, "last", NOW + 99 * SECOND, thread_id="new")
        assert [each.thread_id for each in await store.conversations.overviews("ada", limit=9)] == [
            "new",
            "t1",
            "small",
        ]
        assert [each.thread_id for each in await paged(store, limit=1)] == ["new", "t1", "small"]

    async def test_many_threads_come_in_pages_that_join_up(self, store: Store):
        threads = [f"t{number}" for number in range(130)]
        await asyncio.gather(*(store.conversations.accept(asked(t, thread_id=t)) for t in threads))
        assert [each.thread_id for each in await paged(store, limit=50)] == sorted(threads, reverse=True)

    async def test_all_finished_turns_of_a_user_are_read(self, store: Store):
        turn_ids = [f"turn{number}" for number in range(self.more_than_a_batch)]
        await asyncio.gather(*(finish(store, t, thread_id=t, update=full_update()) for t in turn_ids))
        await store.conversations.accept(asked("open"))
        await finish(store, "bobs", user_id="bob")
        found: list[Turn] = []
        async for batch in store.conversations.turns("ada"):
            assert batch
            found += batch
        assert sorted(turn.message.turn_id for turn in found) == sorted(turn_ids)
        for turn in found[:3]:
            assert turn == await store.conversations.turn(user_id="ada", turn_id=turn.message.turn_id)
        assert [batch async for batch in store.conversations.turns("eve")] == []

    async def test_openings_are_the_first_messages_that_are_there(self, store: Store):
        for thread in ("t1", "t2"):
            for number in range(2):
                await finish(store, f"{thread}-{number}", thread_id=thread)
        await finish(store, "bobs", user_id="bob", thread_id="t3")
        await store.conversations.accept(replace(asked("open", thread_id="t4"), content="Ünï" * 9))
        found = await store.conversations.openings("ada", ["t1", "t2", "t3", "t4", "never"], characters=6)
        expected = asked("t1-0").content[:6]
        assert found == {"t1": expected, "t2": asked("t2-0").content[:6], "t4": "ÜnïÜnï"}
        assert await store.conversations.openings("ada", [], characters=6) == {}
        await store.conversations.remove(user_id="ada", turn_ids=["t1-0"])
        assert set(await store.conversations.openings("ada", ["t1"], characters=6)) == {"t1"}

    async def test_a_rewrite_compares_the_stored_update(self, store: Store):
        await finish(store, "turn1", update=failed())
        bob = await finish(store, "turn1", user_id="bob", update=failed())
        turn = await turn_of(store)
        for update in (full_update(), indexed(), failed("again"), owed()):
            rewritten = replace(turn, result=NASTY_METADATA, update=update)
            assert await store.conversations.rewrite(turn, result=NASTY_METADATA, update=update)
            assert await turn_of(store) == rewritten
            assert not await store.conversations.rewrite(turn, result={}, update=failed("late"))
            assert await turn_of(store) == rewritten
            turn = rewritten
        stored = await store.conversations.turn(user_id="bob", turn_id="turn1")
        assert stored == Turn(bob.user, bob.assistant, {"model": "m"}, failed())

    async def test_a_rewritten_update_is_pending_indexed_or_failed_as_it_says(self, store: Store):
        await finish(store, "turn1", update=failed())
        turn = await turn_of(store)
        assert await store.conversations.rewrite(turn, result={}, update=owed())
        assert await store.updates.pending("ada", limit=9) == [replace(await turn_of(store), result=None)]
        assert [batch async for batch in store.updates.failed()] == []
        assert await store.conversations.count_indexed_messages() == 0
        assert await store.conversations.rewrite(await turn_of(store), result={}, update=indexed())
        assert await store.conversations.count_indexed_messages() == 2

    async def test_a_rewrite_leaves_the_generation(self, store: Store):
        await finish(store, "turn1", update=owed())
        assert await store.updates.record(await turn_of(store), failed(), generation=5)
        turn = await turn_of(store)
        assert await store.conversations.rewrite(turn, result={}, update=owed())
        assert not await store.updates.record(turn, indexed(), generation=4)
        assert await store.updates.record(turn, indexed(), generation=5)

    async def test_of_concurrent_rewrites_one_wins(self, store: Store):
        await finish(store, "turn1", update=failed())
        turn = await turn_of(store)
        updates = [failed(str(number)) for number in range(10)]
        won = await asyncio.gather(*(store.conversations.rewrite(turn, result={}, update=update) for update in updates))
        assert sum(won) == 1
        assert (await turn_of(store)).update == updates[won.index(True)]

    async def test_only_what_is_there_and_finished_is_rewritten(self, store: Store):
        message = await store.conversations.accept(asked("open"))
        assert not await store.conversations.rewrite(Turn(message), result={}, update=owed())
        assert not await store.conversations.rewrite(Turn(message, update=owed()), result={}, update=owed())
        assert await store.conversations.turn(user_id="ada", turn_id="open") == Turn(message)
        missing = Turn(asked("missing"), update=owed())
        assert not await store.conversations.rewrite(missing, result={}, update=owed())

    async def test_aged_turns_are_those_begun_before(self, store: Store):
        old = await finish_at(store, "old", NOW, update=failed())
        unfinished = await store.conversations.accept(replace(asked("open"), created_at=NOW + 5 * SECOND))
        await finish_at(store, "waits", NOW + 6 * SECOND, thread_id="t2", update=owed())
        bobs = await finish_at(store, "bobs", NOW + 7 * SECOND, user_id="bob")
        new = await finish_at(store, "new", NOW + 8 * SECOND, thread_id="t3")
        aged = store.conversations.aged
        assert await aged(before=NOW + 9 * SECOND, limit=9) == [old, unfinished, bobs, new]
        assert await aged(before=NOW + 9 * SECOND, limit=3) == [old, unfinished, bobs]
        assert await aged(before=new.created_at, limit=9) == [old, unfinished, bobs]
        assert await aged(before=NOW, limit=9) == []
        assert await aged(before=NOW + 9 * SECOND, limit=0) == []

    async def test_pending_turns_hide_no_aged_ones_behind_them(self, store: Store):
        for number in range(5):
            await finish_at(store, f"waits{number}", NOW, thread_id=f"t{number}", update=owed())
        done = await finish_at(store, "done", NOW + SECOND, thread_id="t9")
        assert await store.conversations.aged(before=NOW + 9 * SECOND, limit=1) == [done]
        assert await store.conversations.oldest("ada", limit=1) == [done]

    async def test_a_users_oldest_turns_and_the_number_of_their_messages(self, store: Store):
        second = await finish_at(store, "second", NOW + 5 * SECOND)
        first = await finish_at(store, "first", NOW, thread_id="t2")
        third = await store.conversations.accept(replace(asked("open"), created_at=NOW + 9 * SECOND))
        await finish_at(store, "waits", NOW, thread_id="t3", update=owed())
        await finish_at(store, "bobs", NOW, user_id="bob")
        assert await store.conversations.oldest("ada", limit=9) == [first, second, third]
        assert await store.conversations.oldest("ada", limit=2) == [first, second]
        assert await store.conversations.oldest("ada", limit=0) == []
        assert await store.conversations.oldest("eve", limit=9) == []
        assert [await store.conversations.count_messages(user) for user in ("ada", "bob", "eve")] == [7, 2, 0]

    async def test_removed_turns_are_gone_whole(self, store: Store):
        for turn_id in ("1", "2", "3"):
            await finish(store, turn_id, update=indexed())
        await store.conversations.accept(asked("open"))
        bob = await finish(store, "1", user_id="bob")
        remove = store.conversations.remove
        assert await remove(user_id="ada", turn_ids=["1", "2", "open", "missing"]) == 5
        assert await remove(user_id="ada", turn_ids=["1", "2", "open", "missing"]) == 0
        assert await remove(user_id="ada", turn_ids=[]) == 0
        assert await store.conversations.turn(user_id="ada", turn_id="1") is None
        listed = await store.conversations.messages(ADA_T1, limit=9)
        assert [message.turn_id for message in listed] == ["3", "3"]
        assert await store.conversations.count_indexed_messages() == 2
        assert await store.conversations.recent(Scope("bob", "t1"), limit=9) == [Exchange(bob.user, bob.assistant)]
        assert await remove(user_id="ada", turn_ids=[f"no{number}" for number in range(499)] + ["3"]) == 2

    async def test_threads_are_found_by_id_title_and_first_message(self, store: Store) -> None:
        for thread_id, said in (("t1", "Grüße aus 100% Oslo"), ("t2", "Hello."), ("t3", "Nothing")):
            await store.conversations.accept(asked(f"of {thread_id}", thread_id=thread_id, content=said))
        await store.conversations.accept(asked("later", thread_id="t3", content="oslo, later"))
        await store.conversations.accept(asked("bobs", user_id="bob", content="Oslo"))
        assert await store.threads.put(ThreadRecord("ada", "t2", title="Moving to OSLO", revision=1), revision=0)

        async def found(text: str, before: tuple[datetime, str] | None = None) -> list[str]:
            threads = await store.conversations.overviews("ada", limit=9, text=text, before=before)
            return [one.thread_id for one in threads]

        assert sorted(await found("oslo")) == ["t1", "t2"]
        assert await found("GRÜSSE AUS".replace("SS", "ß")) == ["t1"]
        assert await found("T2") == ["t2"]
        assert await found("0% o") == ["t1"]
        assert await found(".*") == []
        (first,) = await store.conversations.overviews("ada", limit=1, text="oslo")
        (rest,) = await found("oslo", before=(first.last_activity_at, first.thread_id))
        assert {first.thread_id, rest} == {"t1", "t2"}


async def turn_of(store: Store) -> Turn:
    turn = await store.conversations.turn(user_id="ada", turn_id="turn1")
    assert turn is not None
    return turn
