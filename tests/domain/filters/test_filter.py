from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.memory.values.errors import InvalidRequest
from recollect.memory.values.filtering.filter import Item
from recollect.memory.values.filtering.reading import read_filter, read_filter_text

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
Json = Mapping[str, Any]


def item(**metadata: Any) -> Item:
    return Item("episode", NOW, role="user", name="Ada", agent_id="support", thread_id="t1", metadata=metadata)


def fits(asked: Json, found: Item) -> bool:
    return read_filter(asked).fulfilled(found)


def refused(asked: object) -> str:
    with pytest.raises(InvalidRequest) as error:
        read_filter(asked)
    (problem,) = error.value.problems
    return problem.field


def kind_of(value: object) -> str:
    kinds: Mapping[type, str] = {bool: "flag", int: "number", float: "number", str: "text"}
    return kinds.get(type(value), "other")


def naive(asked: Json, metadata: Json) -> bool:
    """Evaluate a filter on metadata alone, word by word as the documentation says it."""

    def one(value: object, operator: str, operand: Any) -> bool:
        if isinstance(value, list):
            return any(one(each, operator, operand) for each in cast("list[object]", value))
        if operator == "in":
            return any(one(value, "eq", each) for each in operand)
        alike = kind_of(value) == kind_of(operand)
        if operator == "ne":
            return not (alike and value == operand)
        if not alike:
            return False
        known: Any = value
        return {
            "eq": known == operand,
            "gte": known >= operand,
            "gt": known > operand,
            "lte": known <= operand,
            "lt": known < operand,
        }[operator]

    def holds(name: str, said: Any) -> bool:
        if name in {"and", "or"}:
            each = [naive(part, metadata) for part in said]
            return all(each) if name == "and" else any(each)
        if name == "not":
            return not naive(said, metadata)
        conditions = cast("Json", said) if isinstance(said, dict) else {"eq": said}
        if name not in metadata:
            return all(operator == "ne" for operator in conditions)
        return all(one(metadata[name], operator, operand) for operator, operand in conditions.items())

    return all(holds(name, said) for name, said in asked.items())


KEYS = st.sampled_from(("project", "priority", "lang"))
NUMBERS = st.one_of(st.integers(-2, 2), st.sampled_from((0.5, 1.0, 2.5)))
SCALARS = st.one_of(st.booleans(), NUMBERS, st.sampled_from(("a", "b", "")))
VALUES = st.one_of(SCALARS, st.none(), st.lists(SCALARS, max_size=3), st.just({"a": 1}))
METADATA = st.dictionaries(KEYS, VALUES, max_size=3)
ORDERED = st.one_of(NUMBERS, st.sampled_from(("a", "b")))
CONDITIONS = st.one_of(
    SCALARS,
    st.fixed_dictionaries({"ne": SCALARS}),
    st.fixed_dictionaries({"in": st.lists(SCALARS, max_size=3)}),
    st.dictionaries(st.sampled_from(("gte", "gt", "lte", "lt")), ORDERED, min_size=1, max_size=2),
)
PLAIN = st.dictionaries(KEYS, CONDITIONS, min_size=1, max_size=3)


def joined(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = st.lists(parts, max_size=2)
    return st.one_of(
        PLAIN,
        st.fixed_dictionaries({"or": lists}),
        st.fixed_dictionaries({"and": lists}),
        st.fixed_dictionaries({"not": parts}),
    )


FILTERS = joined(joined(PLAIN))


@given(FILTERS, METADATA)
def test_a_filter_means_what_the_documentation_says(asked: Json, metadata: Json) -> None:
    assert fits(asked, item(**metadata)) == naive(asked, metadata)


def test_the_example_of_the_documentation() -> None:
    asked = {
        "project": "apollo",
        "priority": {"gte": 2},
        "lang": {"ne": "de"},
        "or": [{"team": "red"}, {"team": "blue"}],
        "not": {"state": "closed"},
    }

    assert fits(asked, item(project=["gemini", "apollo"], priority=2, team="blue"))
    assert not fits(asked, item(project="apollo", priority=2, team="blue", lang="de"))
    assert not fits(asked, item(project="apollo", priority=True, team="blue"))
    assert not fits(asked, item(project="apollo", priority=2, team="blue", state="closed"))


def test_reserved_names_mean_the_item_and_a_prefix_reaches_its_metadata() -> None:
    found = item(role="reviewer", source="wiki")

    assert fits({"role": "user", "name": "Ada", "kind": "episode", "agent_id": "support", "thread_id": "t1"}, found)
    assert fits({"metadata.role": "reviewer", "metadata.source": {"in": ["wiki"]}}, found)
    assert not fits({"source": "wiki"}, found)
    assert fits({"source": {"ne": "wiki"}}, found)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"gte": "2026-01-31"}, True),
        ({"gt": "2026-01-31T09:30:00Z"}, False),
        ({"lte": "2026-01-31T10:30:00+01:00"}, True),
        ({"in": ["2026-01-31T09:30:00.000Z"]}, True),
        ({"ne": "2026-01-31T10:30:00+01:00"}, False),
        ("2026-01-31T10:30:00+01:00", True),
    ],
)
def test_times_are_compared_as_times(asked: Any, expected: bool) -> None:
    assert fits({"created_at": asked}, item()) is expected


def test_dates_in_metadata_are_ordered_as_times() -> None:
    found = item(due="2026-01-31T23:30:00-02:00")

    assert fits({"due": {"gte": "2026-02-01"}}, found)
    assert not fits({"due": {"gte": "2026-02-01"}}, item(due="soon"))
    assert fits({"due": {"gte": "s"}}, item(due="soon"))


def nested(levels: int) -> Json:
    asked: Json = {"a": 1}
    for _ in range(levels):
        asked = {"not": asked}
    return asked


def test_bounds_are_kept_up_to_their_last() -> None:
    read_filter(nested(5))
    read_filter({f"key{number}": number for number in range(32)})
    read_filter({"a": {"in": list(range(100))}})
    read_filter({"k" * 128: 1})

    assert refused(nested(6)).startswith("filter.not.not")
    assert refused({f"key{number}": number for number in range(33)}) == "filter.key32"
    assert refused({"a": {"in": list(range(101))}}) == "filter.a.in"
    assert refused({"k" * 129: 1}).startswith("filter.kkk")


@pytest.mark.parametrize(
    ("asked", "place"),
    [
        ([], "filter"),
        ({}, "filter"),
        ({"or": [{"a": 1}, {}]}, "filter.or.1"),
        ("apollo", "filter"),
        ({"priority": {"gte": True}}, "filter.priority.gte"),
        ({"priority": {"gte": [1]}}, "filter.priority.gte"),
        ({"priority": {"above": 1}}, "filter.priority.above"),
        ({"priority": {"eq": 1}}, "filter.priority.eq"),
        ({"priority": {}}, "filter.priority"),
        ({"priority": None}, "filter.priority"),
        ({"priority": [1]}, "filter.priority"),
        ({"priority": float("nan")}, "filter.priority"),
        ({"project": "a\x00"}, "filter.project"),
        ({"in": {"in": 3}}, "filter.in.in"),
        ({"in": {"in": [1, None]}}, "filter.in.in.1"),
        ({"or": {"a": 1}}, "filter.or"),
        ({"or": [{"a": 1}, 2]}, "filter.or.1"),
        ({"and": [{"a": {"lt": None}}]}, "filter.and.0.a.lt"),
        ({"not": [{"a": 1}]}, "filter.not"),
        ({"created_at": 5}, "filter.created_at"),
        ({"created_at": {"gte": "yesterday"}}, "filter.created_at.gte"),
        ({"metadata.": 1}, "filter.metadata."),
    ],
)
def test_what_is_malformed_is_named(asked: object, place: str) -> None:
    assert refused(asked) == place


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "nul"])
def test_a_text_that_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        read_filter_text(text)

    assert error.value.problems[0].field == "filter"
