from datetime import UTC, datetime, timedelta

import pytest

from recollect.memory.threads.window import fit_window, format_messages
from recollect.memory.values.tokens import estimate_tokens, fit_first, fit_last
from recollect.memory.values.turn import Exchange, Message

START = datetime(2026, 1, 31, tzinfo=UTC)


def message(number: int, role: str, content: str, name: str | None = None) -> Message:
    return Message(
        user_id="ada",
        thread_id="t1",
        turn_id=f"turn{number}",
        role="user" if role == "user" else "assistant",
        content=content,
        created_at=START + timedelta(seconds=number),
        name=name,
    )


def exchange(number: int, characters: int) -> Exchange:
    """Return a turn of so many characters in all."""
    return Exchange(message(number, "user", "u"), message(number, "assistant", "a" * (characters - 1)))


EXCHANGES = [exchange(number, 40) for number in range(5)]  # 10 tokens each


@pytest.mark.parametrize(("tokens", "kept"), [(0, 0), (9, 0), (10, 1), (19, 1), (20, 2), (49, 4), (50, 5), (9_999, 5)])
def test_the_newest_whole_turns_that_fit_are_kept_in_order(tokens: int, kept: int) -> None:
    assert fit_window(EXCHANGES, tokens) == EXCHANGES[len(EXCHANGES) - kept :]


def test_a_turn_that_does_not_fit_ends_the_window() -> None:
    exchanges = [exchange(0, 4), exchange(1, 4_000), exchange(2, 4)]
    assert fit_window(exchanges, 100) == exchanges[2:]


def test_no_turns_are_no_window() -> None:
    assert fit_window([], 100) == []


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("é" * 8, 2)])
def test_tokens_are_a_quarter_of_the_characters_rounded_up(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@pytest.mark.parametrize(("budget", "first", "last"), [(0, 0, 0), (1, 1, 0), (3, 2, 1), (5, 2, 2), (6, 3, 3)])
def test_what_fits_from_either_end(budget: int, first: int, last: int) -> None:
    texts = ["a", "b" * 8, "c" * 9]  # 1, 2 and 3 tokens
    assert (fit_first(texts, budget), fit_last(texts, budget)) == (first, last)


def test_messages_as_text_name_who_speaks() -> None:
    said = [message(1, "user", "Hi.", name="Ada"), message(1, "assistant", "Hello."), message(2, "user", "Two\nlines.")]
    assert format_messages(said) == "Ada: Hi.\nassistant: Hello.\nuser: Two\nlines."
    assert format_messages([]) == ""
