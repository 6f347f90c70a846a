"""Evidence: a fact is believed only if its quote stands in the user's own message. Pure, and linear in the message."""

import re
import unicodedata
from collections.abc import Iterator

from memory.words import words

MOST_CHARACTERS = 2_000
"""A longer quote points at nothing in particular."""
_MOST_OCCURRENCES = 200

_QUOTATION_MARKS = dict.fromkeys(
    map(
        ord,
        "\"'`\u00b4\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb\u2039\u203a\u2032\u2033"
        "\u300c\u300d\u300e\u300f\u301d\u301e\u301f\uff02\uff07",
    ),
    "'",
)
_INVISIBLE = dict.fromkeys([0x00AD, 0x200B, 0x2060, 0xFEFF])
_SENTENCE_ENDS = ".!?\u3002\u061f"
_CLAUSE_ENDS = _SENTENCE_ENDS + ",;:\u3001"
_SENTENCE_BREAK = re.compile(r"[.!] |\u3002")
_QUESTION_MARKS = "?\u061f"
_QUESTION_WORDS = words(
    "what who whom whose which where when why how do does did am is are was were can could will would shall should "
    "may might must have has had don't doesn't didn't isn't aren't wasn't can't won't"
)
_SPACELESS = re.compile(
    "[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Scripts that set no spaces between words, and Hangul, whose particles cling to the word."""


def quote_problem(quote: str, message: str) -> str | None:
    """Why `quote` proves nothing about what the user said in `message`, or None if it does.

    Both are compared after Unicode NFKC, case, white-space and quotation-mark folding. The quote must hold a word,
    stand in the message on word boundaries, and not be a whole question (nor the body of one: "I like jazz" proves
    nothing where the message asks "Do I like jazz?").
    """
    if len(quote) > MOST_CHARACTERS:
        return f"the quote is longer than {MOST_CHARACTERS} characters"
    wanted = _folded(quote).strip("' ")
    if not wanted:
        return "there is no quote"
    if not any(char.isalnum() for char in wanted):
        return "the quote holds no word"
    said = _folded(message)
    occurrences = list(_occurrences(wanted, said))
    if not occurrences:
        return "the quote is not in the user's message"
    if all(_is_question(said, start, start + len(wanted)) for start in occurrences):
        return "the quote is a question"
    return None


def _folded(text: str) -> str:
    plain = text.translate(_QUOTATION_MARKS).translate(_INVISIBLE)
    return " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", plain).casefold()).split())


def _occurrences(wanted: str, said: str) -> Iterator[int]:
    """Where `wanted` stands on word boundaries; bounded, so that no message makes it slow."""
    start = said.find(wanted)
    for _ in range(_MOST_OCCURRENCES):
        if start < 0:
            return
        end = start + len(wanted)
        if _is_boundary(said, start) and _is_boundary(said, end):
            yield start
        start = said.find(wanted, start + 1)


def _is_boundary(text: str, place: int) -> bool:
    """Whether a word may begin or end at `place`. A number ends where its digits do, decimals included."""
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
    """Whether the quote runs to a question mark and begins its sentence, or follows nothing but question words.

    A quote that opens with a statement of its own ("I'm Ada. Who are you?") is none.
    """
    ending = said[start:end].rstrip("' ")
    if ending[-1] not in _QUESTION_MARKS:
        following = said[end : end + 8].lstrip("' .!")
        if following[:1] not in _QUESTION_MARKS or not following or ending[-1] in _SENTENCE_ENDS:
            return False
    first, *rest = _SENTENCE_BREAK.split(ending)
    if rest and first.split()[0] not in _QUESTION_WORDS:
        return False
    begins = max(said.rfind(mark, 0, start) for mark in _CLAUSE_ENDS) + 1
    asked_with = said[begins:start].strip("' \u00bf").split()
    return all(word in _QUESTION_WORDS for word in asked_with)
