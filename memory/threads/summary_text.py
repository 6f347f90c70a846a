"""Reads a summary from a model's answer and cuts it at a sentence where it is too long. Pure."""

from recollect.memory.language.late_pattern import late_pattern
from recollect.memory.language.punctuation import SENTENCE_BREAK
from recollect.memory.values.errors import UnreadableAnswer
from recollect.memory.values.text import text_problem
from recollect.memory.values.tokens import CHARACTERS_PER_TOKEN

MOST_ANSWER_CHARACTERS = 100_000
"""A longer answer is no summary of anything."""
_THINKS, _THOUGHT = late_pattern(r"<think(?:ing)?>"), late_pattern(r"</think(?:ing)?>")
_ABBREVIATION = late_pattern(
    r"(?:^|[^\w.])(?:St|Mr|Mrs|Ms|Dr|Prof|Jr|Sr|No|Nr|vs|e\.g|i\.e|z\.B|bzw|ca|[A-Z]|\d{1,2})\.$"
)


def readable_summary(answer: str, *, tokens: int) -> str:
    """Return the summary in a model's `answer`, without marked reasoning, cut to at most `tokens` tokens.

    Raises:
        UnreadableAnswer: the answer has no word, is absurdly long, or has characters that no store can keep.
    """
    text = _without_thoughts(answer).strip() if len(answer) <= MOST_ANSWER_CHARACTERS else ""
    if not any(char.isalnum() for char in text) or text_problem(text) is not None:
        raise UnreadableAnswer("The model's answer could not be read as a summary.")
    return cut_at_sentence(text, tokens)


def _without_thoughts(answer: str) -> str:
    """Remove the first block of the answer that is marked as reasoning (`<think>`)."""
    begins = _THINKS.search(answer)
    ends = _THOUGHT.search(answer, begins.end()) if begins else None
    return answer[: begins.start()] + answer[ends.end() :] if begins and ends else answer


def summary_sentences(text: str) -> list[str]:
    """Split a text into its sentences and lines, in their order, with white space collapsed."""
    found: list[str] = []
    for line in text.splitlines():
        begun: list[str] = []
        for piece in SENTENCE_BREAK.split(line):
            begun += piece.split()
            if begun and not _ABBREVIATION.search(f" {begun[-1]}"):
                found.append(" ".join(begun))
                begun = []
        if begun:
            found.append(" ".join(begun))
    return found


def cut_at_sentence(text: str, tokens: int) -> str:
    """Cut `text` to `tokens`: after a whole sentence, or after a whole word where the first sentence is too long."""
    most = tokens * CHARACTERS_PER_TOKEN
    if len(text) <= most:
        return text
    ends = [found.start() for found in SENTENCE_BREAK.finditer(text, 0, most + 1) if found.start() <= most]
    whole = text[: ends[-1]].rstrip() if ends else ""
    return whole or cut_at_word(text, most)


def cut_at_word(text: str, characters: int) -> str:
    """Cut `text` to at most `characters`, after a whole word where possible, and end it with "…"."""
    if len(text) <= characters:
        return text
    kept = text[: characters - 1]
    space = kept.rfind(" ", len(kept) // 2)
    return (kept[:space] if space > 0 else kept).rstrip() + "\u2026"
