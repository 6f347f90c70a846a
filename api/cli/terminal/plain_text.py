"""Makes texts of models, documents and facts safe to show, so that a terminal writes them and obeys nothing in them.

Every text that did not come from this program goes through one of these functions before it is printed. Escape
sequences would otherwise move the cursor, rewrite what was shown, or talk to the terminal; bidirectional marks show
another order than the text has. Rich's markup is kept out by wrapping in `Text`, which reads none.
"""

import json
import unicodedata
from typing import Any

from rich.text import Text

_KEPT_FORMATS = frozenset("\u200c\u200d")
"""Joiners, which emoji and several scripts are written with, so they stay."""
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
"""Control characters, invisible formats (bidirectional marks, tags), lone surrogates, private ones, other line ends."""


def shown_text(text: str) -> str:
    r"""Return the text with every character named that a terminal would act on; line feeds and tabs stay.

    Carriage returns are dropped. `shown("\x1b[2J")` reads `␛[2J`.
    """
    return "".join(character if _is_plain(character) else _named(character) for character in text)


def line(text: str) -> str:
    """Return the text as `shown_text` does, on one line."""
    return " ".join(shown_text(text).split())


def safe(text: str, style: str = "") -> Text:
    """Return the text for Rich's printing and tables."""
    return Text(shown_text(text), style=style)


def safe_line(text: str, style: str = "") -> Text:
    """Return the text as `safe` does, on one line."""
    return Text(line(text), style=style)


def safe_json(value: Any) -> str:
    """Return indented JSON that is safe to print: characters that a terminal would act on are escaped."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return "".join(character if _is_plain(character) else json.dumps(character)[1:-1] for character in text)


def _is_plain(character: str) -> bool:
    if character in "\n\t" or character in _KEPT_FORMATS:
        return True
    return unicodedata.category(character) not in _HIDDEN


def _named(character: str) -> str:
    """Return a hidden character's picture, or its number."""
    if character == "\r":
        return ""
    number = ord(character)
    if number < 0x20:
        return chr(0x2400 + number)
    return "␡" if number == 0x7F else f"<U+{number:04X}>"
