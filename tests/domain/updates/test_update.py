"""The pending update's states as pure functions."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.memory.values.decision import Change, RefusedProposal
from recollect.memory.values.times import iso
from recollect.memory.values.turn import Turn
from recollect.memory.values.update import (
    MAX_ATTEMPTS,
    MAX_BACKOFF_SECONDS,
    Status,
    Step,
    Update,
    after_failure,
    backoff,
    not_owed,
    owed,
)
from tests.contracts.store.samples import answer, asked

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def update_of(*statuses: Status) -> Update:
    names = ("facts", "index", "summary")
    return Update(steps={name: Step(status=status) for name, status in zip(names, statuses, strict=False)})


@pytest.mark.parametrize(
    ("statuses", "status"),
    [
        (("pending", "pending"), "pending"),
        (("done", "pending"), "pending"),
        (("failed", "pending"), "pending"),
        (("failed", "done"), "failed"),
        (("skipped", "failed"), "failed"),
        (("skipped", "skipped"), "skipped"),
        (("done", "skipped"), "done"),
        (("done", "done", "done"), "done"),
    ],
)
def test_the_steps_make_the_status(statuses: tuple[Status, ...], status: Status) -> None:
    assert update_of(*statuses).status == status


def test_what_is_owed_begins_with_both_steps_due() -> None:
    update = owed()
    assert set(update.steps) == {"facts", "index"}
    assert update.status == "pending"
    assert not update.is_tried
    assert all(step.is_due(NOW) for step in update.steps.values())


def test_what_is_not_owed_says_why() -> None:
    update = not_owed("disabled")
    assert (update.status, update.reason, update.is_tried) == ("skipped", "disabled", True)
    assert not any(step.is_due(NOW) for step in update.steps.values())


def test_each_failed_step_is_named_in_the_reason() -> None:
    failed = Update(steps={"facts": Step(status="failed", reason="why"), "index": Step(status="failed", reason="so")})
    assert failed.reason == "facts: why; index: so"


def test_a_step_that_waits_says_why_and_until_when() -> None:
    step = Step(reason="An outage.", tries=1, due_at=NOW)
    waiting = Update(steps={"facts": step, "index": Step(), "summary": Step(status="done", tries=1)})
    assert (waiting.status, waiting.reason) == ("pending", "facts: An outage.")
    shown = [one.as_json() for one in waiting.steps.values()]
    assert shown == [
        {"status": "pending", "tries": 1, "reason": "An outage.", "next_try_at": iso(NOW)},
        {"status": "pending", "tries": 0, "reason": None, "next_try_at": None},
        {"status": "done", "tries": 1, "reason": None, "next_try_at": None},
    ]


def test_an_update_is_tried_once_each_step_was() -> None:
    waiting = Step(tries=1, due_at=NOW)
    assert Update(steps={"facts": waiting, "index": Step(status="done")}).is_tried
    assert not Update(steps={"facts": waiting, "index": Step()}).is_tried


def test_the_contract_shows_status_reason_model_changes_and_refusals() -> None:
    change = Change("add", "id", "name", None, "Ada", "I'm Ada")
    refused = RefusedProposal("add", None, "age", "5", "", "no evidence")
    update = replace(update_of("done", "done"), model="m", changes=(change,), refused=(refused,))
    assert update.as_json() == {
        "status": "done",
        "reason": None,
        "model": "m",
        "changes": [
            {
                "decision": "add",
                "fact_id": "id",
                "key": "name",
                "before": None,
                "after": "Ada",
                "evidence": "I'm Ada",
                "reason": None,
            }
        ],
        "refused": [
            {
                "decision": "add",
                "fact_id": None,
                "key": "age",
                "value": "5",
                "evidence": "",
                "reason": "no evidence",
            }
        ],
    }


def test_an_unfinished_turn_shows_no_reply_and_a_pending_update() -> None:
    shown = Turn(asked()).as_json()
    assert shown["state"] == "unfinished"
    assert shown["reply"] is None
    assert shown["memory"]["update"]["status"] == "pending"
    assert "state" not in Turn(asked(), answer(asked()), {**shown, "model": "m"}, owed()).as_json()


@given(st.integers(1, 2_000), st.floats(0, 1))
def test_a_back_off_is_bounded_and_between_half_and_whole(tries: int, jitter: float) -> None:
    whole = min(MAX_BACKOFF_SECONDS, 0.25 * 2.0 ** min(tries - 1, 40))
    assert timedelta(seconds=whole / 2) <= backoff(tries, jitter) <= timedelta(seconds=whole)


def test_a_back_off_doubles_up_to_its_bound() -> None:
    seconds = [backoff(tries, 1.0).total_seconds() for tries in range(1, 11)]
    assert seconds == [0.25, 0.5, 1, 2, 4, 8, 16, 30, 30, 30]


def test_the_fifth_attempt_is_the_last() -> None:
    step = Step()
    for attempt in range(1, MAX_ATTEMPTS):
        step = after_failure(step, reason="bad", outage=False, now=NOW, jitter=1)
        assert (step.status, step.attempts, step.tries, step.reason) == ("pending", attempt, attempt, "bad")
        assert step.due_at == NOW + backoff(attempt, 1)
    step = after_failure(step, reason="worse", outage=False, now=NOW, jitter=1)
    assert step == Step(status="failed", reason="worse", tries=5, attempts=5)


@given(st.lists(st.booleans(), max_size=60))
def test_outages_are_never_counted_as_attempts(outages: list[bool]) -> None:
    step = Step()
    for outage in outages:
        if step.status != "pending":
            break
        step = after_failure(step, reason="x", outage=outage, now=NOW, jitter=0)
        assert step.due_at is None or step.due_at <= NOW + timedelta(seconds=MAX_BACKOFF_SECONDS)
    assert (step.status == "failed") == (outages.count(False) >= MAX_ATTEMPTS)


def test_a_step_is_due_when_its_back_off_has_passed() -> None:
    step = Step(tries=1, due_at=NOW)
    assert not step.is_due(NOW - timedelta(milliseconds=1))
    assert step.is_due(NOW)
    assert not replace(step, status="failed").is_due(NOW)
