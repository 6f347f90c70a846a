"""The sieve: candidates on their way to the hits. Whoever is left out is remembered with the step and the reason."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from memory.hit import Hit, Stage, Traced
from memory.ranking import Scored


class _Out(NamedTuple):
    """What one step left out."""

    scored: Sequence[Scored]
    stage: Stage
    reason: str


class Sieve:
    """What is `left`, best first."""

    def __init__(self, scored: Sequence[Scored], fallen: Sequence[Traced] = ()) -> None:
        self.left = list(scored)
        self._out: list[_Out] = []
        self._beside: dict[str, tuple[Stage, str | None]] = {}
        self._fallen = fallen

    def keep(self, fits: Callable[[Scored], bool], stage: Stage, reason: str) -> None:
        """Leave out whatever does not fit."""
        kept, out = list[Scored](), list[Scored]()
        for one in self.left:
            (kept if fits(one) else out).append(one)
        self._leave(kept, out, stage, reason)

    def first(self, count: int, stage: Stage, reason: str) -> None:
        """Leave out all behind the first `count`."""
        self._leave(self.left[:count], self.left[count:], stage, reason)

    def choose(self, places: Sequence[int], stage: Stage, reason: str) -> None:
        """Leave out all but those at these places, in the places' order."""
        chosen = set(places)
        out = [one for place, one in enumerate(self.left) if place not in chosen]
        self._leave([self.left[place] for place in places], out, stage, reason)

    def drop(self, ids: Collection[str], stage: Stage, reason: str) -> None:
        """Leave out those with these ids, whether they were ranked or given beside a hit."""
        self.keep(lambda one: _id(one) not in ids, stage, reason)
        self._beside |= {key: (stage, reason) for key in self._beside if key in ids}

    def rescore(self, name: str, scores: Sequence[float]) -> None:
        """Give what is left these scores, and the order of them; ties keep theirs."""
        scored = [
            replace(one, score=score, scores={**one.scores, name: score})
            for one, score in zip(self.left, scores, strict=True)
        ]
        self.left = sorted(scored, key=lambda one: -one.score)

    def add(self, stage: Stage, hits: Sequence[Hit]) -> None:
        """Note hits that are given though they were left out, or never ranked."""
        self._beside |= {hit.entry.id: (stage, None) for hit in hits}

    def trace(self) -> Iterator[Traced]:
        """Every way: of what is left, of what was given beside it, then of what was left out, the last ones first."""
        yield from (Traced(_id(one), one.scores, "selected") for one in self.left)
        ranked = {_id(one): one.scores for out in self._out for one in out.scored if _id(one) in self._beside}
        beside = [Traced(key, ranked.get(key, {}), stage, reason) for key, (stage, reason) in self._beside.items()]
        yield from sorted(beside, key=lambda traced: traced.reason is not None)
        for out in reversed(self._out):
            yield from (
                Traced(_id(one), one.scores, out.stage, out.reason)
                for one in out.scored
                if _id(one) not in self._beside
            )
        yield from self._fallen

    def _leave(self, kept: list[Scored], out: Sequence[Scored], stage: Stage, reason: str) -> None:
        self.left = kept
        self._out.append(_Out(out, stage, reason))


def _id(one: Scored) -> str:
    return one.candidate.entry.id
