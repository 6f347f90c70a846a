"""The sieve: candidates on their way to the hits. Whoever is left out is remembered with the step and the reason."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from memory.hit import Hit, Stage, Traced
from memory.ranking import Scored


class Sieve:
    """What is `left`, best first."""

    def __init__(self, scored: Sequence[Scored], fallen: Sequence[Traced] = ()) -> None:
        self.left = list(scored)
        self._beside: list[Traced] = []
        self._out: list[Traced] = []
        self._fallen = list(fallen)

    def keep(self, fits: Callable[[Scored], bool], stage: Stage, reason: str) -> None:
        """Leave out whatever does not fit."""
        kept = [one for one in self.left if fits(one)]
        out = [one for one in self.left if not fits(one)]
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
        self.keep(lambda one: one.candidate.entry.id not in ids, stage, reason)
        beside = [traced for traced in self._beside if traced.id in ids]
        self._beside = [traced for traced in self._beside if traced.id not in ids]
        self._out[:0] = [replace(traced, stage=stage, reason=reason) for traced in beside]

    def rescore(self, name: str, scores: Sequence[float]) -> None:
        """Give what is left these scores, and the order of them; ties keep theirs."""
        scored = [
            replace(one, score=score, scores={**one.scores, name: score})
            for one, score in zip(self.left, scores, strict=True)
        ]
        self.left = sorted(scored, key=lambda one: -one.score)

    def add(self, stage: Stage, hits: Sequence[Hit]) -> None:
        """Note hits that are given though they were left out, or never ranked."""
        ranked = {traced.id: traced for traced in self._out}
        given = dict.fromkeys(hit.entry.id for hit in hits)
        self._out = [traced for traced in self._out if traced.id not in given]
        unranked = Traced("", {}, stage)
        self._beside += [replace(ranked.get(key, unranked), id=key, stage=stage, reason=None) for key in given]

    def trace(self) -> list[Traced]:
        """Every way: of what is left, of what was given beside it, then of what was left out, the last ones first."""
        left = [Traced(one.candidate.entry.id, one.scores, "selected") for one in self.left]
        return [*left, *self._beside, *self._out, *self._fallen]

    def _leave(self, kept: Sequence[Scored], out: Sequence[Scored], stage: Stage, reason: str) -> None:
        self.left = list(kept)
        self._out[:0] = [Traced(one.candidate.entry.id, one.scores, stage, reason) for one in out]
