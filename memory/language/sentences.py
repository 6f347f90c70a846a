"""Sentences: splits a text where its sentences end, in whatever script. Pure, and linear in the text."""

import re
from collections.abc import Iterator

MOST_SENTENCES = 64
MOST_CHARACTERS = 500
"""The length at which a sentence is cut."""
_QUESTION_ENDS = ("?", "\uff1f", "\u061f")
_END = re.compile(
    r"(?<=[.!?\u2026\u061f\u06d4\u0964\u104b])[)\"'\u2019\u201d\u00bb]*\s+|(?<=[\u3002\uff01\uff1f\uff0e\uff61])|\n+"
)


def sentences(text: str, *, most: int = MOST_SENTENCES) -> list[str]:
    """Return the first `most` sentences that have a letter or digit, each of at most MOST_CHARACTERS."""
    found: list[str] = []
    for piece in _pieces(text):
        sentence = " ".join(piece.split())[:MOST_CHARACTERS]
        if any(char.isalnum() for char in sentence):
            found.append(sentence)
            if len(found) == most:
                break
    return found


def _pieces(text: str) -> Iterator[str]:
    """Yield the pieces between the ends of sentences, reading no further than the caller asks."""
    begin = 0
    for end in _END.finditer(text):
        yield text[begin : end.start()]
        begin = end.end()
    yield text[begin:]


def asks(text: str) -> bool:
    """Tell whether the text ends with a question mark: "?", fullwidth or Arabic."""
    return text.rstrip().endswith(_QUESTION_ENDS)
