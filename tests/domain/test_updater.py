"""The updater over a real store, with step works that do as they are told."""

import asyncio
import logging
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from memory.decision import Change
from memory.documents import Documents
from memory.errors import ModelUnavailable, StoreUnavailable, UnreadableAnswer
from memory.stores.sqlite import open_sqlite_documents
from memory.times import utc_now
from memory.update import MAX_ATTEMPTS, Step, owed
from memory.user_work import BATCH, LEASE
from tests.contracts.documents.samples import finish
from tests.domain.updating import HOUR, JumpingClock, Scripted, eventually, update_of, updater

CHANGE = Change("add", "id", "name", None, "Ada", "I'm Ada")


async def finish_all(documents: Documents, count: int, *, user_id: str = "ada") -> list[str]:
    names = [f"turn{number:03}" for number in range(count)]
    for name in names:
        await finish(documents, name, user_id=user_id, update=owed())
    return names


async def test_a_users_turns_are_worked_off_in_the_order_of_their_commits(documents: Documents) -> None:
    facts, index = Scripted(), Scripted()
    async with updater(documents, facts=facts, index=index) as works:
        names = await finish_all(documents, 5)
        works.notify("ada")
        last = await works.wait_ended(user_id="ada", turn_id=names[-1], seconds=10)
        assert last is not None
        assert last.status == "done"
        await eventually(lambda: len(index.done) == 5)
    assert facts.started == facts.done == index.started == index.done == names
    assert (facts.most_at_once, index.most_at_once) == (1, 1)


async def test_what_a_start_finds_pending_is_resumed(documents: Documents) -> None:
    names = await finish_all(documents, 3)
    await finish_all(documents, 2, user_id="bob")
    facts = Scripted()
    async with updater(documents, facts=facts) as works:
        for user_id, turn_id in (("ada", names[-1]), ("bob", names[1])):
            ended = await works.wait_ended(user_id=user_id, turn_id=turn_id, seconds=10)
            assert ended is not None
            assert ended.status == "done"
    assert sorted(facts.done) == sorted([*names, *names[:2]])


async def test_the_sweep_finds_what_nobody_announced(documents: Documents) -> None:
    async with updater(documents, sweep_seconds=0.02) as works:
        await finish(documents, "turn1", update=owed())
        ended = await works.wait_ended(user_id="ada", turn_id="turn1", seconds=10)
        assert ended is not None
        assert ended.status == "done"


@pytest.mark.parametrize("waiting", ["facts", "index"])
async def test_a_step_that_waits_never_blocks_another_kind(documents: Documents, waiting: str) -> None:
    stuck, free = Scripted(), Scripted()
    facts, index = (stuck, free) if waiting == "facts" else (free, stuck)
    async with updater(documents, facts=facts, index=index) as works:
        names = await finish_all(documents, 3)
        stuck.fail(names[0], *[ModelUnavailable()] * 1_000)
        works.notify("ada")
        await eventually(lambda: free.done == names)
        assert stuck.done == []
        assert set(stuck.started) == {names[0]}, "later turns wait behind an earlier waiting step of the same kind"
        stuck.errors[names[0]].clear()
        await eventually(lambda: stuck.done == names)


async def test_a_long_backlog_of_one_kind_hides_no_work_of_the_other(documents: Documents) -> None:
    facts, index = Scripted(), Scripted()
    names = await finish_all(documents, BATCH + 20)
    facts.fail(names[0], *[ModelUnavailable()] * 1_000)
    async with updater(documents, facts=facts, index=index):
        await eventually(lambda: index.done == names)
        facts.errors[names[0]].clear()
        await eventually(lambda: facts.done == names, seconds=30)


async def test_outages_are_retried_for_as_long_as_they_last(documents: Documents) -> None:
    clock, facts = JumpingClock(), Scripted()
    await finish(documents, "turn1", update=owed())
    facts.fail("turn1", *[ModelUnavailable(), StoreUnavailable(), TimeoutError()] * 4)
    async with updater(documents, clock=clock, facts=facts) as works:
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
    documents: Documents, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    clock, facts = JumpingClock(), Scripted()
    names = await finish_all(documents, 2)
    facts.fail(names[0], *[error] * 9)
    async with updater(documents, clock=clock, facts=facts) as works:
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


async def test_a_back_off_ends_by_itself(documents: Documents) -> None:
    facts = Scripted()
    await finish(documents, "turn1", update=owed())
    facts.fail("turn1", ModelUnavailable(), ModelUnavailable())
    async with updater(documents, facts=facts) as works:
        ended = await works.wait_ended(user_id="ada", turn_id="turn1", seconds=10)
    assert ended is not None
    assert ended.steps["facts"] == Step(status="done", tries=3)


async def test_a_back_off_that_an_earlier_process_left_is_kept(documents: Documents) -> None:
    due_at = utc_now() + HOUR
    waiting = replace(owed(), steps={"facts": Step(tries=1, due_at=due_at), "index": Step()})
    await finish(documents, "turn1", update=waiting)
    clock, facts, index = JumpingClock(), Scripted(), Scripted()
    async with updater(documents, clock=clock, facts=facts, index=index) as works:
        await eventually(lambda: index.done == ["turn1"])
        await works.wait_tried(user_id="ada", turn_id="turn1", seconds=10)
        assert facts.started == []
        clock.jump(2 * HOUR)
        works.notify("ada")
        await eventually(lambda: facts.done == ["turn1"])


async def test_what_one_step_learned_survives_a_slower_other_step(documents: Documents) -> None:
    facts = Scripted(learn=lambda update: replace(update, planned=True, model="m", changes=(CHANGE,)))
    index = Scripted()
    index.gate.clear()
    await finish(documents, "turn1", update=owed())
    async with updater(documents, facts=facts, index=index) as works:
        await eventually(lambda: index.started == ["turn1"] and facts.done == ["turn1"])
        shown = await works.wait_ended(user_id="ada", turn_id="turn1", seconds=0.2)
        assert shown is not None
        assert (shown.steps["facts"].status, shown.changes) == ("done", (CHANGE,))
        index.gate.set()
        ended = await works.wait_ended(user_id="ada", turn_id="turn1", seconds=10)
    stored = await update_of(documents, "turn1")
    assert ended == stored
    assert (stored.status, stored.model, stored.planned, stored.changes) == ("done", "m", True, (CHANGE,))


async def test_users_are_worked_on_side_by_side(documents: Documents) -> None:
    facts = Scripted()
    facts.gate.clear()
    async with updater(documents, facts=facts) as works:
        for user_id in ("ada", "bob", "cleo"):
            await finish(documents, "turn1", user_id=user_id, update=owed())
            works.notify(user_id)
        await eventually(lambda: sum(facts.at_once.values()) == 3)
        facts.gate.set()
        await eventually(lambda: len(facts.done) == 3)
    assert facts.most_at_once == 1


async def test_no_more_steps_of_a_kind_run_at_once_than_allowed(documents: Documents) -> None:
    facts, index = Scripted(), Scripted()
    facts.gate.clear()
    async with updater(documents, facts=facts, index=index, concurrency=2) as works:
        for number in range(4):
            await finish(documents, "turn1", user_id=f"user{number}", update=owed())
            works.notify(f"user{number}")
        await eventually(lambda: len(index.done) == 4)  # The kind whose model hangs holds up its own only.
        assert len(facts.started) == 2
        facts.gate.set()
        await eventually(lambda: len(facts.done) == 4)


async def test_a_user_whom_another_process_holds_is_left_alone_until_the_lease_ends(documents: Documents) -> None:
    clock, facts = JumpingClock(), Scripted()
    rival = await documents.updates.claim("ada", owner="rival", lease=LEASE, now=clock())
    assert rival is not None
    await finish(documents, "turn1", update=owed())
    async with updater(documents, clock=clock, facts=facts) as works:
        works.notify("ada")
        waiting = await works.wait_ended(user_id="ada", turn_id="turn1", seconds=1)
        assert waiting is not None
        assert waiting.status == "pending"
        assert facts.started == []
        clock.jump(2 * LEASE)
        ended = await works.wait_ended(user_id="ada", turn_id="turn1", seconds=10)
    assert ended is not None
    assert ended.status == "done"


async def test_a_held_user_is_asked_for_now_and_then_only(documents: Documents) -> None:
    clock = JumpingClock()
    rival = await documents.updates.claim("ada", owner="rival", lease=HOUR, now=utc_now())
    assert rival is not None
    await finish(documents, "turn1", update=owed())
    async with updater(documents, clock=clock) as works:
        works.notify("ada")
        await works.wait_ended(user_id="ada", turn_id="turn1", seconds=1.2)
    assert 2 <= clock.asked <= 20


async def test_a_store_that_cannot_be_reached_is_asked_now_and_then_only(tmp_path: Path) -> None:
    clock = JumpingClock()
    async with open_sqlite_documents(tmp_path / "recollect.db") as documents:
        pass
    async with updater(documents, clock=clock) as works:
        works.notify("ada")
        await asyncio.sleep(1.2)
    assert 2 <= clock.asked <= 20


async def test_a_late_owner_is_fenced_out(documents: Documents, caplog: pytest.LogCaptureFixture) -> None:
    clock, facts = JumpingClock(), Scripted(learn=lambda update: replace(update, model="late"))
    facts.gate.clear()
    await finish(documents, "turn1", update=owed())
    async with updater(documents, clock=clock, facts=facts) as works:
        await eventually(lambda: facts.started == ["turn1"])
        taken = await documents.updates.claim("ada", owner="rival", lease=LEASE, now=clock() + 2 * LEASE)
        assert taken is not None
        (turn,) = await documents.updates.pending("ada", limit=9)
        assert turn.update is not None
        theirs = replace(turn.update, model="rival", steps={"facts": Step(status="done"), "index": Step(status="done")})
        assert await documents.updates.record(turn, theirs, generation=taken.generation)
        facts.gate.set()
        await eventually(lambda: any(getattr(record, "action", "") == "fenced" for record in caplog.records))
        assert await works.wait_ended(user_id="ada", turn_id="turn1", seconds=10) == theirs
    assert await update_of(documents, "turn1") == theirs


async def test_a_drain_lets_running_steps_end(documents: Documents) -> None:
    facts = Scripted()
    facts.gate.clear()
    names = await finish_all(documents, 3)
    async with updater(documents, facts=facts) as works:
        await eventually(lambda: facts.started == names[:1])
        asyncio.get_running_loop().call_later(0.1, facts.gate.set)
        await works.drain(10)
    assert facts.done == names
    assert (await update_of(documents, names[-1])).status == "done"


async def test_a_drain_ends_within_its_bound_and_the_next_start_goes_on(documents: Documents) -> None:
    stuck = Scripted()
    stuck.gate.clear()
    await finish(documents, "turn1", update=owed())
    async with updater(documents, facts=stuck) as works:
        await eventually(lambda: stuck.started == ["turn1"])
        begun = asyncio.get_running_loop().time()
        await works.drain(0.2)
        assert asyncio.get_running_loop().time() - begun < 2
        works.notify("ada")
        assert stuck.started == ["turn1"]
    assert (await update_of(documents, "turn1")).status == "pending"
    facts = Scripted()
    async with updater(documents, facts=facts) as works:
        ended = await works.wait_ended(user_id="ada", turn_id="turn1", seconds=10)
    assert ended is not None
    assert ended.status == "done"
    assert facts.done == ["turn1"]


async def test_waiting_ends_with_its_time_or_its_cause(documents: Documents) -> None:
    facts = Scripted()
    await finish(documents, "turn1", update=owed())
    facts.fail("turn1", *[ModelUnavailable()] * 1_000)
    async with updater(documents, facts=facts) as works:
        tried = await works.wait_tried(user_id="ada", turn_id="turn1", seconds=10)
        assert tried is not None
        assert (tried.status, tried.steps["facts"].tries > 0) == ("pending", True)
        late = await works.wait_ended(user_id="ada", turn_id="turn1", seconds=0.05)
        assert late is not None
        assert late.status == "pending"
        assert await works.wait_ended(user_id="ada", turn_id="missing", seconds=1) is None
        assert await works.wait_ended(user_id="bob", turn_id="turn1", seconds=1) is None


async def test_a_step_waits_no_longer_than_its_back_off_says(documents: Documents) -> None:
    clock, facts = JumpingClock(), Scripted()
    await finish(documents, "turn1", update=owed())
    facts.fail("turn1", *[ModelUnavailable()] * 30)
    async with updater(documents, clock=clock, facts=facts) as works:
        for tries in range(1, 12):
            await eventually(lambda tries=tries: len(facts.started) >= tries)
            await works.wait_tried(user_id="ada", turn_id="turn1", seconds=10)
            step = (await update_of(documents, "turn1")).steps["facts"]
            assert step.due_at is None or step.due_at <= clock() + timedelta(seconds=30)
            clock.jump()
            works.notify("ada")
