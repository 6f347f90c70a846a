"""Folding: the form in which texts are compared, made in time that is linear in their length. Pure.

Unicode sorts a run of combining marks in time quadratic in the run's length. So a run longer than `MOST_MARKS` loses
the rest: UAX #15 has that bound in its Stream-Safe Text Format, and no language reaches it. Characters that NFKC
expands to up to 18 letters are dropped behind the first `MOST_SPELLED_OUT` of them.
"""

import re
import unicodedata
from itertools import islice

from recollect.memory.language.late_pattern import late_pattern

MOST_MARKS = 30
"""The most combining marks on one letter."""
# A mark is no word character, but for the two halfwidth ones of kana. Other signs match too: `_bounded` looks closer.
_LONG_RUN = late_pattern(rf"(?:[^\w\s!-~]|[\uff9e\uff9f]){{{MOST_MARKS + 1},}}")
_MAYBE_MARK = late_pattern(r"[^\w\s!-~]|[\uff9e\uff9f]")
_ALSO_MARKS = frozenset("\u0f73\u0f75\u0f81\uff9e\uff9f")
"""Characters without a combining class whose expansions have one."""
MOST_SPELLED_OUT = 1_000
_SPELLED_OUT = late_pattern("[\u321d\u321e\u327c\u3300-\u3357\u33ae\u33af\ufdfa\ufdfb]")
"""All characters that become more than four letters (squared words, Arabic formulas), and some others."""


class Folded(str):
    """A text that `folded` returned: it is not folded again."""

    __slots__ = ()


def nfkc(text: str) -> str:
    """Return `text` in Unicode's form NFKC, with at most MOST_MARKS marks on a letter."""
    return text if text.isascii() else unicodedata.normalize("NFKC", _prepared(text))


def nfkd(text: str) -> str:
    """Return `text` in Unicode's form NFKD, with at most MOST_MARKS marks on a letter."""
    return text if text.isascii() else unicodedata.normalize("NFKD", _prepared(text))


def folded(text: str) -> Folded:
    """Return `text` in NFKC and case-folded; a Folded text is returned as it is."""
    if isinstance(text, Folded):
        return text
    return Folded(text.lower() if text.isascii() else nfkc(nfkc(text).casefold()))


def _prepared(text: str) -> str:
    if _MAYBE_MARK.search(text[:: MOST_MARKS + 1]):  # a run that is too long covers one of these places
        text = _LONG_RUN.sub(_bounded, text)
    beyond = next(islice(_SPELLED_OUT.finditer(text), MOST_SPELLED_OUT, None), None)
    return text if beyond is None else text[: beyond.start()] + _SPELLED_OUT.sub("", text[beyond.start() :])


def _bounded(found: re.Match[str]) -> str:
    """Return the match without the marks that follow MOST_MARKS others."""
    kept: list[str] = []
    marks = 0
    for char in found[0]:
        marks = marks + 1 if unicodedata.combining(char) or char in _ALSO_MARKS else 0
        if marks <= MOST_MARKS:
            kept.append(char)
    return "".join(kept)
