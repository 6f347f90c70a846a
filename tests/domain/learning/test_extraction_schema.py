from dataclasses import replace
from typing import Any

import pytest

from recollect.memory.learning.extraction.schema import WantedKeys
from recollect.memory.values.decision import Proposal
from recollect.memory.values.errors import ConfigurationError
from tests.contracts.store.samples import fact

SHOP: dict[str, Any] = {
    "type": "object",
    "properties": {
        "shoe_size": {"type": "integer", "minimum": 15, "maximum": 55, "description": "In EU sizes."},
        "height": {"type": "number"},
        "newsletter": {"type": ["boolean", "null"]},
        "colour": {"enum": ["red", "blue"]},
        "postcode": {"type": "string", "pattern": r"^\d{5}$"},
        "land": {"const": "DE"},
        "name": {},
    },
}
WANTED = WantedKeys.from_schema(SHOP)
TAKEN = [
    *(("shoe_size", "42"), ("shoe_size", " 42 "), ("height", "1.85"), ("newsletter", "yes"), ("newsletter", "False")),
    *(("colour", "red"), ("postcode", "10115"), ("land", "DE"), ("name", "Ada"), ("name", "")),
]
REFUSED = [
    *(("shoe_size", "big", "its value is no integer"), ("shoe_size", "42.5", "its value is no integer")),
    *(("shoe_size", "99", "its value is not in the wanted range"), ("height", "nan", "its value is no number")),
    *(("newsletter", "maybe", "its value is no boolean"), ("postcode", "1", "its value has not the wanted form")),
    *(("colour", "green", "its value is none of those that are wanted"), ("height", "inf", "its value is no number")),
    *(("land", "AT", "its value is none of those that are wanted"), ("height", "9" * 500, "its value is no number")),
    ("pet", "dog", "its key is not among those that are wanted"),
    (None, "dog", "only facts with a wanted key are learned"),
]


@pytest.mark.parametrize(("key", "value"), TAKEN)
def test_what_the_schema_wants_is_learned(key: str, value: str) -> None:
    proposal = Proposal("add", key, value)
    assert WANTED.sift([proposal], []) == ([proposal], [])


@pytest.mark.parametrize(("key", "value", "reason"), REFUSED)
def test_what_it_does_not_want_is_refused(key: str | None, value: str, reason: str) -> None:
    wanted, refused = WANTED.sift([Proposal("add", key, value, evidence="q")], [])
    assert wanted == []
    assert [(item.decision, item.key, item.evidence, item.reason) for item in refused] == [("add", key, "q", reason)]


def test_a_shown_fact_lends_its_key() -> None:
    known = [fact("f1", key="shoe_size", value="41"), fact("f2", key="pet", value="dog")]
    update, other = Proposal("update", value="42", shown=1), Proposal("update", value="cat", shown=2)
    unknown = Proposal("keep", shown=7)
    wanted, refused = WANTED.sift([update, other, unknown, replace(update, value="x")], known)
    assert wanted == [update]
    assert [item.reason for item in refused] == [
        "its key is not among those that are wanted",
        "only facts with a wanted key are learned",
        "its value is no integer",
    ]


def test_what_ends_a_fact_is_never_held_back() -> None:
    proposal = Proposal("delete", "pet", shown=2)
    assert WANTED.sift([proposal], []) == ([proposal], [])


def test_the_model_is_told_of_each_key() -> None:
    assert WANTED.described().splitlines()[:4] == [
        "- shoe_size (integer): In EU sizes.",
        "- height (number)",
        "- newsletter (boolean)",
        "- colour (red | blue)",
    ]


@pytest.mark.parametrize(
    "schema",
    [
        *(None, [], "x", {}, {"type": "array"}, {"properties": {}}, {"properties": []}),
        *({"type": "string", "properties": {"a": {}}}, {"properties": {"Bad key": {}}}, {"properties": {"a": 7}}),
        *({"properties": {"a": {"type": "array"}}}, {"properties": {"a": {"type": ["string", "number"]}}}),
        *({"properties": {"a": {"type": {}}}}, {"properties": {"a": {"enum": "x"}}}),
        *({"properties": {"a": {"pattern": "("}}}, {"properties": {"a": {"minimum": "1"}}}),
    ],
)
def test_another_schema_stops_the_start(schema: object) -> None:
    with pytest.raises(ConfigurationError, match="EXTRACTION_SCHEMA_FILE"):
        WantedKeys.from_schema(schema)
