"""Takes from a candidate's score what it repeats nearly word by word of a better one of the same speaker. Pure."""

from bisect import insort
from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import chain, pairwise

from recollect.memory.language.folding import folded
from recollect.memory.language.late_pattern import late_pattern
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
_WORD = late_pattern(r"\w+")

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
    comparison = Comparison(scored, count=count, most=most)
    comparison.go_on()
    return comparison.losses


class Comparison:
    """Compares candidates one by one, best first, and can stop between two of them; see `losses`."""

    def __init__(self, scored: Sequence[Scored], *, count: int, most: float = LOSS) -> None:
        self._scored, self._count, self._most = scored, count, most
        self._said: dict[Hashable, _Holders] = {}
        self._found, self._left = list[float](), list[float]()

    @property
    def losses(self) -> list[float]:
        """Return what each candidate's text loses; those that were not compared lose nothing."""
        return self._found + [0.0] * (len(self._scored) - len(self._found))

    def go_on(self, characters: int | None = None) -> bool:
        """Compare the next candidates until all are compared (True) or so many `characters` were read (False)."""
        read = 0
        for place in range(len(self._found), min(len(self._scored), MOST_COMPARED)):
            one = self._scored[place]
            if len(self._left) >= self._count and self._left[-self._count] >= one.score:
                break
            if characters is not None and read > characters:
                return False
            loss = self._loss(place)
            self._found.append(loss)
            insort(self._left, one.score + loss)
            read += min(len(one.candidate.entry.content), COMPARED_CHARACTERS)
        return True

    def _loss(self, place: int) -> float:
        entry = self._scored[place].candidate.entry
        if entry.kind == "fact":
            return 0.0
        pairs, holders = _pairs(entry.content), self._said.setdefault(speaker_of(entry), {})
        share = _greatest_share(pairs, holders)
        if share >= LEAST_SHARE:
            return -self._most * share
        _hold(holders, pairs, place)
        return 0.0


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
