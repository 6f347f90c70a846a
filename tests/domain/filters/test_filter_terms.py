"""Filters in terms: never less than what it means, and the same where it names declared keys alone."""

from datetime import timedelta

import pytest

from recollect.memory.values.errors import ConfigurationError
from recollect.memory.values.filtering.filter import Item
from recollect.memory.values.filtering.keys import MOST_KEYS, FilterKey, read_filter_keys
from recollect.memory.values.filtering.narrow import (
    CreatedBetween,
    Either,
    Every,
    HasTerm,
    Made,
    Narrow,
    TermBetween,
    TextBetween,
    TextIn,
    Without,
)
from recollect.memory.values.filtering.narrowing import narrowing
from recollect.memory.values.filtering.reading import read_filter
from recollect.memory.values.filtering.terms import item_terms, metadata_terms
from recollect.memory.values.times import to_ms
from tests.contracts.random_filters import BEGIN, KEYS, RandomFilters


def holds(narrow: Narrow, item: Item, terms: frozenset[str]) -> bool:
    match narrow:
        case Made():
            return True
        case HasTerm(wanted):
            return not terms.isdisjoint(wanted)
        case TermBetween(low, high):
            return any(low <= term < high for term in terms)
        case TextIn(field, texts):
            return getattr(item, field) in texts
        case TextBetween(field, low, high):
            text = getattr(item, field)
            return text is not None and text >= low and (high is None or text < high)
        case CreatedBetween(begin, end):
            return begin <= to_ms(item.created_at) < end
        case Every(parts):
            return all(holds(part, item, terms) for part in parts)
        case Either(parts):
            return any(holds(part, item, terms) for part in parts)
        case Without(part):
            return not holds(part, item, terms)


def test_terms_say_no_more_and_no_less_than_the_filter() -> None:
    draw, decided, whole = RandomFilters(17), 0, 0
    for number in range(8_000):
        kind = "episode" if number % 2 else "fact"
        own = {"role": "user", "name": draw.name()} if kind == "episode" else {"source": "manual"}
        item = Item(kind, draw.time(), thread_id="t1", metadata=draw.metadata(), **own)
        asked, terms = draw.filter(), frozenset(item_terms(item, KEYS))
        meant, said = narrowing(read_filter(asked), KEYS, kind), read_filter(asked).fulfilled(item)
        surely, perhaps = holds(meant.surely, item, terms), holds(meant.perhaps, item, terms)
        assert surely <= said <= perhaps, (asked, item.metadata)
        assert holds(meant.between, item, terms) == (perhaps and not surely)
        whole += meant.is_whole
        decided += meant.is_whole and surely == perhaps
    assert decided > 0.85 * whole > 6_000  # else the terms would say little


def test_the_terms_are_a_flat_list_without_the_callers_keys() -> None:
    keys = read_filter_keys(" project:keyword, priority:integer,due:datetime ,metadata.role:boolean,")
    terms = metadata_terms({"project": ["apollo", "apollo", "a:b"], "priority": 3, "secret": "x", "role": True}, keys)
    slots = [key.slot for key in keys.keys]
    assert [(slots.index(term.split(":", 2)[0]), *term.split(":", 2)[1:]) for term in terms] == [
        (0, "mark", "several"),
        (0, "keyword", "apollo"),
        (0, "keyword", "a:b"),
        (1, "integer", "8000000000000003"),
        (3, "boolean", "true"),
    ]
    assert len({*slots, FilterKey("priority", "float").slot}) == 5


def test_terms_are_bounded_whatever_the_values_are() -> None:
    keys = read_filter_keys(",".join(f"k{number}:keyword" for number in range(MOST_KEYS)))
    worst = {f"k{number}": [f"2026-01-31T00:00:00.{each:06}" for each in range(5_000)] for number in range(16)}
    assert len(metadata_terms(worst, keys)) == MOST_KEYS
    many = {key: values[:32] for key, values in worst.items()}
    assert len(metadata_terms(many, keys)) <= MOST_KEYS * 65
    long = metadata_terms({"k0": "\u0301" * 100_000, "k1": "a\x00b", "k2": "\ud800"}, keys)
    assert max(map(len, long)) < 64
    assert all(term.isprintable() for term in long)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("project", "'project'"),
        ("a:keyword,project:text", "'project:text'"),
        (":keyword", "':keyword'"),
        ("role:keyword", "metadata.role:keyword"),
        ("a:keyword,a:float", "'a:float'"),
        (",".join(f"k{number}:float" for number in range(17)), "'k16:float'"),
        ("x" * 129 + ":keyword", "128 characters"),
        ("a\ud800:keyword", "must begin with a key"),
    ],
)
def test_a_bad_entry_is_named(text: str, named: str) -> None:
    with pytest.raises(ConfigurationError, match="MEMORY_FILTER_KEYS") as error:
        read_filter_keys(text)
    assert named in error.value.message


def test_the_order_of_the_keys_says_nothing_and_their_types_do() -> None:
    one, other = read_filter_keys("a:keyword,b:float"), read_filter_keys("b:float,a:keyword")
    assert one.digest == other.digest
    assert one.digest != read_filter_keys("a:keyword,b:integer").digest


def test_a_time_is_compared_in_whole_milliseconds() -> None:
    item = Item("episode", BEGIN + timedelta(milliseconds=1))
    for asked, expected in (({"gte": "2026-01-31T09:30:00.0005Z"}, True), ({"lt": "2026-01-31T09:30:00.001Z"}, False)):
        found = narrowing(read_filter({"created_at": asked}), KEYS, "episode")
        assert found.surely == found.perhaps
        assert holds(found.surely, item, frozenset()) is expected
