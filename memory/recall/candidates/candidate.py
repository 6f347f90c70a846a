"""A candidate: one memory that a search may return, with its raw score in each channel."""

from typing import NamedTuple

from recollect.memory.ports.vector_index import Entry, Vector


class Candidate(NamedTuple):
    """An entry with its raw scores; None where a channel has none. A search makes a hundred: a tuple takes a third.

    `dense`, `context` and `fact` are cosines in [-1, 1] with the query: of its text, of its text together with the
    message before it, and of the nearest fact that was learned from it. `bm25` is 0 or more. `vector` is the dense
    vector, where it was asked for.
    """

    entry: Entry
    dense: float | None = None
    context: float | None = None
    bm25: float | None = None
    fact: float | None = None
    vector: Vector | None = None

    @property
    def raw(self) -> "tuple[float | None, ...]":
        """Return the raw scores of the channels `dense`, `context`, `bm25` and `fact`."""
        return self[1:5]

    @property
    def similarity(self) -> float:
        """Return the raw cosine of its text, on which thresholds act; 0 where it has none."""
        return 0.0 if self.dense is None else self.dense
