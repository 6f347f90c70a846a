from dataclasses import replace
from datetime import UTC, datetime

import pytest

from recollect.api.inspector.known.fact_fields import FactFields, differences, edit_of, form_fields
from recollect.memory.values.errors import InvalidRequest
from recollect.memory.values.fact import Fact

NOW = datetime(2026, 3, 1, 12, 30, 15, 250_000, tzinfo=UTC)
FACT = Fact("f", "ada", "city", "Oslo\nNorway", "Ada lives in Oslo.", NOW, NOW, NOW, NOW, tags=("home", "a, b"))
NOTE = replace(FACT, key=None, value="Likes tea.", statement="Likes tea.", scope="thread", thread_id="t1")


@pytest.mark.parametrize("fact", [FACT, NOTE])
def test_a_form_that_comes_back_unchanged_edits_nothing(fact: Fact) -> None:
    shown = form_fields(fact)
    sent = {"value": shown.value.replace("\n", "\r\n"), "tags": shown.tags.replace("\n", "\r\n")}
    assert edit_of(shown.model_copy(update=sent), shown) == {}
    in_another_form = shown.model_copy(update={"valid_from": "2026-03-01T12:30:15.000Z"})
    assert edit_of(in_another_form, shown) == {}


def test_an_edit_has_the_changed_fields_alone() -> None:
    shown = form_fields(FACT)
    changes = {"value": " Bergen ", "tags": "home\r\n\r\nfjord", "pinned": True, "importance": "0.75"}
    given = shown.model_copy(update={**changes, "thread_id": "t2", "valid_to": "2026-04-01T00:00"})
    assert edit_of(given, shown) == {
        "value": "Bergen",
        "tags": ["home", "fjord"],
        "pinned": True,
        "importance": 0.75,
        "scope": "thread",
        "thread_id": "t2",
        "valid_to": datetime(2026, 4, 1, tzinfo=UTC),
    }


def test_a_notes_text_is_its_statement_and_its_thread_can_be_left() -> None:
    shown = form_fields(NOTE)
    given = shown.model_copy(update={"value": "Likes milk.\u2028No tea.", "thread_id": ""})
    assert edit_of(given, shown) == {"statement": "Likes milk.\u2028No tea.", "scope": "user"}


def test_an_end_can_be_taken_away() -> None:
    shown = form_fields(replace(FACT, valid_to=datetime(2027, 1, 1, tzinfo=UTC)))
    assert edit_of(shown.model_copy(update={"valid_to": ""}), shown) == {"valid_to": None}


def test_each_field_that_cannot_be_read_is_named() -> None:
    given = FactFields(value="x", statement="y", importance="much", valid_from="soon", valid_to="99999-01-01")
    with pytest.raises(InvalidRequest) as caught:
        edit_of(given, FactFields())
    assert [problem.field for problem in caught.value.problems] == ["statement", "importance", "valid_from", "valid_to"]


def test_differences_name_the_fields_for_people() -> None:
    stored = form_fields(FACT)
    given = stored.model_copy(update={"value": "Rome", "pinned": True})
    assert differences(given, stored) == [("Text", "Oslo\nNorway", "Rome"), ("Pinned", "no", "yes")]
