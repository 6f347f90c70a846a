"""The text of a summary: read from a model's answer, cut at a sentence where it is too long. Pure."""

import re

from memory.errors import UnreadableAnswer
from memory.text import text_problem
from memory.tokens import CHARACTERS_PER_TOKEN

MOST_ANSWER_CHARACTERS = 100_000
"""A longer answer is no summary of anything."""
_THOUGHTS = re.compile(r"\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_SENTENCE_BREAK = re.compile(r"(?<=[.!?\u2026])[\"')\]\u201d\u00bb]*\s+|(?<=[\u3002\uff01\uff1f])|\n+")
_ABBREVIATION = re.compile(
    r"(?:^|[^\w.])(?:St|Mr|Mrs|Ms|Dr|Prof|Jr|Sr|No|Nr|vs|e\.g|i\.e|z\.B|bzw|ca|[A-Z]|\d{1,2})\.$"
)


def readable_summary(answer: str, *, tokens: int) -> str:
    """The summary in a model's answer, without what a reasoning model thought aloud, in at most `tokens` tokens.

    Raises:
        UnreadableAnswer: it says nothing, is absurdly long, or holds what no store can keep.
    """
    text = _THOUGHTS.sub("", answer, count=1).strip() if len(answer) <= MOST_ANSWER_CHARACTERS else ""
    if not any(char.isalnum() for char in text) or text_problem(text) is not None:
        raise UnreadableAnswer("The model's answer could not be read as a summary.")
    return cut_at_sentence(text, tokens)


def sentences(text: str) -> list[str]:
    """The sentences and lines of a text, in their order, white space collapsed."""
    found: list[str] = []
    for line in text.splitlines():
        begun = ""
        for piece in _SENTENCE_BREAK.split(line):
            begun = f"{begun} {piece.strip()}".strip()
            if begun and not _ABBREVIATION.search(begun):
                found.append(" ".join(begun.split()))
                begun = ""
        if begun:
            found.append(" ".join(begun.split()))
    return found


def cut_at_sentence(text: str, tokens: int) -> str:
    """The beginning of `text` that fits into `tokens`: whole sentences, or whole words where the first is too long."""
    most = tokens * CHARACTERS_PER_TOKEN
    if len(text) <= most:
        return text
    ends = [found.start() for found in _SENTENCE_BREAK.finditer(text, 0, most + 1) if found.start() <= most]
    whole = text[: ends[-1]].rstrip() if ends else ""
    return whole or cut_at_word(text, most)


def cut_at_word(text: str, characters: int) -> str:
    """The beginning of `text` in at most `characters`, ending with a whole word where there is one, and "…"."""
    if len(text) <= characters:
        return text
    kept = text[: characters - 1]
    space = kept.rfind(" ", len(kept) // 2)
    return (kept[:space] if space > 0 else kept).rstrip() + "\u2026"
