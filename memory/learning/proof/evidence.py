"""Evidence: finds a fact's quote in the user's own message. Pure, and linear in the length of the message."""

import re
import unicodedata
from collections.abc import Iterator

from recollect.memory.language.folding import nfkc
from recollect.memory.language.late_pattern import late_pattern
from recollect.memory.language.punctuation import QUESTION_MARKS, SENTENCE_ENDS
from recollect.memory.language.words import word_set

MOST_CHARACTERS = 2_000
"""A longer quote is refused, because it points at nothing in particular."""
_MOST_OCCURRENCES = 200
_MOST_BEFORE = 500
"""The clause of a quote begins at most this many characters before it."""

_QUOTATION_MARKS = dict.fromkeys(
    map(
        ord,
        "\"'`\u00b4\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb\u2039\u203a\u2032\u2033"
        "\u300c\u300d\u300e\u300f\u301d\u301e\u301f\uff02\uff07",
    ),
    "'",
)
_REPLACED = _QUOTATION_MARKS | dict.fromkeys([0x00AD, 0x200B, 0x2060, 0xFEFF])
"""Every quotation mark becomes one kind; invisible characters are dropped."""
_BLANKS = late_pattern(r"\s+")
_LINE_END = late_pattern(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_CLAUSE_ENDS = SENTENCE_ENDS + ",;:\u3001"
_STATEMENT_BREAK = late_pattern(r"[.!] |\u3002")
_QUESTION_WORDS = word_set(
    "what who whom whose which where when why how do does did am is are was were can could will would shall should "
    "may might must have has had don't doesn't didn't isn't aren't wasn't can't won't"
)
_SPACELESS = late_pattern(
    "[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Scripts without spaces between words, and Hangul, whose particles follow a word without a space."""


class Heard(str):
    """A message as `heard` folds it. `lines` has the same length and keeps line breaks."""

    __slots__ = ("lines",)
    lines: str


def heard(message: str) -> Heard:
    """Fold `message` so that any number of quotes can be found in it."""
    if isinstance(message, Heard):
        return message
    plain = _folded(message)
    lines = " ".join(plain.split()) if _LINE_END.search(plain) is None else _lines_of(plain)
    found = Heard(lines.replace("\n", " "))
    found.lines = lines
    return found


def quote_problem(quote: str, message: str) -> str | None:
    """Return why `quote` proves nothing about what the user said in `message`, or None if it does.

    Both are compared after Unicode NFKC, case, white-space and quotation-mark folding. The quote must hold a word,
    stand in the message on word boundaries, and not be a whole question (nor the body of one: "I like jazz" proves
    nothing where the message asks "Do I like jazz?").
    """
    return find_quote(quote, heard(message))[0]


def find_quote(quote: str, said: Heard) -> tuple[str | None, list[tuple[int, int]]]:
    """Return what `quote_problem` does, and the (start, end) of each place where the quote is a statement."""
    if len(quote) > MOST_CHARACTERS:
        return f"the quote is longer than {MOST_CHARACTERS} characters", []
    wanted = folded_quote(quote)
    if not wanted:
        return "there is no quote", []
    if not any(char.isalnum() for char in wanted):
        return "the quote holds no word", []
    places = [(start, start + len(wanted)) for start in _occurrences(wanted, said)]
    if not places:
        return "the quote is not in the user's message", []
    stated = [(start, end) for start, end in places if not _is_question(said, start, end)]
    return (None, stated) if stated else ("the quote is a question", [])


def folded_quote(quote: str) -> str:
    """Fold `quote`, without the quotation marks around it."""
    return heard(quote).strip("' ")


def _folded(text: str) -> str:
    plain = text.translate(_REPLACED)
    return nfkc(nfkc(plain).casefold())


def _lines_of(text: str) -> str:
    return _BLANKS.sub(_break_or_space, text).strip()


def _break_or_space(blanks: re.Match[str]) -> str:
    return "\n" if _LINE_END.search(blanks[0]) else " "


def _occurrences(wanted: str, said: str) -> Iterator[int]:
    """Yield where `wanted` stands on word boundaries: at most 200 places are tried, so that no message is slow."""
    start = said.find(wanted)
    for _ in range(_MOST_OCCURRENCES):
        if start < 0:
            return
        end = start + len(wanted)
        if _is_boundary(said, start) and _is_boundary(said, end):
            yield start
        start = said.find(wanted, start + 1)


def _is_boundary(text: str, place: int) -> bool:
    """Tell whether a word may begin or end at `place`. A number ends behind its decimals."""
    if place == 0 or place == len(text):
        return True
    before, after = text[place - 1], text[place]
    if unicodedata.category(after).startswith("M"):
        return False
    if _is_word(before) and _is_word(after):
        return bool(_SPACELESS.match(before) or _SPACELESS.match(after))
    if after in ".," and before.isdigit():
        return not text[place + 1 : place + 2].isdigit()
    if before in ".," and after.isdigit():
        return not text[max(place - 2, 0) : place - 1].isdigit()
    return True


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_" or unicodedata.category(char).startswith("M")


def _is_question(said: str, start: int, end: int) -> bool:
    """Tell whether the quote runs to a question mark and begins its clause, or follows only question words.

    A quote that opens with a statement of its own ("I'm Ada. Who are you?") is no question.
    """
    ending = said[start:end].rstrip("' ")
    if ending[-1] not in QUESTION_MARKS:
        following = said[end : end + 8].lstrip("' .!")
        if following[:1] not in QUESTION_MARKS or not following or ending[-1] in SENTENCE_ENDS:
            return False
    first, *rest = _STATEMENT_BREAK.split(ending)
    if rest and first.split()[0] not in _QUESTION_WORDS:
        return False
    near = max(0, start - _MOST_BEFORE)
    begins = max(near, *(said.rfind(mark, near, start) + 1 for mark in _CLAUSE_ENDS))
    asked_with = said[begins:start].strip("' \u00bf").split()
    return all(word in _QUESTION_WORDS for word in asked_with)
