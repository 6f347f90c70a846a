"""Checks what becomes of proposals that their quote does not carry: plans, pure."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from recollect.memory.learning.plan import Plan, PlanRequest, Review
from recollect.memory.learning.reconciliation import plan
from recollect.memory.values.decision import Proposal
from recollect.memory.values.fact import Fact

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SAID = "I like penguins. I'm Ada. I'm not allergic to nuts. I've lived in Oslo since 2019."
MALLORY = Proposal(
    "add", key="name", value="Mallory", statement="The user's name is Mallory.", evidence="I like penguins"
)
ADA = replace(MALLORY, value="Ada", statement="The user's name is Ada.", evidence="I'm Ada")
OSLO = Proposal(
    "add", key="location", value="Oslo", statement="The user lives in Oslo.", evidence="I've lived in Oslo since 2019"
)
EVA = Fact("f1", "ada", "name", "Eva", "The user's name is Eva.", NOW, NOW, NOW, NOW - timedelta(days=1))


def planned(*proposals: Proposal, review: Review | None = None, said: str = SAID, **more: Any) -> Plan:
    request: dict[str, Any] = {"known": (), "living": (), "user_id": "ada", "thread_id": "t1", "turn_id": "turn-1"}
    request |= {"message": said, "now": NOW, "review": review or Review(unproven="review"), **more}
    return plan(PlanRequest(proposals, **request))


@pytest.mark.parametrize(
    ("unproven", "statuses", "refused"), [("review", ["proposed"], 0), ("refuse", [], 1), ("allow", ["active"], 0)]
)
def test_the_setting_decides(unproven: Any, statuses: list[str], refused: int) -> None:
    made = planned(MALLORY, review=Review(unproven=unproven))
    assert [write.status for write in made.writes] == statuses
    assert len(made.refused) == refused
    assert all((change.status == "proposed") == (unproven == "review") for change in made.changes)


def test_what_waits_stands_in_the_way_of_nothing_that_is_proved() -> None:
    for living in ((), (EVA,)):
        made = planned(MALLORY, ADA, living=living)
        assert [(write.value, write.status) for write in made.writes][-1] == ("Ada", "active")
        assert made.refused == ()
    again = planned(ADA, MALLORY)
    assert ("Ada", "active") in [(write.value, write.status) for write in again.writes]


def test_what_waits_from_this_turn_is_learned_under_another_id() -> None:
    (waits,) = planned(replace(ADA, source="tool"), review=Review(unproven="review", tools="all")).writes
    waiting = waits.new_fact(user_id="ada", thread_id="t1", turn_id="turn-1")
    assert waiting is not None
    (learned,) = planned(ADA, proposed=(waiting,)).writes
    assert (learned.status, learned.value) == ("active", "Ada")
    assert learned.inserts != waits.inserts
    (again,) = planned(MALLORY, proposed=(replace(waiting, value="Mallory"),)).changes
    assert (again.decision, again.status) == ("keep", "proposed")


@pytest.mark.parametrize(
    ("tools", "untrusted", "status"),
    [
        ("untrusted", True, "proposed"),
        ("untrusted", False, "active"),
        ("off", True, "active"),
        ("all", False, "proposed"),
    ],
)
def test_tools_wait_as_the_setting_says(tools: Any, untrusted: bool, status: str) -> None:
    (write,) = planned(replace(ADA, source="tool", untrusted=untrusted), review=Review(tools=tools)).writes
    assert write.status == status


def test_a_deletion_by_one_word_waits() -> None:
    deletion = Proposal("delete", key="name", evidence="Eva")
    (write,) = planned(deletion, living=(EVA,), known=(EVA,), said="Eva likes penguins.").writes
    assert (write.status, write.proposes) == ("proposed", "delete")


def test_invented_dates_are_left_out_and_true_ones_kept() -> None:
    invented = replace(ADA, valid_from="1999-03-04", evidence="I'm Ada")
    (change,) = planned(invented, said="I'm Ada and I feel fine today.").changes
    assert change.reason == "its valid_from was left out: the user named no such time"
    for date in ("2019", "2019-01-01", "2019-01"):
        (write,) = planned(replace(OSLO, valid_from=date)).writes
        assert write.valid_from_ms == int(datetime(2019, 1, 1, tzinfo=UTC).timestamp() * 1000)
    moved = replace(OSLO, evidence="I moved to Oslo last month", valid_from="2025-12-01")
    (write,) = planned(moved, said="I moved to Oslo last month.").writes
    assert (write.status, write.valid_from_ms) == ("active", int(datetime(2025, 12, 1, tzinfo=UTC).timestamp() * 1000))
