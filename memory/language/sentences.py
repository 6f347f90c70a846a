"""Sentences: splits a text where its sentences end, in whatever script. Pure, and linear in the text."""

from collections.abc import Iterator

from recollect.memory.language.punctuation import SENTENCE_BREAK

MOST_SENTENCES = 64
MOST_CHARACTERS = 500
"""The length at which a sentence is cut."""


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
    for end in SENTENCE_BREAK.finditer(text):
        yield text[begin : end.start()]
        begin = end.end()
    yield text[begin:]
