"""Takes from a candidate's score what it repeats nearly word by word of a better one of the same speaker. Pure."""

import re
from bisect import insort
from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import chain, pairwise

from recollect.memory.language.folding import folded
from recollect.memory.recall.ranking import Scored
from recollect.memory.recall.repeats import speaker_of

LOSS = 0.1
"""The score that a text loses whose pairs of words are all in one better text."""
LEAST_SHARE = 0.5
"""The least share of a text's pairs of words that another has to have.

Shorter shingles, or a smaller share, lost recall on LoCoMo: docs/benchmarks.md, "What is found".
"""
MOST_COMPARED = 200
"""How many of the best candidates are compared; those behind them lose nothing."""
COMPARED_CHARACTERS = 300
"""How much of the beginning of a text is compared."""
_MOST_HOLDERS = 8
"""In how many better candidates a pair of words is counted: hundreds may begin with the same greeting."""
_WORD = re.compile(r"\w+")

_Pairs = set[tuple[str, str]]
_Holders = dict[tuple[str, str], list[int]]
"""The places of the candidates that have a pair of words, by the pair."""


def losses(scored: Sequence[Scored], *, count: int, most: float = LOSS) -> list[float]:
    """Return for each candidate what its text loses: -`most` times the share of its pairs of words that it repeats.

    `scored` are the candidates, best first. The share is the greatest that one better candidate has, of the same
    speaker and kind, that loses nothing itself; below `LEAST_SHARE` it counts as 0. Facts lose nothing: two that differ
    in one word are two facts. As soon as no further candidate could be among the best `count`, the others are not
    compared, and lose nothing.
    """
    said: dict[Hashable, _Holders] = {}
    found, left = list[float](), list[float]()
    for place, one in enumerate(scored[:MOST_COMPARED]):
        if len(left) >= count and left[-count] >= one.score:
            break
        entry, loss = one.candidate.entry, 0.0
        if entry.kind != "fact":
            pairs, holders = _pairs(entry.content), said.setdefault(speaker_of(entry), {})
            share = _greatest_share(pairs, holders)
            if share >= LEAST_SHARE:
                loss = -most * share
            else:
                _hold(holders, pairs, place)
        found.append(loss)
        insort(left, one.score + loss)
    return found + [0.0] * (len(scored) - len(found))


def _pairs(text: str) -> _Pairs:
    """Return the pairs of neighbouring words at the beginning of `text`, case-folded."""
    return set(pairwise(_WORD.findall(folded(text[:COMPARED_CHARACTERS]))))


def _greatest_share(pairs: _Pairs, holders: _Holders) -> float:
    """Return the greatest share of `pairs` that one holder has."""
    known = [holders[pair] for pair in pairs if pair in holders]
    return max(Counter(chain.from_iterable(known)).values()) / len(pairs) if known else 0.0


def _hold(holders: _Holders, pairs: _Pairs, place: int) -> None:
    """Add the candidate at `place` to those that have `pairs`."""
    for pair in pairs:
        places = holders.setdefault(pair, [])
        if len(places) < _MOST_HOLDERS:
            places.append(place)
