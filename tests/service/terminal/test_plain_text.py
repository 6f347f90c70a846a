"""Checks what a terminal is given of texts that models, documents and people wrote."""

import io
import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from recollect.api.cli.terminal.plain_text import line, safe, safe_json, safe_line, shown_text

TEXTS = st.text(st.characters(codec=None))
ACTING = {"Cc", "Cs", "Zl", "Zp", "Co"}


def acts(text: str) -> list[str]:
    """Return the characters that a terminal may act on, line feeds and tabs apart."""
    return [one for one in text if unicodedata.category(one) in ACTING and one not in "\n\t"]


def printed(text: str) -> str:
    """Return what Rich writes of a text to a terminal without styles."""
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, color_system=None, width=10_000, highlight=False)
    console.print(safe(text), soft_wrap=True)
    return out.getvalue()


def test_plain_text_stays_as_it_is() -> None:
    for text in ("Grüße, Ada!\n\tIndented, “quoted”", "日本語 한국어 עברית", "👩‍👩‍👧 ❤️", "می‌خواهم"):
        assert shown_text(text) == text


def test_escape_sequences_are_shown_not_done() -> None:
    assert shown_text("\x1b[31mred\x1b[0m") == "␛[31mred␛[0m"
    assert shown_text("\x9b31m\x7f\x00\x07") == "<U+009B>31m␡␀␇"
    assert shown_text("a\r\nb\rc") == "a\nbc"
    assert shown_text("admin\u202etxt.exe\u2066\u2028") == "admin<U+202E>txt.exe<U+2066><U+2028>"
    assert shown_text("\ud83d") == "<U+D83D>"
    assert shown_text("\U000e0041") == "<U+E0041>"


def test_a_line_is_one_line() -> None:
    assert line(" a\n\tb \x1b c ") == "a b ␛ c"
    assert safe_line("a\nb").plain == "a b"


def test_markup_is_not_read() -> None:
    assert printed("[bold]x[/bold] [link=http://a]b[/link] :smile:").strip() == (
        "[bold]x[/bold] [link=http://a]b[/link] :smile:"
    )


@given(TEXTS)
def test_no_text_acts(text: str) -> None:
    assert not acts(shown_text(text))
    assert not acts(safe_json({"text": text}))
    assert "\n" not in line(text)


@given(TEXTS)
def test_json_says_the_same(text: str) -> None:
    assert json.loads(safe_json([text, {text: 1}])) == [text, {text: 1}]
