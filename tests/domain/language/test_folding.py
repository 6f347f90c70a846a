import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.memory.language.folding import MOST_MARKS, MOST_SPELLED_OUT, folded, nfkc, nfkd
from recollect.memory.values.fact import fold


@given(st.text(max_size=30))
def test_texts_of_no_attacker_are_folded_as_unicode_says(text: str) -> None:
    plain = unicodedata.normalize("NFKC", text).casefold()
    assert folded(text) == unicodedata.normalize("NFKC", plain)
    assert nfkc(text) == unicodedata.normalize("NFKC", text)
    assert nfkd(text) == unicodedata.normalize("NFKD", text)


def test_what_is_folded_is_not_folded_again() -> None:
    once = folded("STRASSE \u0130")
    assert folded(once) is once


@pytest.mark.parametrize("mark", ["\u0301", "\u0f73", "\uff9e", "\u0344"])
def test_a_letter_keeps_so_many_marks(mark: str) -> None:
    text = f"a{mark * 100}b{mark * 3}"
    assert nfkc(text) == unicodedata.normalize("NFKC", f"a{mark * MOST_MARKS}b{mark * 3}")


def test_signs_that_are_no_marks_stay_however_many() -> None:
    text = "\U0001f600" * 100 + "\u2026" * 100
    assert nfkc(text) == unicodedata.normalize("NFKC", text)


def test_no_text_becomes_many_times_as_long() -> None:
    every = (chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    longest = [char for char in every if len(unicodedata.normalize("NFKD", char)) > 4]
    for char in longest:
        assert len(nfkc(char * 10_000)) <= 18 * MOST_SPELLED_OUT


@given(st.text(st.characters(max_codepoint=0x7F), max_size=12))
def test_plain_letters_are_compared_as_all_others_are(text: str) -> None:
    """`fold` has a quick way for ASCII; a letter without a case brings it onto the other one."""
    assert fold(f"{text} \u6211") == f"{fold(f'{text} ')} \u6211".strip()


@pytest.mark.parametrize("before", range(MOST_MARKS + 2))
def test_the_shortest_run_that_is_too_long_is_found_at_any_place(before: int) -> None:
    text = "x" * before + "e" + "\u0323" * (MOST_MARKS + 1) + "x"
    assert len(nfkd(text)) == len(text) - 1
