"""Sentences: a text cut where its sentences end, in whatever script. Pure, and linear in the text."""

import re

MOST_SENTENCES = 64
MOST_CHARACTERS = 500
"""A longer sentence is cut."""
_QUESTION_ENDS = ("?", "\uff1f", "\u061f")
_END = re.compile(
    r"(?<=[.!?\u2026\u061f\u06d4\u0964\u104b])[)\"'\u2019\u201d\u00bb]*\s+|(?<=[\u3002\uff01\uff1f\uff0e\uff61])|\n+"
)


def sentences(text: str, *, most: int = MOST_SENTENCES) -> list[str]:
    """The first `most` sentences that hold a word, each of at most 500 characters."""
    found: list[str] = []
    for piece in _END.split(text):
        sentence = " ".join(piece.split())[:MOST_CHARACTERS]
        if any(char.isalnum() for char in sentence):
            found.append(sentence)
            if len(found) == most:
                break
    return found


def asks(text: str) -> bool:
    """Whether the text ends with a question."""
    return text.rstrip().endswith(_QUESTION_ENDS)
