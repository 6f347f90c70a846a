import json

import pytest

from memory.stores.update_json import is_indexed, update_from_json, update_to_json
from memory.update import Update, not_owed, owed
from tests.contracts.documents.samples import full_update, indexed


@pytest.mark.parametrize("update", [full_update(), owed(), not_owed("disabled"), indexed(), Update(steps={})])
def test_an_update_comes_back_as_it_was(update: Update):
    assert update_from_json(update_to_json(update)) == update


def test_fields_of_later_versions_are_skipped():
    record = json.loads(update_to_json(full_update()))
    record["later"] = 1
    for part in (
        record["steps"]["facts"],
        *(record[name][0] for name in ("changes", "refused", "proposals", "writes")),
    ):
        part["later"] = {"x": 1}
    assert update_from_json(json.dumps(record)) == full_update()


def test_fields_of_earlier_versions_get_their_defaults():
    assert update_from_json('{"steps": {"index": {"status": "done"}}}').steps["index"].attempts == 0


def test_only_a_done_index_step_is_indexed():
    assert is_indexed(indexed())
    assert not is_indexed(owed())
    assert not is_indexed(not_owed("disabled"))
    assert not is_indexed(Update(steps={}))
