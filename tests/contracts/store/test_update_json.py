import json
import re
import traceback
from datetime import UTC, datetime

import pytest

from recollect.memory.stores.update_json import is_indexed, update_from_json, update_to_json
from recollect.memory.values.decision import Proposal
from recollect.memory.values.planned_write import PlannedWrite
from recollect.memory.values.update import Undo, Update, not_owed, owed
from tests.contracts.store.samples import NOW, full_update, indexed


@pytest.mark.parametrize(
    "update",
    [full_update(), owed(), not_owed("disabled"), indexed(), Update(steps={}), Update(steps={}, undo=Undo(NOW))],
)
def test_an_update_comes_back_as_it_was(update: Update):
    text = update_to_json(update)
    assert update_from_json(text) == update
    assert update_to_json(update_from_json(text)) == text


def test_fields_of_later_versions_are_skipped():
    record = json.loads(update_to_json(full_update()))
    record["later"] = 1
    for part in (
        record["steps"]["facts"],
        *(record[name][0] for name in ("changes", "refused", "proposals", "writes")),
        record["undo"],
        *(record["undo"][name][0] for name in ("changes", "left")),
        record["earlier"],
        record["earlier"]["writes"][0],
    ):
        part["later"] = {"x": 1}
    assert update_from_json(json.dumps(record)) == full_update()


def test_fields_of_earlier_versions_get_their_defaults():
    assert update_from_json('{"steps": {"index": {"status": "done"}}}').steps["index"].attempts == 0
    record = json.loads(update_to_json(full_update()))
    for name in ("learned", "wanted_model", "undo", "earlier", "anew"):
        del record[name]
    for name in ("valid_from", "valid_to"):
        for proposal in record["proposals"]:
            del proposal[name]
    for name in ("status", "proposes", "valid_from_ms", "valid_to_ms"):
        for write in record["writes"]:
            del write[name]
    earlier = update_from_json(json.dumps(record))
    assert (earlier.learned, earlier.wanted_model, earlier.undo) == (0, None, None)
    assert (earlier.earlier, earlier.anew) == (None, False)
    assert earlier.proposals[1] == Proposal("delete", shown=1)
    assert earlier.writes[2] == PlannedWrite(at_ms=3, inserts="f3")


def test_a_text_of_before_reads_as_an_equal_update():
    """Read an earlier writer's text, which has whole numbers whole and the fields of an update in any order."""
    record = json.loads(update_to_json(full_update()))
    record["writes"][1]["importance"] = 1
    assert update_from_json(json.dumps(record, indent=1, sort_keys=True)) == full_update()


def test_times_are_worded_as_in_every_version():
    text = update_to_json(Update(steps={}, undo=Undo(datetime(2026, 1, 31, 9, 30, tzinfo=UTC))))
    assert '"at":"2026-01-31T09:30:00+00:00"' in text
    assert update_from_json(text.replace("+00:00", "Z")) == update_from_json(text)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('{"steps": {"index": {"status": "violet"}}}', "steps.index.status"),
        ('{"steps": {}, "learned": "violet"}', "learned"),
        ('{"steps": {}, "changes": [{"decision": "violet"}]}', "changes.0.decision"),
        ("violet", "the text"),
    ],
)
def test_what_is_no_update_is_named_and_not_quoted(text: str, named: str):
    with pytest.raises(ValueError, match=re.escape(named)) as caught:
        update_from_json(text)
    assert "violet" not in "".join(traceback.format_exception(caught.value))


def test_only_a_done_index_step_is_indexed():
    assert is_indexed(indexed())
    assert not is_indexed(owed())
    assert not is_indexed(not_owed("disabled"))
    assert not is_indexed(Update(steps={}))
