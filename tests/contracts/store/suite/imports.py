import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from recollect.memory.ports.store import Store
from recollect.memory.values.further_message import FurtherMessage
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Exchange, Turn
from recollect.memory.values.update import not_owed, owed
from tests.contracts.store.conftest import Backend
from tests.contracts.store.samples import (
    LEASE,
    NASTY_IDS,
    NASTY_METADATA,
    NASTY_TEXTS,
    NOW,
    answer,
    asked,
    failed,
    finish,
    full_update,
    indexed,
)
from tests.contracts.store.suite.conversations import ids_of_indexed
from tests.contracts.store.suite.past_turns import (
    MINUTE,
    SETTLED,
    in_a_row,
    past,
    placed,
    said,
    stored,
    without_message,
    without_reply,
)

ADA = Scope("ada")
ADA_T1, ADA_T2 = Scope("ada", "t1"), Scope("ada", "t2")
MILLISECOND = timedelta(milliseconds=1)


class ImportsContract:
    many = 500
    """So many turns are settled at a time."""

    async def test_turns_come_back_as_they_were_given(self, store: Store):
        given = [past(1, name="Ada"), past(2, update=full_update()), past(3, update=not_owed("imported"))]
        given[0] = replace(given[0], message=replace(given[0].message, metadata=NASTY_METADATA), result=NASTY_METADATA)
        assert await store.imports.insert(given) == 3
        expected = in_a_row(given)
        assert [await stored(store, f"turn{number}") for number in (1, 2, 3)] == expected
        assert await store.conversations.messages(ADA_T1, limit=9) == said(expected)
        assert await store.imports.insert([]) == 0

    async def test_further_messages_come_back_wherever_the_message_does(self, store: Store):
        further = tuple(
            FurtherMessage(role, text, NOW - MINUTE, name=text, metadata=NASTY_METADATA)
            for role in ("user", "assistant", "system", "tool")
            for text in NASTY_TEXTS
        )
        given = [past(1), past(2)]
        given[0] = replace(given[0], message=replace(given[0].message, further=further, agent_id="support"))
        await store.imports.insert(given)
        expected = in_a_row(given)
        assert [await stored(store, f"turn{number}") for number in (1, 2)] == expected
        assert await store.conversations.messages(ADA_T1, limit=9) == said(expected)
        exchanges = await store.conversations.recent(ADA_T1, limit=9)
        assert [exchange.user.further for exchange in exchanges] == [further, ()]
        assert [turn async for turns in store.conversations.every(ADA) for turn in turns] == expected
        assert await store.conversations.count_messages("ada") == 4
        searchable = [one for turn in expected for one in turn.spoken]
        assert len(searchable) == 4 + 2 * sum(map(bool, NASTY_TEXTS))
        found = [one async for batch in store.conversations.indexed_messages(user_id="ada") for one in batch]
        assert sorted(found, key=lambda one: one.id) == sorted(searchable, key=lambda one: one.id)
        assert await store.conversations.count_indexed_messages() == len(searchable)
        assert (await store.counts.count(ADA)).messages == 4
        assert await store.conversations.remove(user_id="ada", turn_ids=["turn1"]) == 2
        assert await store.conversations.count_indexed_messages() == 2
        assert await store.conversations.messages(ADA_T1, limit=9) == said(expected[1:])

    @pytest.mark.parametrize("content", NASTY_TEXTS)
    async def test_any_text_comes_back(self, store: Store, content: str):
        turn = past(1)
        assert turn.reply is not None
        message = replace(turn.message, content=content, name=content, imported_id=content)
        turn = replace(turn, message=message, reply=replace(turn.reply, content=content), result={"text": content})
        assert await store.imports.insert([turn]) == 1
        assert await stored(store, "turn1") == placed(turn, 1)
        assert await store.imports.known("ada", [content]) == {content: placed(turn, 1).message}

    async def test_times_are_kept_as_given_in_whole_milliseconds(self, store: Store):
        await finish(store, "live")
        earlier = past(-600)
        later = past(-700)
        odd = replace(later, message=replace(later.message, created_at=later.message.created_at + MILLISECOND * 0.7))
        assert await store.imports.insert([earlier, odd]) == 2
        assert await stored(store, "turn-600") == placed(earlier, 3)
        assert await stored(store, "turn-700") == placed(later, 5)

    async def test_unfinished_turns_are_stored_as_such(self, store: Store):
        given = [past(1), Turn(past(2).message), past(3)]
        assert await store.imports.insert(given) == 3
        assert await store.imports.insert(given) == 0
        assert await stored(store, "turn2") == Turn(replace(past(2).message, position=3))
        assert await stored(store, "turn3") == placed(past(3), 5)
        assert await store.imports.insert([Turn(past(1).message), past(2)]) == 1
        assert await stored(store, "turn1") == placed(past(1), 1)
        assert await stored(store, "turn2") == placed(past(2), 3)

    async def test_a_reply_comes_with_its_result_and_update(self, store: Store):
        with pytest.raises(ValueError, match="turn1 has a reply without its result"):
            await store.imports.insert([replace(past(1), result=None)])
        assert await store.conversations.count_messages("ada") == 0

    async def test_positions_are_kept_where_they_lie_above_what_is_there(self, store: Store):
        await finish(store, "live")
        given = [placed(past(1), 1), placed(past(2), 9), past(3), placed(past(4), 11), placed(past(5), 21)]
        given += [placed(past(6, thread_id="t2"), 7), placed(past(7, thread_id="t2"), 7)]
        assert await store.imports.insert(given) == 7
        positions = [(await stored(store, f"turn{number}")).message.position for number in range(1, 8)]
        assert positions == [3, 9, 11, 13, 21, 7, 9]
        replies = [(await stored(store, f"turn{number}")).reply for number in range(1, 8)]
        assert [reply.position - 1 for reply in replies if reply] == positions

    async def test_stored_turns_are_found_by_their_ids(self, store: Store):
        await store.imports.insert([past(1), past(2), without_message(past(3))])
        await store.imports.insert([past(1, user_id="bob")])
        half = await store.conversations.accept(asked("open"))
        expected = {turn_id: await stored(store, turn_id) for turn_id in ("turn1", "turn3")}
        found = await store.imports.stored("ada", ["turn1", "turn3", "open", "missing", "' OR 1 --"])
        assert found == {**expected, "open": Turn(half)}
        assert await store.imports.stored("ada", []) == {}
        assert await store.imports.stored("eve", ["turn1"]) == {}

    async def test_five_hundred_turns_at_a_time(self, store: Store):
        given = [past(number, thread_id=f"t{number % 2 + 1}") for number in range(500)]
        assert await store.imports.insert(given) == 500
        for scope, first in ((ADA_T1, 0), (ADA_T2, 1)):
            expected = said(in_a_row(given[first::2]))
            assert await store.conversations.messages(scope, limit=999) == expected
        assert await store.imports.insert(given) == 0
        assert await store.conversations.count_messages("ada") == 1000
        assert await store.conversations.count_turns(ADA, at_most=999) == 500
        assert len(await store.imports.known("ada", [f"a{number}" for number in range(-10, 490)])) == 490

    async def test_threads_keep_the_order_in_which_their_turns_are_given(self, store: Store):
        live = await finish(store, "live", thread_id="t2")
        await store.conversations.accept(asked("open", thread_id="t2"))
        order = [(4, "t1"), (1, "t2"), (3, "t2"), (2, "t1"), (5, "t3")]
        given = [past(number, thread_id=thread_id) for number, thread_id in order]
        assert await store.imports.insert(given) == 5
        positions = [(await stored(store, f"turn{number}")).message.position for number, _ in order]
        assert positions == [1, 5, 7, 3, 1]
        assert (await store.conversations.recent(ADA_T2, limit=9))[0] == live

    async def test_what_is_there_stays_as_it_is(self, store: Store):
        assert await store.imports.insert([past(1), past(2)]) == 2
        before = await stored(store, "turn1")
        assert await store.updates.record(before, full_update(), generation=5)
        changed = replace(past(1), message=replace(past(1).message, content="Other."))
        elsewhere = past(2, thread_id="t2")
        assert await store.imports.insert([changed, past(3), elsewhere]) == 1
        assert await stored(store, "turn1") == replace(before, update=full_update())
        assert await stored(store, "turn3") == placed(past(3), 5)
        assert await store.conversations.messages(ADA_T2, limit=9) == []
        assert await store.conversations.count_messages("ada") == 6

    async def test_a_turn_cut_off_half_way_is_finished_in_its_place(self, store: Store):
        half = await store.conversations.accept(past(1).message)
        absent = await store.conversations.accept(without_message(past(2)).message)
        live = await finish(store, "live")
        assert await store.imports.known("ada", ["u1", "a1", "u2", "a2"]) == {}
        assert await store.imports.insert([past(1), without_message(past(2)), past(3)]) == 3
        first, second = await stored(store, "turn1"), await stored(store, "turn2")
        assert first == replace(placed(past(1), 1), message=half)
        assert second == replace(placed(without_message(past(2)), 3), message=absent)
        recent = await store.conversations.recent(ADA_T1, limit=9)
        assert [exchange.user.turn_id for exchange in recent] == ["turn1", "turn2", "live", "turn3"]
        assert recent[2] == live
        assert await store.conversations.count_indexed_messages() == 5
        assert await store.imports.insert([past(1), without_message(past(2)), past(3)]) == 0

    async def test_a_half_turn_of_another_thread_is_left_alone(self, store: Store):
        half = await store.conversations.accept(asked("turn1", thread_id="t2"))
        assert await store.imports.insert([past(1), past(2)]) == 1
        assert await stored(store, "turn1") == Turn(half)
        assert await store.conversations.messages(ADA_T1, limit=9) == said([placed(past(2), 1)])

    async def test_live_turns_go_on_behind_the_newest(self, store: Store):
        assert await store.imports.insert([past(9), past(1)]) == 2
        newest = past(9).messages[-1].created_at
        message = await store.conversations.accept(asked("live"))
        assert (message.position, message.created_at) == (5, newest + MILLISECOND)
        assert await store.conversations.commit(answer(message), result={}, update=owed())
        assert await store.conversations.recent(ADA_T1, limit=1) == [Exchange(message, answer(message))]

    async def test_live_turns_and_imports_of_a_thread_at_once_keep_apart(self, store: Store):
        batches = [[past(number) for number in range(first, first + 20)] for first in (0, 100, 200)]
        live = (finish(store, f"live{number}") for number in range(8))
        numbers, _ = await asyncio.gather(
            asyncio.gather(*(store.imports.insert(batch) for batch in batches)), asyncio.gather(*live)
        )
        assert numbers == [20, 20, 20]
        listed = await store.conversations.messages(ADA_T1, limit=999)
        assert len(listed) == 2 * (60 + 8)
        assert len({message.position for message in listed}) == len(listed)
        for batch in batches:
            ids = {turn.message.turn_id for turn in batch}
            assert [message.id for message in listed if message.turn_id in ids] == [one.id for one in said(batch)]
        for message, reply in zip(listed[::2], listed[1::2], strict=True):
            assert (message.turn_id, message.position) == (reply.turn_id, reply.position - 1)

    async def test_the_same_import_twice_at_once_stores_it_once(self, store: Store):
        given = [past(number) for number in range(30)]
        numbers = await asyncio.gather(*(store.imports.insert(given) for _ in range(4)))
        assert sum(numbers) == 30
        assert len(await store.conversations.messages(ADA_T1, limit=99)) == 60

    async def test_known_are_messages_of_finished_turns_by_their_own_ids(self, store: Store):
        given = in_a_row([past(1), without_reply(past(2)), without_message(past(3))])
        assert await store.imports.insert(given) == 3
        assert await store.imports.insert([past(1, user_id="bob"), past(8, user_id="bob")]) == 2
        await store.conversations.accept(past(4).message)
        await finish(store, "live")
        asked_for = ["u1", "a1", "u2", "a2", "u3", "a3", "u4", "u8", "", "live"]
        found = await store.imports.known("ada", asked_for)
        assert found == {message.imported_id: message for message in said(given)}
        assert set(found) == {"u1", "a1", "u2", "a3"}
        assert await store.imports.known("ada", []) == {}
        assert await store.imports.known("eve", asked_for) == {}

    async def test_hostile_ids_are_only_ids(self, store: Store):
        for user_id in NASTY_IDS:
            turns = [past(1, user_id=user_id, thread_id=thread_id) for thread_id in NASTY_IDS[:1]]
            assert await store.imports.insert(turns) == 1
        for user_id in NASTY_IDS:
            (found,) = (await store.imports.known(user_id, ["u1", "' OR 1 --", "$ne"])).values()
            assert found.user_id == user_id

    async def test_absent_messages_are_in_turns_and_nowhere_else(self, store: Store):
        disabled = not_owed("disabled")
        given = in_a_row([past(1), without_reply(past(2)), without_message(past(3)), past(4, update=disabled)])
        assert await store.imports.insert(given) == 4
        conversations = store.conversations
        read = [turn async for batch in conversations.turns("ada") for turn in batch]
        assert sorted(read, key=lambda turn: turn.message.position) == given
        exchanges = [Exchange(turn.message, turn.reply) for turn in given if turn.reply]
        assert await conversations.recent(ADA_T1, limit=9) == exchanges
        assert await conversations.exchanges(ADA_T1, after=0, limit=9) == exchanges
        assert await conversations.oldest("ada", limit=9) == [turn.message for turn in given]
        assert await conversations.aged(before=NOW + 9 * MINUTE, limit=9) == [turn.message for turn in given]
        assert await conversations.messages(ADA_T1, limit=9) == said(given)
        assert [message.position for message in await conversations.messages(ADA_T1, limit=2, after=1)] == [2, 3]
        assert await conversations.messages(ADA_T1, limit=1, after=4) == said(given)[3:4]
        assert await conversations.count_messages("ada") == 6
        assert await conversations.count_indexed_messages() == 4
        assert await ids_of_indexed(store) == sorted(message.id for message in said(given[:3]))
        (overview,) = await conversations.overviews("ada", limit=9)
        assert (overview.turns, overview.messages, overview.last_position) == (4, 6, 8)

    async def test_absent_messages_go_with_their_turn(self, store: Store):
        given = [past(1), without_reply(past(2)), without_message(past(3)), without_reply(past(4, thread_id="t2"))]
        assert await store.imports.insert(given) == 4
        assert await store.imports.insert([without_reply(past(1, user_id="bob"))]) == 1
        assert await store.conversations.remove(user_id="ada", turn_ids=["turn3"]) == 1
        assert await store.conversations.turn(user_id="ada", turn_id="turn3") is None
        assert await store.conversations.delete(ADA_T1) == 3
        assert await store.conversations.delete(ADA) == 1
        assert await store.conversations.count_messages("ada") == 0
        assert await store.conversations.last_position(ADA_T2) == 0
        assert await store.conversations.count_messages("bob") == 1

    async def test_imported_turns_wait_for_the_updater_in_their_order(self, store: Store):
        given = [past(number, thread_id=f"t{number % 3}", update=owed()) for number in (5, 1, 9, 3, 2, 8)]
        given[1], given[2] = without_reply(given[1]), without_message(given[2])
        live = await finish(store, "live", update=owed())
        assert await store.imports.insert(given) == 6
        pending = await store.updates.pending("ada", limit=9)
        turn_ids = [turn.message.turn_id for turn in pending]
        assert turn_ids == [live.user.turn_id, *(turn.message.turn_id for turn in given)]
        assert [len(turn.messages) for turn in pending] == [2, 2, 1, 1, 2, 2, 2]
        assert await store.updates.pending_users(limit=9) == ["ada"]
        assert await store.conversations.count_indexed_messages() == 0
        claim = await store.updates.claim("ada", owner="a", lease=LEASE, now=NOW)
        assert claim is not None
        assert await store.updates.record(pending[2], indexed(), generation=claim.generation)
        assert await store.conversations.count_indexed_messages() == 1

    async def test_settling_changes_what_still_is_owed_and_nothing_else(self, store: Store):
        await store.imports.insert([past(number, update=owed()) for number in range(4)])
        await store.imports.insert([past(1, user_id="bob", update=owed())])
        assert await store.updates.record(await stored(store, "turn0"), failed(), generation=7)
        await store.conversations.accept(asked("open"))
        turn_ids = ["turn0", "turn1", "turn2", "open", "missing"]
        assert await store.imports.settle("ada", turn_ids, owed=owed(), done=SETTLED) == 2
        assert await store.imports.settle("ada", turn_ids, owed=owed(), done=SETTLED) == 0
        assert await store.imports.settle("ada", [], owed=owed(), done=SETTLED) == 0
        assert [(await stored(store, f"turn{n}")).update for n in range(4)] == [failed(), SETTLED, SETTLED, owed()]
        assert [turn.message.turn_id for turn in await store.updates.pending("ada", limit=9)] == ["turn3"]
        assert (await stored(store, "turn1", user_id="bob")).update == owed()
        assert len(await ids_of_indexed(store, "ada")) == 6  # The failed turn is indexed.

    async def test_settling_each_turn_with_an_update_of_its_own(self, store: Store):
        await store.imports.insert([past(number, update=owed()) for number in range(4)])
        await store.imports.insert([past(1, user_id="bob", update=owed())])
        given = [await stored(store, f"turn{number}") for number in range(3)]
        assert await store.updates.record(given[0], failed(), generation=7)
        done = [SETTLED, full_update(), SETTLED]
        assert await store.imports.settle_each(given, done=done) == 2
        assert await store.imports.settle_each(given, done=done) == 0
        assert await store.imports.settle_each([], done=[]) == 0
        updates = [(await stored(store, f"turn{number}")).update for number in range(4)]
        assert updates == [failed(), full_update(), SETTLED, owed()]
        pending = await store.updates.pending("ada", limit=9)
        assert [turn.message.turn_id for turn in pending] == ["turn1", "turn3"]
        assert (await stored(store, "turn1", user_id="bob")).update == owed()

    async def test_settling_leaves_the_generation(self, store: Store):
        await store.imports.insert([past(1, update=owed())])
        turn = await stored(store, "turn1")
        assert await store.updates.record(turn, owed(), generation=5)
        assert await store.imports.settle("ada", ["turn1"], owed=owed(), done=indexed()) == 1
        assert not await store.updates.record(turn, owed(), generation=4)
        assert await store.updates.record(turn, owed(), generation=5)

    async def test_many_are_settled_at_a_time(self, store: Store):
        given = [past(number, update=owed()) for number in range(self.many)]
        assert await store.imports.insert(given) == self.many
        turn_ids = [turn.message.turn_id for turn in given]
        assert await store.imports.settle("ada", turn_ids, owed=owed(), done=indexed()) == self.many
        assert await store.conversations.count_indexed_messages() == 2 * self.many

    async def test_reopening_keeps_imported_turns(self, backend: Backend):
        turn = placed(without_reply(past(1)), 1)
        async with backend() as store:
            assert await store.imports.insert([turn]) == 1
        async with backend() as store:
            assert await store.imports.insert([turn]) == 0
            assert await stored(store, "turn1") == turn
