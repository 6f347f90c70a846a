"""Turns that are answered anew: the new reply takes the old one's place in one write."""

import asyncio
from dataclasses import replace

from recollect.memory.ports.store import Store
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Message, Turn
from recollect.memory.values.update import Update, not_owed, owed
from tests.contracts.store.samples import NASTY_METADATA, NOW, SECOND, asked, failed, finish, full_update, indexed


async def turn_of(store: Store, turn_id: str = "turn1", user_id: str = "ada") -> Turn:
    turn = await store.conversations.turn(user_id=user_id, turn_id=turn_id)
    assert turn is not None
    return turn


def answer_anew(turn: Turn, content: str = "Hello again!", later: int = 60) -> Message:
    assert turn.reply is not None
    created_at = turn.reply.created_at + later * SECOND
    return replace(turn.reply, content=content, created_at=created_at, name="bot", metadata=NASTY_METADATA)


class RecommitsContract:
    async def test_the_new_reply_stands_in_the_old_ones_place(self, store: Store):
        first = await finish(store, "first", update=indexed())
        await finish(store, "turn1", update=failed())
        bob = await finish(store, "turn1", user_id="bob", update=failed())
        turn = await turn_of(store)
        new = answer_anew(turn)
        recommit = store.conversations.recommit
        assert await recommit(turn, new, result=NASTY_METADATA, update=full_update())
        assert await turn_of(store) == Turn(turn.message, new, NASTY_METADATA, full_update())
        assert await store.conversations.messages(Scope("ada", "t1"), limit=9) == [
            first.user,
            first.assistant,
            turn.message,
            new,
        ]
        assert (await store.conversations.recent(Scope("ada", "t1"), limit=1))[0].assistant == new
        assert await turn_of(store, user_id="bob") == Turn(bob.user, bob.assistant, {"model": "m"}, failed())
        (thread,) = await store.conversations.overviews("ada", limit=9)
        assert (thread.last_activity_at, thread.turns, thread.messages) == (new.created_at, 2, 4)

    async def test_it_compares_the_stored_update(self, store: Store):
        await finish(store, "turn1", update=failed())
        turn = await turn_of(store)
        recommit = store.conversations.recommit
        assert not await recommit(replace(turn, update=owed()), answer_anew(turn), result={}, update=owed())
        assert not await recommit(replace(turn, update=None), answer_anew(turn), result={}, update=owed())
        assert await turn_of(store) == turn
        assert await recommit(turn, answer_anew(turn), result={}, update=owed())
        assert not await recommit(turn, answer_anew(turn, "Late."), result={}, update=failed("late"))
        assert (await turn_of(store)).reply == answer_anew(turn)

    async def test_of_concurrent_answers_one_wins_whole(self, store: Store):
        await finish(store, "turn1", update=failed())
        turn = await turn_of(store)
        answers = [(answer_anew(turn, f"Answer {number}."), failed(str(number))) for number in range(10)]
        won = await asyncio.gather(
            *(store.conversations.recommit(turn, new, result={}, update=update) for new, update in answers)
        )
        assert sum(won) == 1
        new, update = answers[won.index(True)]
        assert await turn_of(store) == Turn(turn.message, new, {}, update)

    async def test_what_it_owes_is_pending_again_in_its_old_place(self, store: Store):
        for turn_id in ("early", "turn1", "late"):
            await finish(store, turn_id, update=indexed() if turn_id == "turn1" else owed())
        assert await store.conversations.count_indexed_messages() == 2
        turn = await turn_of(store)
        assert await store.conversations.recommit(turn, answer_anew(turn), result={}, update=owed())
        assert await store.conversations.count_indexed_messages() == 0
        pending = await store.updates.pending("ada", limit=9)
        assert [one.message.turn_id for one in pending] == ["early", "turn1", "late"]

    async def test_a_claims_holder_fences_its_late_owners_out(self, store: Store):
        await finish(store, "turn1", update=owed())
        turn = await turn_of(store)
        recommit, record = store.conversations.recommit, store.updates.record
        assert await record(turn, owed(), generation=5)
        assert not await recommit(turn, answer_anew(turn), result={}, update=owed(), generation=4)
        assert await recommit(turn, answer_anew(turn), result={}, update=failed(), generation=6)
        assert not await record(turn, indexed(), generation=5)
        assert await record(turn, indexed(), generation=6)

    async def test_without_a_claim_the_generation_stays(self, store: Store):
        await finish(store, "turn1", update=owed())
        assert await store.updates.record(await turn_of(store), failed(), generation=5)
        turn = await turn_of(store)
        assert await store.conversations.recommit(turn, answer_anew(turn), result={}, update=owed())
        assert not await store.updates.record(turn, indexed(), generation=4)
        assert await store.updates.record(turn, indexed(), generation=5)

    async def test_what_is_missing_or_unfinished_has_nothing_to_replace(self, store: Store):
        message = await store.conversations.accept(asked("open"))
        unfinished = Turn(message, update=owed())
        reply = replace(message, role="assistant", position=message.position + 1, content="No.")
        assert not await store.conversations.recommit(unfinished, reply, result={}, update=owed())
        assert await store.conversations.turn(user_id="ada", turn_id="open") == Turn(message)
        missing = Turn(asked("missing"), update=owed())
        assert not await store.conversations.recommit(missing, reply, result={}, update=owed())
        await finish(store, "turn1", update=failed())
        turn = await turn_of(store)
        await store.conversations.delete(Scope("ada", "t1"))
        assert not await store.conversations.recommit(turn, answer_anew(turn), result={}, update=owed())
        assert await store.conversations.messages(Scope("ada", "t1"), limit=9) == []

    async def test_an_absent_reply_is_said_then(self, store: Store):
        message = replace(asked("past"), position=0, imported_id="m1")
        absent = Message("ada", "t1", "past", "assistant", "", NOW + SECOND, absent=True)
        imported = Turn(message, absent, {}, Update(steps=not_owed("import").steps))
        await store.imports.insert([imported])
        turn = await turn_of(store, "past")
        assert await store.conversations.count_messages("ada") == 1
        new = replace(answer_anew(turn, "At last."), absent=False)
        assert await store.conversations.recommit(turn, new, result={}, update=indexed())
        assert (await turn_of(store, "past")).messages == (turn.message, new)
        assert await store.conversations.count_messages("ada") == 2
        assert await store.conversations.count_indexed_messages() == 2
