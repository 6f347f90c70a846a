"""The result of a recall: its hits, and the trace that explains them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, field
from typing import Any, Literal, NamedTuple, get_args

from recollect.memory.ports.vector_index import Entry
from recollect.memory.recall.repeats import Repeats
from recollect.memory.values.frozen import frozen
from recollect.memory.values.left_out import MOST_LEFT_OUT, LeftOut, record_of
from recollect.memory.values.times import iso

HitStage = Literal["selected", "neighbour", "session", "recent", "period", "coverage"]
"""The last step of a hit.

`neighbour`, `session`, `recent` and `period` were not ranked, but returned beside a hit, with its whole session, for
want of a hit, or because the query asks for a time and nothing else. `coverage`: it covers a period, or a subject over
time, and the reason says why that was wanted.
"""
DropStage = Literal["gone", "repeat", "threshold", "rank", "mmr", "budget"]
"""The step that dropped a candidate. `gone`: the store does not confirm it any more. `repeat`: a newer one says the
same."""
Stage = HitStage | DropStage
_HIT_STAGES = frozenset(get_args(HitStage))


@frozen
class Hit:
    """One recalled memory. `similarity` is the raw cosine in [-1, 1], `recency` in [0, 1], `score` ordered it.

    `excerpt`: the content is the best passages of a longer text. `whole`: a document that is given whole, unranked.
    `repeats`: how often it was said; None where it was said once.
    """

    entry: Entry
    score: float
    similarity: float
    recency: float
    excerpt: bool = False
    whole: bool = False
    repeats: Repeats | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the HIT of the HTTP contract."""
        entry = self.entry
        shown: dict[str, Any] = {
            "id": entry.memory_id,
            "kind": entry.kind,
            "role": entry.role,
            "name": entry.name,
            "content": entry.content,
            "score": round(self.score, 6),
            "similarity": round(self.similarity, 6),
            "recency": round(self.recency, 6),
            "created_at": iso(entry.created_at),
            "thread_id": entry.thread_id,
            "turn_id": entry.turn_id,
            "message_id": entry.message_id,
            "repeats": None if self.repeats is None else self.repeats.as_json(),
        }
        if entry.origin is not None:
            shown["document"] = asdict(entry.origin)
        return shown | {name: True for name in ("excerpt", "whole") if getattr(self, name)}


class CandidateTrace(NamedTuple):
    """One candidate's scores by step, the last stage that it reached, and the reason if it was dropped there.

    `kind` says what it is, and `source` where its text is found: a message's turn, a summary's thread, a passage's
    document; None for a fact.
    """

    id: str
    scores: Mapping[str, float]
    stage: Stage
    reason: str | None = None
    kind: str | None = None
    source: str | None = None

    @classmethod
    def of(cls, entry: Entry, scores: Mapping[str, float], stage: Stage, reason: str | None = None) -> "CandidateTrace":
        """Trace the candidate whose entry this is."""
        source = entry.turn_id if entry.kind == "episode" else entry.thread_id if entry.kind == "summary" else None
        if entry.origin is not None:
            source = entry.origin.id
        return cls(entry.memory_id, scores, stage, reason, entry.kind, source)

    @property
    def is_hit(self) -> bool:
        """Tell whether it is among the hits."""
        return self.stage in _HIT_STAGES

    def left_out(self) -> LeftOut:
        """Return it as a candidate that was left out."""
        return LeftOut(self.id, self.kind, self.source, self.stage, self.reason, self.scores)

    def as_json(self) -> dict[str, Any]:
        """Return the entry of a trace in the HTTP contract. It holds no text of the user's."""
        scores = {name: round(score, 6) for name, score in self.scores.items()}
        return {"id": self.id, "scores": scores, "stage": self.stage, "reason": self.reason}


@frozen
class Recalled:
    """The hits, best first. `trace` yields each candidate's trace when it is called, those of the hits first.

    `is_complete` tells of a search with a filter whether all items were checked; None of one without. `is_degraded`:
    the index was down, and the newest items were searched by words.
    """

    hits: Sequence[Hit] = field(default_factory=list[Hit])
    trace: Callable[[], Iterable[CandidateTrace]] = tuple
    is_complete: bool | None = None
    is_degraded: bool = False

    @property
    def degraded_json(self) -> dict[str, Any]:
        """Return what an answer says of a search without the index: nothing where it had it."""
        return {"degraded": ["search_memories"]} if self.is_degraded else {}

    @property
    def filter_json(self) -> dict[str, Any]:
        """Return what an answer says of the search's filter: nothing where there was none."""
        return {} if self.is_complete is None else {"filter": {"complete": self.is_complete}}

    def trace_json(self) -> list[dict[str, Any]]:
        """Return the trace of each candidate."""
        return [trace.as_json() for trace in self.trace()]

    def recorded(self) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Return what a turn keeps of the trace: that of each hit, and the record of the candidates left out."""
        hits, dropped = list[dict[str, Any]](), list[CandidateTrace]()
        for trace in self.trace():
            if trace.is_hit:
                hits.append(trace.as_json())
            else:
                dropped.append(trace)
        return hits, record_of([trace.left_out() for trace in dropped[:MOST_LEFT_OUT]], count=len(dropped))
