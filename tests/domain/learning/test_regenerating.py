"""Answering a turn anew over real stores: what it owes then, and what becomes of what it taught."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from recollect.memory.facts.forgetting import ForgottenTraces
from recollect.memory.learning.turns.regenerating import (
    Regenerating,
    answered_anew,
    is_without_memory,
    last_turn,
    reopen,
)
from recollect.memory.values.decision import Change, Proposal
from recollect.memory.values.errors import NotFound, NotLastTurn, TurnConflict, UpdatePending, UserErased
from recollect.memory.values.planned_write import PlannedWrite
from recollect.memory.values.scope import Scope
from recollect.memory.values.thread_record import ThreadRecord
from recollect.memory.values.turn import Message, Turn
from recollect.memory.values.update import PreviousAnswer, Step, Update, not_owed, owed
from tests.contracts.store.samples import LEASE
from tests.domain.support.handling import House, house, says
from tests.domain.support.learner import Dying, Killed, dying_facts, facts_step

AT = datetime(2026, 11, 21, tzinfo=UTC)
EARLIER = datetime(2026, 11, 20, tzinfo=UTC)
BERGEN = Proposal("update", "city", "Bergen", "The user lives in Bergen.", "Bergen")
GONE = Proposal("delete", key="pet", evidence="Forget the dog")
ADDED = PlannedWrite(at_ms=1, inserts="f1", ends="f0", key="city", value="Rome")


@pytest.fixture
async def home(tmp_path: Path) -> AsyncGenerator[House]:
    async with house(tmp_path) as opened:
        yield opened


def done(**more: Any) -> Update:
    return Update(steps={"facts": Step("done"), "index": Step("done")}, **more)


def test_a_turn_that_taught_nothing_owes_what_a_new_one_does() -> None:
    assert answered_anew(done(), owed(), at=AT) == replace(owed(), anew=True)
    assert answered_anew(done(learned=2), owed(), at=AT) == replace(owed(), anew=True, learned=2)
    assert answered_anew(done(), not_owed("disabled"), at=AT) == replace(not_owed("disabled"), anew=True)


def test_what_was_taught_is_to_be_taken_back_before_the_next_round() -> None:
    confirmed = PlannedWrite(at_ms=2, confirms="f2")
    changes = (Change("update", "f1", "city", "Oslo", "Rome", "Rome"), Change("keep", "f2", "pet", "dog", "dog", ""))
    before = done(changes=changes, writes=(ADDED, confirmed), model="m", planned=True, wanted_model="x")
    earlier = PreviousAnswer(AT, (ADDED,), ("f1", "f2"))
    assert answered_anew(before, owed(), at=AT) == replace(owed(), anew=True, learned=1, earlier=earlier)


def test_what_an_earlier_answers_turn_has_not_taken_back_yet_is_taken_back_with_it() -> None:
    older = PlannedWrite(at_ms=0, inserts="f9")
    before = replace(
        owed(), learned=1, anew=True, writes=(ADDED,), earlier=PreviousAnswer(EARLIER, (older,), ("f9", "f8"))
    )
    update = answered_anew(before, owed(), at=AT)
    assert (update.learned, update.earlier) == (2, PreviousAnswer(AT, (older, ADDED), ("f9", "f8", "f1")))


def test_what_was_undone_is_remembered_but_not_taken_back_again() -> None:
    blank = PlannedWrite(at_ms=1)
    before = done(changes=(Change("add", "f1", "city", None, "Rome", "Rome"),), writes=(blank,))
    update = answered_anew(before, owed(), at=AT)
    assert (update.learned, update.earlier) == (1, PreviousAnswer(AT, (), ("f1",), done=True))


def test_a_turn_that_learns_nothing_this_time_takes_back_all_the_same() -> None:
    update = answered_anew(done(writes=(ADDED,)), owed(trivial=True), at=AT)
    assert update.planned
    assert {name: step.status for name, step in update.steps.items()} == {"facts": "pending", "index": "pending"}
    assert answered_anew(done(), owed(trivial=True), at=AT).steps["facts"].status == "skipped"


def test_a_forgotten_fact_leaves_no_text_in_what_is_to_be_taken_back() -> None:
    message = Message("ada", "t1", "turn1", "user", "Hello.", AT)
    kept = PlannedWrite(at_ms=2, inserts="f2", key="pet", value="dog")
    update = replace(owed(), earlier=PreviousAnswer(AT, (ADDED, kept), ("f1", "f2")))
    clean = ForgottenTraces(frozenset({"f1"}), frozenset()).without(Turn(message, update=update)).update
    assert clean is not None
    assert clean.earlier == PreviousAnswer(AT, (PlannedWrite(at_ms=1, inserts="f1", ends="f0"), kept), ("f1", "f2"))


def test_whether_a_turn_ran_without_memory() -> None:
    message = Message("ada", "t1", "turn1", "user", "Hello.", AT)
    assert is_without_memory(Turn(message, update=not_owed("disabled")))
    assert not is_without_memory(Turn(message, update=owed(trivial=True)))
    assert not is_without_memory(Turn(message))


@pytest.mark.parametrize("summary_by", ["model", "extract", "person"])
def test_a_record_without_its_last_turn(summary_by: Any) -> None:
    record = ThreadRecord(
        "ada", "t1", "A title", "They met.", summary_by, 6, AT, archived_to=6, archived_at=AT, closing=True, revision=3
    )
    without = record.without(5)
    is_persons = summary_by == "person"
    assert (without.summary, without.summarised_to) == (("They met.", 4) if is_persons else (None, 0))
    assert (without.archived_to, without.closing, without.title) == (4, False, "A title")
    assert record.without(7) == record


async def regenerate(home: House, turn_id: str, *proposals: Proposal, reply: str = "Anew.") -> Update:
    """Return a new answer of the turn, which teaches these; its update once it has ended."""
    turn = await home.stored(turn_id)
    assert turn.reply is not None
    home.extractor.lessons[turn.message.content] = proposals
    answer = replace(turn.reply, content=reply, created_at=home.clock())
    stored = await regenerating(home).replace(answer, result={"model": "m2"}, owed=owed())
    assert (stored.reply, stored.result) == (answer, {"model": "m2"})
    home.updater.notify("ada")
    await home.updater.wait_ended(user_id="ada", turn_id=turn_id, seconds=10)
    home.clock.jump()
    return await home.update(turn_id)


def regenerating(home: House, wait_seconds: float = 5) -> Regenerating:
    return Regenerating(home.store, home.stores.index, home.clock, wait_seconds)


async def two_turns(home: House) -> None:
    await home.turn("a", says("city", "Oslo"), says("pet", "dog"), says("name", "Ada"))
    await home.turn("b", says("job", "nurse"), BERGEN, GONE, Proposal("keep", key="name", evidence="Ada"))
    assert await home.known() == {"city": "Bergen", "name": "Ada", "job": "nurse"}


async def test_each_answer_teaches_in_the_place_of_the_one_before(home: House) -> None:
    await two_turns(home)
    for _ in range(2):
        update = await regenerate(home, "b", says("job", "nurse"), GONE)
        assert [(change.decision, change.key) for change in update.changes] == [("add", "job"), ("delete", "pet")]
        assert await home.known() == {"city": "Oslo", "name": "Ada", "job": "nurse"}
        await home.check_index()
    await regenerate(home, "b")
    assert await home.known() == {"city": "Oslo", "name": "Ada", "pet": "dog"}
    await regenerate(home, "b", BERGEN, says("job", "nurse"))
    assert await home.known() == {"city": "Bergen", "name": "Ada", "pet": "dog", "job": "nurse"}
    await home.turns.undo("ada", "b")
    assert await home.known() == {"city": "Oslo", "name": "Ada", "pet": "dog"}
    await home.check_index()


async def test_an_undone_turn_teaches_again_with_its_new_answer(home: House) -> None:
    await two_turns(home)
    await home.turns.undo("ada", "b")
    await regenerate(home, "b", says("job", "nurse"), BERGEN)
    assert await home.known() == {"city": "Bergen", "name": "Ada", "pet": "dog", "job": "nurse"}


async def test_what_changed_since_stays(home: House) -> None:
    await two_turns(home)
    await home.facts.put("ada", "city", {"value": "Paris"})
    await home.facts.forget("ada", (await home.one("job")).id)
    await home.turn("c", says("pet", "cat"), thread="t2")
    update = await regenerate(home, "b", says("job", "nurse"), BERGEN, GONE)
    assert await home.known() == {"city": "Paris", "name": "Ada", "pet": "cat"}
    assert {refused.reason for refused in update.refused} >= {"a person forgot it"}
    await home.check_index()


async def test_learning_again_afterwards_only_adds(home: House) -> None:
    await two_turns(home)
    await regenerate(home, "b", says("job", "nurse"))
    turn = await home.stored("b")
    home.extractor.lessons[turn.message.content] = (BERGEN, GONE)
    learned = await home.turns.learn("ada", "b")
    assert [change["key"] for change in learned["update"]["changes"]] == ["job", "city"]
    assert await home.known() == {"city": "Bergen", "name": "Ada", "pet": "dog", "job": "nurse"}


async def test_a_kill_at_any_write_is_made_good(tmp_path: Path) -> None:
    async with house(tmp_path / "whole") as home:
        await two_turns(home)
        counting = Dying(home.store.facts, 1_000)
        whole, _ = await learned_by(home, counting)
        writes = 1_000 - counting.left
    assert writes >= 7
    for cut in range(writes):
        async with house(tmp_path / str(cut)) as home:
            await two_turns(home)
            update, saved = await learned_by(home, Dying(home.store.facts, cut))
            assert update is None
            for _ in range(2):
                update, saved = await learned_by(home, home.store.facts, saved)
                assert update is not None
                assert whole is not None
                assert [(one.decision, one.key, one.after) for one in update.changes] == [
                    (one.decision, one.key, one.after) for one in whole.changes
                ]
                assert await home.known() == {"city": "Bergen", "name": "Ada", "work": "nurse"}
            await home.check_index()


async def learned_by(home: House, facts: Any, given: Update | None = None) -> tuple[Update | None, Update]:
    """Run the facts step of turn b's new answer; return its update (None if killed) and the one recorded last."""
    turn = await home.stored("b")
    home.extractor.lessons[turn.message.content] = (BERGEN, says("work", "nurse"), GONE)
    assert turn.update is not None
    saved = given or answered_anew(turn.update, owed(), at=AT)

    async def save(update: Update) -> None:
        nonlocal saved
        saved = update

    step = facts_step(home.stores, home.extractor, clock=home.clock, store=dying_facts(home.store, facts))
    try:
        update = await step.run(turn, saved, save)
    except Killed:
        return None, saved
    return update, update


async def test_who_works_on_the_old_answers_update_is_waited_for(home: House) -> None:
    await two_turns(home)
    turn = await home.stored("b")
    assert turn.reply is not None
    assert turn.update is not None
    assert await home.store.conversations.rewrite(turn, result={}, update=owed())
    claim = await home.store.updates.claim("ada", owner="other", lease=LEASE, now=home.clock())
    assert claim is not None
    with pytest.raises(UpdatePending):
        await regenerating(home, 0.2).replace(turn.reply, result={}, owed=owed())
    await home.store.updates.release(claim)
    await regenerate(home, "b", says("job", "nurse"))
    assert (await home.stored("b")).reply != turn.reply


async def test_a_turn_that_is_gone_is_not_answered(home: House) -> None:
    await two_turns(home)
    turn = await home.stored("b")
    assert turn.reply is not None
    await home.store.conversations.delete(Scope("ada", "t1"))
    with pytest.raises(UserErased):
        await regenerating(home).replace(turn.reply, result={}, owed=owed())
    assert await home.store.conversations.messages(Scope("ada", "t1"), limit=9) == []


async def test_only_a_threads_last_turn_is_one(home: House) -> None:
    await two_turns(home)
    await home.turn("c", thread="t2")
    scope = Scope("ada", "t1")
    assert await last_turn(home.store, scope, "b") == await home.stored("b")
    with pytest.raises(NotLastTurn):
        await last_turn(home.store, scope, "a")
    with pytest.raises(TurnConflict):
        await last_turn(home.store, scope, "c")
    with pytest.raises(NotFound):
        await last_turn(home.store, scope, "never")
    await home.store.conversations.accept(Message("ada", "t1", "open", "user", "Hm.", home.clock()))
    with pytest.raises(NotLastTurn):
        await last_turn(home.store, scope, "b")
    assert (await last_turn(home.store, scope, "open")).reply is None


async def test_a_turn_in_which_the_user_said_nothing_has_no_answer(home: House) -> None:
    absent = Message("ada", "t1", "past", "user", "", AT, absent=True)
    told = Message("ada", "t1", "past", "assistant", "Hi!", AT, imported_id="m1")
    await home.store.imports.insert([Turn(absent, told, {}, not_owed("import"))])
    with pytest.raises(TurnConflict):
        await last_turn(home.store, Scope("ada", "t1"), "past")


async def test_a_thread_is_reopened_once(home: House) -> None:
    turn = await home.turn("a")
    assert not await reopen(home.store, turn.message)
    record = ThreadRecord("ada", "t1", summary="They met.", summarised_to=2, archived_to=2, revision=7)
    assert await home.store.threads.put(record, revision=0)
    assert await reopen(home.store, turn.message)
    reopened = await home.store.threads.record(Scope("ada", "t1"))
    assert reopened == ThreadRecord("ada", "t1", revision=8, indexed=False)
    assert not await reopen(home.store, turn.message)


async def test_the_old_answer_is_found_no_more_before_the_new_one_is_indexed(home: House) -> None:
    turn = await home.turn("a", says("city", "Oslo"))
    assert turn.reply is not None
    point = turn.reply.id
    assert [entry.id for entry in await home.stores.index.entries([point])] == [point]
    await regenerating(home).replace(replace(turn.reply, content="Anew."), result={}, owed=owed())
    assert await home.stores.index.entries([point]) == []
    home.updater.notify("ada")
    await home.updater.wait_ended(user_id="ada", turn_id="a", seconds=10)
    assert [entry.content for entry in await home.stores.index.entries([point])] == ["Anew."]
    await home.check_index()
