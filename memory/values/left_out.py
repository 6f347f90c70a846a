"""The candidates that a turn's search left out, as the turn keeps them: ids, scores and reasons, and no text.

They are kept by column, because names of scores and reasons repeat.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

MOST_LEFT_OUT = 50
"""How many left-out candidates a turn keeps, those that came furthest first."""
_PARTS_OF_ONE = 10_000
Json = dict[str, Any]


class LeftOut(NamedTuple):
    """A candidate that was no hit: the step that dropped it, why, and its scores by name.

    `source` is a message's turn, a summary's thread or a passage's document; None for a fact.
    """

    id: str
    kind: str | None
    source: str | None
    stage: str
    reason: str | None
    scores: Mapping[str, float]

    def as_json(self) -> Json:
        """Return it as the HTTP contract shows it."""
        return {
            "id": self.id,
            "kind": self.kind,
            "source": self.source,
            "stage": self.stage,
            "reason": self.reason,
            "scores": dict(self.scores),
        }

    def as_trace(self) -> Json:
        """Return it as an entry of a trace, without kind and source."""
        return {"id": self.id, "scores": dict(self.scores), "stage": self.stage, "reason": self.reason}


def record_of(kept: Sequence[LeftOut], *, count: int) -> Json:
    """Return what a turn keeps of the `count` candidates that its search left out: at most `MOST_LEFT_OUT`, `kept`."""
    ids, kinds, sources, stages, why, scores = zip(*kept, strict=True) if kept else ((),) * 6
    reasons = {reason: place for place, reason in enumerate(dict.fromkeys(reason or "" for reason in why))}
    names = dict.fromkeys(name for one in kept for name in one.scores)
    return {
        "count": count,
        "ids": list(ids),
        "kinds": list(kinds),
        "sources": list(sources),
        "stages": list(stages),
        "reasons": list(reasons),
        "why": [reasons[reason or ""] for reason in why],
        "scores": {name: _rounded([each.get(name) for each in scores]) for name in names},
    }


def read_record(record: Mapping[str, Any]) -> list[LeftOut]:
    """Return the candidates that `record_of` recorded; [] for a record that is none, which an import may hold."""
    try:
        columns = (record["ids"], record["kinds"], record["sources"], record["stages"], record["why"])
        scores: Mapping[str, Sequence[float | None]] = record["scores"]
        rows = list(zip(*columns, strict=True))[:MOST_LEFT_OUT]
        return [
            LeftOut(
                id=memory_id,
                kind=kind,
                source=source,
                stage=stage,
                reason=record["reasons"][why] or None,
                scores={name: value for name, values in scores.items() if (value := values[place]) is not None},
            )
            for place, (memory_id, kind, source, stage, why) in enumerate(rows)
        ]
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        return []


def _rounded(scores: Sequence[float | None]) -> list[float | None]:
    """Round to four digits. To round to none takes less than half of the time."""
    return [None if score is None else round(score * _PARTS_OF_ONE) / _PARTS_OF_ONE for score in scores]
