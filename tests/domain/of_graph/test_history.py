"""A client's history against what is stored: the rules that tell a new turn from one that is asked for again."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from recollect.graph.history import (
    KnownMessage,
    align,
    content_text,
    ends_with,
    goes_on,
    history_fingerprint,
    is_same,
    leading_system,
    merged_history,
    repeats_last,
)
from recollect.memory.values.turn import Exchange, Message

Json = dict[str, Any]

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
CALL = {"id": "c1", "type": "function", "function": {"name": "get_time", "arguments": "{}"}}


def said(*texts: str) -> list[Json]:
    """Return a history in which user and assistant take turns."""
    roles = ("user", "assistant")
    return [{"role": roles[place % 2], "content": text} for place, text in enumerate(texts)]


def stored(*texts: str) -> list[Exchange]:
    """Finished turns, named t0, t1, …"""
    pairs = zip(texts[::2], texts[1::2], strict=True)
    return [
        Exchange(message(place, "user", one), message(place, "assistant", two))
        for place, (one, two) in enumerate(pairs)
    ]


def message(turn: int, role: Any, text: str) -> Message:
    position = 2 * turn + (1 if role == "user" else 2)
    return Message("ada", "t1", f"t{turn}", role, text, NOON + timedelta(minutes=position), position=position)


def matched(history: list[Json], turns: list[Exchange]) -> list[str | None]:
    """Return which stored message each of the client's is: its turn and the first letter of its role."""
    return [found and f"{found.turn_id}{found.role[0]}" for found in align(history, turns).messages]


def given(history: list[Json], turns: list[Exchange], *, window: int | None = None) -> list[str]:
    """Return the texts that the model would be given."""
    shown = [item for turn in turns[-(window or len(turns)) :] for item in turn.messages]
    return [content_text(item["content"]) for item in merged_history(history, align(history, turns), shown)]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Hi.", "Hi."),
        ([{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}], "One.\nTwo."),
        ([{"type": "text", "text": "See:"}, {"type": "image_url", "image_url": {"url": "x"}}], "See:"),
        (["no part", {"type": "text", "text": 7}, None], ""),
        (None, ""),
        (7, ""),
    ],
)
def test_the_text_of_a_content(content: object, text: str) -> None:
    assert content_text(content) == text


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Hello, World!", "hello world", True),
        ("I have 1.5 of it", "I have 15 of it", False),
        ("Straße", "STRASSE", True),
        ("👍", "👎", False),
        ("?", "!", False),
        ("A" * 3_000, "a" * 3_000, True),
        ("x " * 2_000, "x\n" * 2_000, True),
    ],
)
def test_texts_are_compared_folded(one: str, other: str, same: bool) -> None:
    assert is_same(("user", one), ("user", other)) is same
    assert not is_same(("user", one), ("assistant", one))


def test_the_whole_history_is_known() -> None:
    assert matched(said("a", "b", "c", "d"), stored("a", "b", "c", "d")) == ["t0u", "t0a", "t1u", "t1a"]
    assert given(said("a", "b", "c", "d"), stored("a", "b", "c", "d")) == ["a", "b", "c", "d"]


def test_a_client_that_sends_less_gets_the_rest_of_the_window() -> None:
    turns = stored("a", "b", "c", "d", "e", "f")
    assert given([], turns) == ["a", "b", "c", "d", "e", "f"]
    assert given(said("e", "f"), turns) == ["a", "b", "c", "d", "e", "f"]
    assert given(said("a", "b", "c", "d", "e", "f")[3:], turns) == ["a", "b", "c", "d", "e", "f"]


def test_what_is_unknown_stays_where_the_client_has_it() -> None:
    turns = stored("a", "b", "c", "d")
    assert given(said("past", "answer", "a", "b", "c", "d"), turns) == ["past", "answer", "a", "b", "c", "d"]
    assert given(said("past", "b", "c", "d"), turns) == ["past", "b", "c", "d"]
    assert given(said("x", "y"), turns) == ["a", "b", "c", "d", "x", "y"]


def test_a_branch_that_the_client_has_left_is_not_put_back() -> None:
    turns = stored("a", "b", "c", "d", "e", "f")
    assert given(said("a", "b"), turns) == ["a", "b"]
    assert given(said("a", "edited", "c", "d"), turns) == ["a", "edited", "c", "d"]
    assert given(said("c", "d"), turns) == ["a", "b", "c", "d"]
    assert given(said("edited", "d", "e", "f"), turns) == ["a", "b", "edited", "d", "e", "f"]
    assert given(said("e", "f"), turns, window=1) == ["e", "f"]
    assert given(said("yes", "A"), stored("yes", "A", "yes", "B")) == ["yes", "A"]


def test_system_messages_and_tool_rounds_do_not_matter() -> None:
    history = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "Looking.", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "noon"},
        {"role": "assistant", "content": "b"},
    ]
    assert matched(history, stored("a", "b")) == [None, "t0u", None, None, "t0a"]
    assert given(history, stored("0", "1", "a", "b")) == ["Be brief.", "0", "1", "a", "Looking.", "noon", "b"]
    assert leading_system(history) == 1
    assert leading_system(history[:1]) == 1
    assert leading_system([]) == 0


def test_many_unknown_messages_are_still_aligned_quickly() -> None:
    history = said(*(f"m{number}" for number in range(2_000)))
    turns = stored(*(f"s{number}" for number in range(400)))
    assert align(history, turns).turn_ids == frozenset()
    assert align(history, stored("m1998", "m1999")).turn_ids == {"t0"}


def test_messages_carry_the_turn_that_they_are_of() -> None:
    items = merged_history(said("a", "b", "new"), align(said("a", "b", "new"), stored("a", "b")), [])
    assert [item.get("turn_id") for item in items] == ["t0", "t0", None]
    assert KnownMessage().turn_ids == frozenset()


@pytest.mark.parametrize(
    ("history", "text", "texts", "again"),
    [
        # The history once more, and a new turn that only reads the same.
        (("a", "b"), "yes", ("a", "b", "yes", "c"), True),
        (("a", "b", "yes", "c"), "yes", ("a", "b", "yes", "c"), False),
        (("A!", "b "), "Yes.", ("a", "b", "yes", "c"), True),
        (("yes", "c"), "yes", ("yes", "c", "yes", "c"), True),
        (("yes", "c", "yes", "c"), "yes", ("yes", "c", "yes", "c"), False),
        # The thread's only turn.
        ((), "a", ("a", "b"), True),
        ((), "x", ("a", "b"), False),
        ((), "a", (), False),
        # Only the last message is sent: no history to compare.
        ((), "yes", ("a", "b", "yes", "c"), False),
        # A client that keeps the end of its history alone.
        (("c", "d"), "e", ("a", "b", "c", "d", "e", "f"), True),
        (("e", "f"), "e", ("a", "b", "c", "d", "e", "f"), False),
        # Another history: edited, longer than what is stored, or ending elsewhere.
        (("a", "x"), "yes", ("a", "b", "yes", "c"), False),
        (("past", "x", "a", "x"), "yes", ("a", "b", "yes", "c"), False),
        # A history that begins with what is not stored; one that has the message already goes on behind it.
        (("past", "x", "a", "b"), "yes", ("a", "b", "yes", "c"), True),
        (("past", "x"), "yes", ("yes", "c"), True),
        (("yes", "x"), "yes", ("yes", "c"), False),
        (("past", "x", "a", "b"), "other", ("a", "b", "yes", "c"), False),
        (("a", "b"), "c", ("a", "b", "c", "d", "e", "f"), False),
    ],
)
def test_which_request_asks_for_the_last_turn_again(
    history: tuple[str, ...], text: str, texts: tuple[str, ...], again: bool
) -> None:
    assert repeats_last(said(*history), text, stored(*texts), is_whole=True) is again


def test_a_fingerprint_tells_a_history_that_is_not_stored() -> None:
    greeted = [{"role": "assistant", "content": "How may I help?"}]
    turns = stored("a", "b", "yes", "c")
    for history in (greeted, said("a", "edited"), said("x", "y")):
        kept = history_fingerprint([{"role": "system", "content": "Be brief."}, *history])
        assert repeats_last(history, "Yes", turns, is_whole=True, kept=kept)
        assert not repeats_last(history, "no", turns, is_whole=True, kept=kept)
        assert not repeats_last([*history, *said("yes", "c")], "yes", turns, is_whole=True, kept=kept)
        assert not repeats_last(history, "yes", turns, is_whole=True, kept=history_fingerprint(said("past")))
    assert history_fingerprint(said("A!", "b")) == history_fingerprint(said("a", " B"))
    assert history_fingerprint(said("a b")) != history_fingerprint(said("a", "b"))
    assert history_fingerprint([]) is None


def test_where_not_all_is_read_a_longer_history_may_be_the_same() -> None:
    turns = stored("c", "d", "e", "f")
    assert repeats_last(said("a", "b", "c", "d"), "e", turns, is_whole=False)
    assert not repeats_last(said("a", "b", "x", "d"), "e", turns, is_whole=False)
    assert not repeats_last([], "e", turns, is_whole=False)


def test_what_follows_on_the_stored_turns() -> None:
    turns = stored("a", "b", "c", "d")
    assert goes_on([], turns, is_whole=True)
    assert goes_on(said("c", "d"), turns, is_whole=True)
    assert not goes_on(said("a", "b"), turns, is_whole=True)
    assert goes_on([], [], is_whole=True)
    assert goes_on(said("past", "x"), turns, is_whole=True)
    assert goes_on(said("a", "b", "c", "edited"), turns, is_whole=True)
    assert goes_on(said("past", "x", "c", "d"), turns, is_whole=True)
    assert ends_with(said("past", "x", "C"), "c")
    assert not ends_with([], "c")
