from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.memory.values.fact import Fact, fact_dict, fold, is_key, preferred

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def fact(fact_id: str, key: str | None, value: str, *, minutes: int = 0) -> Fact:
    at = NOW + timedelta(minutes=minutes)
    return Fact(
        id=fact_id,
        user_id="ada",
        key=key,
        value=value,
        statement=f"{key}: {value}",
        created_at=at,
        updated_at=at,
        confirmed_at=at,
        valid_from=at,
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Paris", " PARIS. "),
        ("New  York", "new\nyork"),
        ("\uff21\uff44\uff41", "ada"),
        ("\u22123", "-3"),
        ("rock & roll", "Rock roll"),
        ("Stra\u00dfe", "STRASSE"),
    ],
)
def test_equal_after_folding(one: str, other: str) -> None:
    assert fold(one) == fold(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1.5", "15"),
        (".5 mg", "5 mg"),
        ("-3", "3"),
        ("C", "C#"),
        ("C", "C++"),
        ("O-", "O"),
        ("O-", "O+"),
        ("5%", "5"),
        ("$5", "\u20ac5"),
        ("<5", ">5"),
        ("555-1234", "555-1235"),
        ("nuts", "not nuts"),
    ],
)
def test_different_after_folding(one: str, other: str) -> None:
    assert fold(one) != fold(other)


@given(st.text(max_size=60))
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@pytest.mark.parametrize(
    ("key", "valid"),
    [
        ("name", True),
        ("dog_name2", True),
        ("", False),
        ("Name", False),
        ("1a", False),
        ("a" * 65, False),
        ("a b", False),
    ],
)
def test_keys(key: str, valid: bool) -> None:
    assert is_key(key) is valid


def test_the_dict_holds_the_keyed_facts_most_important_and_most_recently_confirmed_first() -> None:
    facts = [
        fact("3", "job", "nurse", minutes=3),
        replace(fact("5", "allergy", "nuts", minutes=-9), importance=0.9),
        fact("1", "name", "Ada", minutes=1),
        fact("4", None, "free text", minutes=4),
        replace(fact("6", "pet", "dog", minutes=-8), confirmed_at=NOW + timedelta(minutes=9)),
        *(fact(number, number, "same") for number in ("b", "a")),
    ]
    expected = {"allergy": "nuts", "pet": "dog", "job": "nurse", "name": "Ada", "a": "same", "b": "same"}
    for order in (facts, facts[::-1]):
        assert list(fact_dict(order).items()) == list(expected.items())


def test_of_rivals_under_one_key_the_guarded_then_the_newest_wins_and_the_threads_before_the_users() -> None:
    old, new = fact("1", "name", "Ada"), fact("2", "name", "Eva", minutes=1)
    pinned = replace(fact("3", "name", "Pia", minutes=-1), pinned=True)
    in_thread = replace(fact("4", "name", "Tea", minutes=-2), scope="thread", thread_id="t1")
    assert fact_dict([new, old]) == {"name": "Eva"}
    assert fact_dict([pinned, new, old]) == {"name": "Pia"}
    assert fact_dict([pinned, in_thread, new]) == {"name": "Tea"}
    assert preferred([old, new]) == new
    assert preferred([]) is None
