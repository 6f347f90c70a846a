"""Frozen values as plain JSON: equal when they come back, and refused with the field's path."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from recollect.memory.transfer.exported import AbsentPlace, ExportedTurn
from recollect.memory.transfer.plain_values import MOST_ERRORS, MOST_NUMBER, Unfit, from_plain, to_plain
from recollect.memory.values.update import Step, Undo
from tests.contracts.store.samples import NOW, full_update

TURN = ExportedTurn("ada", "t", "turn", 1, {"a.b": [1, 2.5, None]}, full_update(), AbsentPlace("user", NOW))


def problem(said: object, **options: Any) -> str:
    with pytest.raises(Unfit) as caught:
        from_plain(ExportedTurn, said, **options)
    return str(caught.value)


def changed(**fields: Any) -> dict[str, Any]:
    return json.loads(json.dumps(to_plain(TURN))) | fields


@pytest.mark.parametrize("sparse", [True, False])
def test_a_value_comes_back_as_it_was(sparse: bool):
    plain = to_plain(TURN, sparse=sparse)
    assert from_plain(ExportedTurn, json.loads(json.dumps(plain))) == TURN
    assert ("learned" in to_plain(full_update(), sparse=sparse), "tries" in to_plain(Step(), sparse=sparse)) == (
        True,
        not sparse,
    )


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2026-01-31T09:30:00.000Z", datetime(2026, 1, 31, 9, 30, tzinfo=UTC)),
        ("2026-01-31T09:30:00.000007Z", datetime(2026, 1, 31, 9, 30, 0, 7, tzinfo=UTC)),
    ],
)
def test_times_are_utc_and_as_exact_as_they_are(written: str, read: datetime):
    east = read.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert to_plain(Undo(read))["at"] == to_plain(Undo(east))["at"] == written
    for text in (written, east.isoformat(), written.removesuffix("Z")):
        at = from_plain(Undo, {"at": text}).at
        assert (at, at.tzinfo) == (read, UTC)


@pytest.mark.parametrize("at", [1_706_693_400, "1706693400", "then", "0001-01-01T00:00:00+10:00", None, [1]])
def test_only_a_time_is_a_time(at: object):
    with pytest.raises(Unfit, match=r"^undo\.at must be a time such as 2026-01-31T09:30:00Z$"):
        from_plain(Undo, {"at": at}, path="undo")


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ([], "the line must be an object"),
        (changed(position=MOST_NUMBER + 1), "position must be a whole number"),
        (changed(position=1.0), "position must be a whole number"),
        (changed(position=True), "position must be a whole number"),
        (changed(update={"steps": {"facts": {"tries": 10**400}}}), "update.steps.facts.tries must be a whole number"),
        (changed(update={"steps": {"[key]": {}}}), "a key of update.steps must be one of facts, index, summary"),
        (
            changed(update={"steps": {}, "proposals": [{"decision": "add", "importance": 10**400}]}),
            "update.proposals[0].importance must be a number",
        ),
        (changed(update={"steps": {}, "proposals": "add"}), "update.proposals must be a list"),
        (changed(update={"steps": {}, "changes": [1]}), "update.changes[0] must be an object"),
        (changed(update={"steps": {}, "planned": 1}), "update.planned must be true or false"),
        (changed(**{"a b\n": 1}), '"a b?" is not a known field'),
        (changed(turn_id=None), "turn_id must be a text"),
        (changed(user_id=1, later=1), "later is not a known field"),
        (changed(**{f"f{number}": 1 for number in range(MOST_ERRORS + 1)}), "the line is wrong in more than 1,000"),
    ],
)
def test_a_refusal_names_the_field(said: object, sentence: str):
    assert problem(said).startswith(sentence)


def test_open_values_ignore_what_they_do_not_know():
    assert from_plain(ExportedTurn, changed(later=1), is_open=True) == TURN
    assert problem(changed(position="1"), is_open=True, path="turns[2]") == "turns[2].position must be a whole number"
