"""Checks what was said before what is known: it becomes history, or is refused, and overrides nothing."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from recollect.memory.learning.reconciliation import Plan
from recollect.memory.values.fact import Fact
from tests.domain.learning.test_reconciliation import NOW, dated, done, fact, planned, says

MAY_2020 = datetime(2020, 5, 4, 9, tzinfo=UTC)
YEAR_2018, YEAR_2019, YEAR_2023 = (datetime(year, 1, 1, tzinfo=UTC) for year in (2018, 2019, 2023))
PARIS = replace(fact(1, "location", "Paris", "The user lives in Paris."), valid_from=YEAR_2023, turn_id="live")
ROME = replace(fact(2, "location", "Rome"), valid_from=YEAR_2018, valid_to=YEAR_2023, turn_id="old")
SAID = "I live in Oslo. I no longer live in Paris. I lived in Bergen, I've been in Oslo since 2019."
OSLO = says("add", "I live in Oslo", key="location", value="Oslo")


def old(*proposals: Any, facts: tuple[Fact, ...] = (PARIS,), **more: Any) -> Plan:
    living = [item for item in facts if item.is_living(NOW)]
    ended = [item for item in facts if not item.is_living(NOW)]
    return planned(*proposals, living=living, ended=ended, message=SAID, **{"said_at": MAY_2020, **more})


def holding(made: Plan, facts: tuple[Fact, ...], at: datetime) -> list[str]:
    return [item.value for item in done(made, facts).values() if item.holds(at)]


def test_what_was_said_before_the_known_one_began_is_history_that_ends_where_it_begins() -> None:
    for proposal in (OSLO, replace(OSLO, decision="update", shown=1), replace(OSLO, decision="keep", shown=1)):
        made = old(proposal)
        (change,) = made.changes
        assert (change.decision, change.before, change.after) == ("add", None, "Oslo")
        assert "history" in str(change.reason)
        assert dated(made, [PARIS]) == {"Oslo": (MAY_2020, YEAR_2023)}
        assert done(made, [PARIS])[PARIS.id] == PARIS


def test_it_ends_where_the_next_one_in_the_history_begins_also_where_nothing_lives() -> None:
    facts = (replace(PARIS, valid_to=NOW), replace(ROME, valid_from=datetime(2021, 1, 1, tzinfo=UTC)))
    assert dated(old(OSLO, facts=facts), facts) == {"Oslo": (MAY_2020, datetime(2021, 1, 1, tzinfo=UTC))}
    assert dated(old(OSLO, facts=facts[:1]), facts[:1]) == {"Oslo": (MAY_2020, YEAR_2023)}


def test_what_held_before_it_ends_where_it_begins() -> None:
    facts = (PARIS, ROME)
    made = old(OSLO, facts=facts)
    (change,) = made.changes
    assert (change.decision, change.before, change.after) == ("update", "Rome", "Oslo")
    assert [holding(made, facts, at) for at in (YEAR_2019, MAY_2020, NOW)] == [["Rome"], ["Oslo"], ["Paris"]]
    same = old(replace(OSLO, value="Rome"), facts=facts)
    assert [change.decision for change in same.changes] == ["keep"]
    assert dated(same, facts) == {}


def test_what_a_later_turn_said_of_that_time_is_the_last_word() -> None:
    since = replace(PARIS, valid_from=YEAR_2018)
    made = old(OSLO, facts=(since,), later=[since.id])
    assert ([item.reason for item in made.refused], made.changes) == (["a later turn says otherwise"], ())
    assert [change.decision for change in old(OSLO, facts=(since,)).changes] == ["update"]


def test_the_same_value_said_earlier_confirms_and_not_as_of_now() -> None:
    made = old(replace(OSLO, value="Paris"))
    assert [change.decision for change in made.changes] == ["keep"]
    assert done(made, [PARIS])[PARIS.id] == PARIS


def test_a_date_of_its_own_begins_it_and_the_next_one_ends_it_all_the_same() -> None:
    made = old(says("add", "I've been in Oslo since 2019", key="location", value="Oslo"))
    assert dated(made, [PARIS]) == {"Oslo": (YEAR_2019, YEAR_2023)}


def test_what_began_later_is_not_ended() -> None:
    gone = says("delete", "I no longer live in Paris", key="location", value="Paris")
    made = old(gone)
    assert ([item.reason for item in made.refused], made.changes) == (["it was said before the fact began"], ())
    held = replace(PARIS, id="was", valid_from=YEAR_2018, valid_to=YEAR_2023)
    again = old(gone, facts=(replace(PARIS, value="Oslo", statement="The user lives in Oslo."), held))
    assert [(write.ends, write.inserts) for write in again.writes] == [("was", None)]


def test_free_text_that_was_said_before_what_it_would_change_is_history() -> None:
    note = replace(fact(1, None, "a dog", "The user has a dog."), valid_from=YEAR_2023)
    made = old(says("update", "I live in Oslo", shown=1, statement="The user has a cat."), facts=(note,))
    (new,) = [item for item in done(made, [note]).values() if item.id != note.id]
    assert (new.statement, new.valid_from, new.valid_to) == ("The user has a cat.", MAY_2020, YEAR_2023)


def test_what_a_person_wrote_later_is_left_and_ends_it_too() -> None:
    assert dated(old(OSLO, facts=(replace(PARIS, pinned=True),)), [PARIS]) == {"Oslo": (MAY_2020, YEAR_2023)}
