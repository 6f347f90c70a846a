"""The updater over a real store, with step works that do as they are told."""

import asyncio
import logging
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from recollect.memory.ports.store import Store
from recollect.memory.stores.sqlite import open_sqlite_store
from recollect.memory.updates.pending_turns import BATCH
from recollect.memory.updates.user_work import TOGETHER_SECONDS
from recollect.memory.updates.work_claim import LEASE
from recollect.memory.values.decision import Change
from recollect.memory.values.errors import ModelUnavailable, StoreUnavailable, UnreadableAnswer
from recollect.memory.values.times import utc_now
from recollect.memory.values.update import MAX_ATTEMPTS, Step, owed
from tests.contracts.store.samples import finish
from tests.domain.support.updating import HOUR, JumpingClock, Scripted, eventually, update_of, updater

CHANGE = Change("add", "id", "name", None, "Ada", "I'm Ada")


async def finish_all(store: Store, count: int, *, user_id: str = "ada") -> list[str]:
    names = [f"turn{number:03}" for number in range(count)]
    for name in names:
        await finish(store, name, user_id=user_id, update=owed())
    return names


async def test_a_users_turns_are_worked_off_in_the_order_of_their_commits(store: Store) -> None:
    facts, index = Scripted(), Scripted()
    async with updater(store, facts=facts, index=index) as works:
        names = await finish_all(store, 5)
        works.notify("ada")
        last = await works.wait_ended(user_id="ada", turn_id=names[-1], seconds=10)
        assert last is not None
        assert last.status == "done"
        await eventually(lambda: len(index.done) == 5)
    assert facts.started == facts.done == index.started == index.done == names
    assert (facts.most_at_once, index.most_at_once) == (1, 1)


async def test_what_a_start_finds_pending_is_resumed(store: Store) -> None:
    names = await finish_all(store, 3)
    await finish_all(store, 2, user_id="bob")
    facts = Scripted()
    async with updater(store, facts=facts) as works:
        for user_id, turn_id in (("ada", names[-1]), ("bob", names[1])):
            ended = await works.wait_ended(user_id=user_id, turn_id=turn_id, seconds=10)
            assert ended is not None
            assert ended.status == "done"
    assert sorted(facts.done) == sorted([*names, *names[:2]])


async def test_the_sweep_finds_what_nobody_announced(store: Store) -> None:
    async with updater(store, sweep_seconds=0.02) as works:
        await finish(store, "turn1", update=owed())
        ended = await works.wait_ended(user_id="ada", turn_id="turn1", seconds=10)
        assert ended is not None
        assert ended.status == "done"


@pytest.mark.parametrize("waiting", ["facts", "index"])
async def test_a_step_that_waits_never_blocks_another_kind(store: Store, waiting: str) -> None:
    stuck, free = Scripted(), Scripted()
    facts, index = (stuck, free) if waiting == "facts" else (free, stuck)
    names = await finish_all(store, 3)
    stuck.fail(names[0], *[ModelUnavailable()] * 1_000)
    async with updater(store, facts=facts, index=index) as works:
        works.notify("ada")
        await eventually(lambda: free.done == names and stuck.started != [])
        assert stuck.done == []
        assert set(stuck.started) == {names[0]}, "later turns wait behind an earlier waiting step of the same kind"
        stuck.errors[names[0]].clear()
        await eventually(lambda: stuck.done == names)


async def test_a_long_backlog_of_one_kind_hides_no_work_of_the_other(store: Store) -> None:
    facts, index = Scripted(), Scripted()
    names = await finish_all(store, BATCH + 20)
    facts.fail(names[0], *[ModelUnavailable()] * 1_000)
    async with updater(store, facts=facts, index=index):
        await eventually(lambda: index.done == names)
        facts.errors[names[0]].clear()
        await eventually(lambda: facts.done == names, seconds=30)


async def test_outages_are_retried_for_as_long_as_they_last(store: Store) -> None:
    clock, facts = JumpingClock(), Scripted()
    await finish(store, "turn1", update=owed())
    facts.fail("turn1", *[ModelUnavailable(), StoreUnavailable(), TimeoutError()] * 4)
    async with updater(store, clock=clock, facts=facts) as works:
        for tries in range(1, 13):
            await eventually(lambda tries=tries: len(facts.started) >= tries)
            waiting = await works.wait_tried(user_id="ada", turn_id="turn1", seconds=10)
            assert waiting is not None
            assert waiting.status == "pending"
            clock.jump()
            works.notify("ada")
        ended = await works.wait_ended(user_id="ada", turn_id="turn1", seconds=10)
    assert ended is not None
    assert ended.steps["facts"] == Step(status="done", tries=13)


@pytest.mark.parametrize("error", [ModelUnavailable(outage=False), UnreadableAnswer(), ValueError("my words")])
async def test_other_errors_fail_after_five_attempts_and_the_next_goes_on(
    store: Store, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    clock, facts = JumpingClock(), Scripted()
    names = await finish_all(store, 2)
    facts.fail(names[0], *[error] * 9)
    async with updater(store, clock=clock, facts=facts) as works:
        for tries in range(1, MAX_ATTEMPTS):
            await eventually(lambda tries=tries: len(facts.started) >= tries)
            clock.jump()
            works.notify("ada")
        ended = await works.wait_ended(user_id="ada", turn_id=names[0], seconds=10)
        following = await works.wait_ended(user_id="ada", turn_id=names[1], seconds=10)
    assert ended is not None
    assert following is not None
    assert (ended.status, ended.steps["facts"].attempts) == ("failed", MAX_ATTEMPTS)
    assert ended.reason is not None
    assert ended.reason.startswith("facts: ")
    assert "my words" not in ended.reason
    assert following.status == "done"
    assert facts.started == [names[0]] * MAX_ATTEMPTS + [names[1]]
    assert {getattr(record, "action", None) for record in caplog.records if record.levelno >= logging.WARNING} == {
        "step_failed"
    }


async def test_a_back_off_ends_by_itself(store: Store) -> None:
    facts = Scripted()
    await finish(store, "turn1", update=owed())
    facts.fail("turn1", ModelUnavailable(), ModelUnavailable())
    async with updater(store, facts=facts) as works:
        ended = await works.wait_ended(user_id="ada", turn_id="turn1", seconds=10)
    assert ended is not None
    assert ended.steps["facts"] == Step(status="done", tries=3)


async def test_a_back_off_that_an_earlier_process_left_is_kept(store: Store) -> None:
    due_at = utc_now() + HOUR
    waiting = replace(owed(), steps={"facts": Step(tries=1, due_at=due_at), "index": Step()})
    await finish(store, "turn1", update=waiting)
    clock, facts, index = JumpingClock(), Scripted(), Scripted()
    async with updater(store, clock=clock, facts=facts, index=index) as works:
        await eventually(lambda: index.done == ["turn1"])
        await works.wait_tried(user_id="ada", turn_id="turn1", seconds=10)
        assert facts.started == []
        clock.jump(2 * HOUR)
        works.notify("ada")
        await eventually(lambda: facts.done == ["turn1"])


async def test_what_one_step_learned_survives_a_slower_other_step(store: Store) -> None:
    facts = Scripted(learn=lambda update: replace(update, planned=True, model="m", changes=(CHANGE,)))
    index = Scripted()
    index.gate.clear()
    await finish(store, "turn1", update=owed())
    async with updater(store, facts=facts, index=index) as works:
        await eventually(lambda: index.started == ["turn1"] and facts.done == ["turn1"])
        shown = await works.wait_ended(user_id="ada", turn_id="turn1", seconds=0.2)
        assert shown is not None
        assert (shown.steps["facts"].status, shown.changes) == ("done", (CHANGE,))
        index.gate.set()
        ended = await works.wait_ended(user_id="ada", turn_id="turn1", seconds=10)
    stored = await update_of(store, "turn1")
    assert ended == stored
    assert (stored.status, stored.model, stored.planned, stored.changes) == ("done", "m", True, (CHANGE,))


async def test_users_are_worked_on_side_by_side(store: Store) -> None:
    facts = Scripted()
    facts.gate.clear()
    async with updater(store, facts=facts) as works:
        for user_id in ("ada", "bob", "cleo"):
            await finish(store, "turn1", user_id=user_id, update=owed())
            works.notify(user_id)
        await eventually(lambda: sum(facts.at_once.values()) == 3)
        facts.gate.set()
        await eventually(lambda: len(facts.done) == 3)
    assert facts.most_at_once == 1


async def test_facts_that_are_done_are_recorded_with_the_index_or_a_second_later(store: Store) -> None:
    facts, index = Scripted(), Scripted()
    index.gate.clear()
    async with updater(store, facts=facts, index=index) as works:
        await finish(store, "turn1", update=owed())
        works.notify("ada")
        await eventually(lambda: bool(index.started))
        assert (facts.done, (await update_of(store, "turn1")).steps["facts"].status) == (["turn1"], "pending")
    # A kill here: the facts step runs once more, with the effect of once.
    index = Scripted()
    index.gate.clear()
    async with updater(store, facts=facts, index=index):
        await eventually(lambda: bool(index.started))
        assert facts.done == ["turn1", "turn1"]
        await asyncio.sleep(TOGETHER_SECONDS * 1.5)
        update = await update_of(store, "turn1")
        assert (update.steps["facts"].status, update.steps["index"].status) == ("done", "pending")
        index.gate.set()
        await eventually(lambda: index.done == ["turn1"])


async def test_a_turn_that_vanishes_while_it_is_indexed_is_taken_back_by_both_steps(store: Store) -> None:
    facts, index = Scripted(), Scripted()
    index.gate.clear()
    async with updater(store, facts=facts, index=index) as works:
        exchange = await finish(store, "turn1", update=owed())
        works.notify("ada")
        await eventually(lambda: bool(index.started))
        await store.conversations.delete(exchange.user.scope)
        index.gate.set()
        await eventually(lambda: index.taken_back == ["turn1"])
        await eventually(lambda: facts.taken_back == ["turn1"])


async def test_no_more_steps_of_a_kind_run_at_once_than_allowed(store: Store) -> None:
    facts, index = Scripted(), Scripted()
    facts.gate.clear()
    async with updater(store, facts=facts, index=index, concurrency=2) as works:
        for number in range(4):
            await finish(store, "turn1", user_id=f"user{number}", update=owed())
            works.notify(f"user{number}")
        await eventually(lambda: len(index.done) == 4)  # The kind whose model hangs holds up its own only.
        assert len(facts.started) == 2
        facts.gate.set()
        await eventually(lambda: len(facts.done) == 4)


async def test_a_user_whom_another_process_holds_is_left_alone_until_the_lease_ends(store: Store) -> None:
    clock, facts = JumpingClock(), Scripted()
    rival = await store.updates.claim("ada", owner="rival", lease=LEASE, now=clock())
    assert rival is not None
    await finish(store, "turn1", update=owed())
    async with updater(store, clock=clock, facts=facts) as works:
        works.notify("ada")
        waiting = await works.wait_ended(user_id="ada", turn_id="turn1", seconds=1)
        assert waiting is not None
        assert waiting.status == "pending"
        assert facts.started == []
        clock.jump(2 * LEASE)
        ended = await works.wait_ended(user_id="ada", turn_id="turn1", seconds=10)
    assert ended is not None
    assert ended.status == "done"


async def test_a_held_user_is_asked_for_now_and_then_only(store: Store) -> None:
    clock = JumpingClock()
    rival = await store.updates.claim("ada", owner="rival", lease=HOUR, now=utc_now())
    assert rival is not None
    await finish(store, "turn1", update=owed())
    async with updater(store, clock=clock) as works:
        works.notify("ada")
        await works.wait_ended(user_id="ada", turn_id="turn1", seconds=1.2)
    assert 2 <= clock.asked <= 20


async def test_a_store_that_cannot_be_reached_is_asked_now_and_then_only(tmp_path: Path) -> None:
    clock = JumpingClock()
    async with open_sqlite_store(tmp_path / "recollect.db") as store:
        pass
    async with updater(store, clock=clock) as works:
        works.notify("ada")
        await asyncio.sleep(1.2)
    assert 2 <= clock.asked <= 20


async def test_a_late_owner_is_fenced_out(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    clock, facts = JumpingClock(), Scripted(learn=lambda update: replace(update, model="late"))
    facts.gate.clear()
    await finish(store, "turn1", update=owed())
    async with updater(store, clock=clock, facts=facts) as works:
        await eventually(lambda: facts.started == ["turn1"])
        taken = await store.updates.claim("ada", owner="rival", lease=LEASE, now=clock() + 2 * LEASE)
        assert taken is not None
        (turn,) = await store.updates.pending("ada", limit=9)
        assert turn.update is not None
        theirs = replace(turn.update, model="rival", steps={"facts": Step(status="done"), "index": Step(status="done")})
        assert await store.updates.record(turn, theirs, generation=taken.generation)
        facts.gate.set()
        await eventually(lambda: any(getattr(record, "action", "") == "fenced" for record in caplog.records))
        assert await works.wait_ended(user_id="ada", turn_id="turn1", seconds=10) == theirs
    assert await update_of(store, "turn1") == theirs


async def test_a_drain_lets_running_steps_end(store: Store) -> None:
    facts = Scripted()
    facts.gate.clear()
    names = await finish_all(store, 3)
    async with updater(store, facts=facts) as works:
        await eventually(lambda: facts.started == names[:1])
        asyncio.get_running_loop().call_later(0.1, facts.gate.set)
        await works.drain(10)
    assert facts.done == names
    assert (await update_of(store, names[-1])).status == "done"


async def test_a_drain_ends_within_its_bound_and_the_next_start_goes_on(store: Store) -> None:
    stuck = Scripted()
    stuck.gate.clear()
    await finish(store, "turn1", update=owed())
    async with updater(store, facts=stuck) as works:
        await eventually(lambda: stuck.started == ["turn1"])
        begun = asyncio.get_running_loop().time()
        await works.drain(0.2)
        assert asyncio.get_running_loop().time() - begun < 2
        works.notify("ada")
        assert stuck.started == ["turn1"]
    assert (await update_of(store, "turn1")).status == "pending"
    facts = Scripted()
    async with updater(store, facts=facts) as works:
        ended = await works.wait_ended(user_id="ada", turn_id="turn1", seconds=10)
    assert ended is not None
    assert ended.status == "done"
    assert facts.done == ["turn1"]


async def test_waiting_ends_with_its_time_or_its_cause(store: Store) -> None:
    facts = Scripted()
    await finish(store, "turn1", update=owed())
    facts.fail("turn1", *[ModelUnavailable()] * 1_000)
    async with updater(store, facts=facts) as works:
        tried = await works.wait_tried(user_id="ada", turn_id="turn1", seconds=10)
        assert tried is not None
        assert (tried.status, tried.steps["facts"].tries > 0) == ("pending", True)
        late = await works.wait_ended(user_id="ada", turn_id="turn1", seconds=0.05)
        assert late is not None
        assert late.status == "pending"
        assert await works.wait_ended(user_id="ada", turn_id="missing", seconds=1) is None
        assert await works.wait_ended(user_id="bob", turn_id="turn1", seconds=1) is None


async def test_a_step_waits_no_longer_than_its_back_off_says(store: Store) -> None:
    clock, facts = JumpingClock(), Scripted()
    await finish(store, "turn1", update=owed())
    facts.fail("turn1", *[ModelUnavailable()] * 30)
    async with updater(store, clock=clock, facts=facts) as works:
        for tries in range(1, 12):
            await eventually(lambda tries=tries: len(facts.started) >= tries)
            await works.wait_tried(user_id="ada", turn_id="turn1", seconds=10)
            step = (await update_of(store, "turn1")).steps["facts"]
            assert step.due_at is None or step.due_at <= clock() + timedelta(seconds=30)
            clock.jump()
            works.notify("ada")
