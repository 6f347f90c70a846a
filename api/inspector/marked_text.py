"""Texts with marked passages, such as the quotes that a turn taught something from."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from recollect.memory.values.frozen import frozen

Place = tuple[int, int]
"""The start of a passage, and the place behind its last character."""


@frozen
class MarkedPiece:
    """A part of a text, marked or not."""

    text: str
    is_marked: bool


def pieces_of(text: str, places: Iterable[Place]) -> Sequence[MarkedPiece]:
    """Cut `text` into pieces, in their order; those in one of `places` are marked. Places may overlap."""
    inside = [(max(0, start), min(end, len(text))) for start, end in places]
    inside = _joined(sorted(place for place in inside if place[0] < place[1]))
    edges = sorted({0, len(text), *(edge for place in inside for edge in place)})
    begins = {start for start, _ in inside}
    return [MarkedPiece(text[start:end], start in begins) for start, end in pairwise(edges)]


def _joined(places: Sequence[Place]) -> list[Place]:
    """Join places that overlap or touch; they come in their order."""
    joined = list[Place]()
    for start, end in places:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
