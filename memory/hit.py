"""What a recall gives: its hits, and the trace that explains them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any, Literal

from memory.times import iso
from memory.vector_index import Entry

Stage = Literal["selected", "neighbour", "session", "recent", "period", "gone", "threshold", "rank", "mmr", "budget"]
"""Where a candidate's way ended: the first five are among the hits, the others name the step that left it out.

`neighbour`, `session`, `recent` and `period` were not ranked, but given beside a hit, for its whole session, for want
of a hit, or because the query asks for a time and nothing else. `gone`: the documents no longer stand behind it.
"""


@dataclass(frozen=True, slots=True)
class Hit:
    """One recalled memory. `similarity` is the raw cosine, `recency` in [0, 1], `score` what ordered it.

    `excerpt`: the content is the best passages of a longer text. `whole`: a document that is given whole, unranked.
    """

    entry: Entry
    score: float
    similarity: float
    recency: float
    excerpt: bool = False
    whole: bool = False

    def as_json(self) -> dict[str, Any]:
        """The HIT of the HTTP contract."""
        entry = self.entry
        shown: dict[str, Any] = {
            "id": entry.id,
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
        }
        if entry.origin is not None:
            shown["document"] = asdict(entry.origin)
        return shown | {name: True for name in ("excerpt", "whole") if getattr(self, name)}


@dataclass(frozen=True, slots=True)
class Traced:
    """One candidate's way: its score of every stage, where its way ended, and why."""

    id: str
    scores: Mapping[str, float]
    stage: Stage
    reason: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The entry of a trace in the HTTP contract. It holds no text of the user's."""
        scores = {name: round(score, 6) for name, score in self.scores.items()}
        return {"id": self.id, "scores": scores, "stage": self.stage, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Recalled:
    """The hits, best first; `ways` tells each candidate's way, the hits' first, to whoever asks."""

    hits: Sequence[Hit] = field(default_factory=list[Hit])
    ways: Callable[[], Iterable[Traced]] = tuple

    def trace_json(self, *, limit: int | None = None) -> list[dict[str, Any]]:
        """The trace of at most `limit` candidates."""
        return [traced.as_json() for traced in islice(self.ways(), limit)]
