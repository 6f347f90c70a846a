"""Narrows a search's candidates step by step, and records for the trace which step dropped a candidate, and why."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from recollect.memory.background.long_texts import off_loop
from recollect.memory.ports.vector_index import Entry
from recollect.memory.recall.hit import CandidateTrace, Hit, Stage
from recollect.memory.recall.packing import Relevance, pack
from recollect.memory.recall.ranking import Scored
from recollect.memory.recall.repeats import begun_alike, merge, says_the_same

READ_INLINE = 400
"""How long a text may be whose beginning is looked for on the event loop: one of signs alone is read whole."""


class _Out(NamedTuple):
    """The candidates that one step dropped."""

    scored: Sequence[Scored]
    stage: Stage
    reason: str


class CandidateFilter:
    """Holds the candidates that are `left`, best first, and traces the dropped ones.

    `dropped` are the traces of candidates that were dropped before the ranking.
    """

    def __init__(self, scored: Sequence[Scored], dropped: Sequence[CandidateTrace] = ()) -> None:
        self.left = list(scored)
        self._out: list[_Out] = []
        self._beside: dict[str, tuple[Stage, str | None]] = {}
        self._dropped = dropped

    async def merge_off_loop(self) -> None:
        """Merge as `merge` does, in a thread where long texts are read whole: only those that begin alike are."""
        entries = [one.candidate.entry for one in self.left]
        long = [entry.content for entry in entries if len(entry.content) > READ_INLINE]
        begun = await off_loop(lambda: begun_alike(entries), long)
        alike = [entries[place].content for places in begun if len(places) > 1 for place in places]
        await off_loop(lambda: self.merge(begun), alike)

    def merge(self, begun: Sequence[Sequence[int]] | None = None) -> None:
        """Keep of equal texts of one speaker the newest; see `repeats.merge`."""
        merged = merge(self.left, begun)
        self.left = [one.kept for one in merged]
        for kept, older in merged:
            if older:
                self._out.append(_Out(older, "repeat", says_the_same(kept.candidate.entry)))

    def keep(self, fits: Callable[[Scored], bool], stage: Stage, reason: str) -> None:
        """Drop every candidate for which `fits` is false."""
        kept, out = list[Scored](), list[Scored]()
        for one in self.left:
            (kept if fits(one) else out).append(one)
        self._leave(kept, out, stage, reason)

    def first(self, count: int, stage: Stage, reason: str) -> None:
        """Drop all but the first `count` candidates."""
        self._leave(self.left[:count], self.left[count:], stage, reason)

    def choose(self, places: Sequence[int], stage: Stage, reason: str) -> None:
        """Keep the candidates at `places` (indices into `left`), in that order, and drop the others."""
        chosen = set(places)
        out = [one for place, one in enumerate(self.left) if place not in chosen]
        self._leave([self.left[place] for place in places], out, stage, reason)

    def drop(self, ids: Collection[str], stage: Stage, reason: str) -> None:
        """Drop the entries with these `ids`, whether they were ranked or added beside a hit."""
        self.keep(lambda one: _id(one) not in ids, stage, reason)
        self._beside |= {key: (stage, reason) for key in self._beside if key in ids}

    def rescore(self, name: str, scores: Sequence[float]) -> None:
        """Give the candidates that are left new `scores`, traced under `name`, and sort by them; the sort is stable."""
        scored = [
            one._replace(score=score, scores={**one.scores, name: score})
            for one, score in zip(self.left, scores, strict=True)
        ]
        self.left = sorted(scored, key=lambda one: -one.score)

    def shift(self, name: str, parts: Sequence[float]) -> None:
        """Add `parts` to the scores of the candidates that are left, traced under `name`, and sort by the sums."""
        scored = [
            one._replace(score=one.score + part, scores={**one.scores, name: part}) if part else one
            for one, part in zip(self.left, parts, strict=True)
        ]
        self.left = sorted(scored, key=lambda one: -one.score)

    def add(self, stage: Stage, hits: Sequence[Hit], reason: str | None = None) -> None:
        """Record `hits` that are returned although they were dropped or never ranked."""
        self._beside |= {hit.entry.id: (stage, reason) for hit in hits}

    def cover(self, hits: Sequence[Hit], reason: str) -> None:
        """Keep `hits` alone of the candidates that are left, as those that cover what was asked for."""
        self._leave([], self.left, "rank", "others cover more of what is asked for")
        self.add("coverage", hits, reason)

    async def fit(
        self,
        hits: Sequence[Hit],
        budget: int,
        *,
        relevance: Relevance,
        neighbours: Mapping[str, Sequence[Entry]] | None = None,
        first: Sequence[str] = (),
    ) -> Sequence[Hit]:
        """Return the hits that fit into `budget` tokens, and record the dropped ones and the neighbours; see `pack`."""
        packed = await off_loop(
            lambda: pack(hits, budget, relevance=relevance, neighbours=neighbours or {}, first=first),
            [hit.entry.content for hit in hits],
        )
        self.drop(packed.left_out, "budget", f"does not fit into {budget} tokens")
        self.add("neighbour", [hit for hit in packed.hits if hit.entry.id in packed.neighbours])
        return packed.hits

    def trace(self) -> Iterator[CandidateTrace]:
        """Yield all traces: the selected candidates, the hits beside them, then the dropped ones, latest step first."""
        yield from (CandidateTrace.of(one.candidate.entry, one.scores, "selected") for one in self.left)
        ranked = {_id(one): one.scores for out in self._out for one in out.scored if _id(one) in self._beside}
        beside = [
            CandidateTrace(key, ranked.get(key, {}), stage, reason) for key, (stage, reason) in self._beside.items()
        ]
        yield from sorted(beside, key=lambda trace: not trace.is_hit)
        for out in reversed(self._out):
            yield from (
                CandidateTrace.of(one.candidate.entry, one.scores, out.stage, out.reason)
                for one in out.scored
                if _id(one) not in self._beside
            )
        yield from self._dropped

    def _leave(self, kept: list[Scored], out: Sequence[Scored], stage: Stage, reason: str) -> None:
        self.left = kept
        self._out.append(_Out(out, stage, reason))


def _id(one: Scored) -> str:
    return one.candidate.entry.id
