"""A candidate: one memory that a search may give, with what each channel says of it."""

from dataclasses import dataclass

from memory.vector_index import Entry, Vector


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entry with its raw scores; None where a channel has none.

    `dense`, `context` and `fact` are cosines in [-1, 1]: of its text, of its text behind the message before it, and of
    the nearest fact that it taught. `bm25` is 0 or more. `vector` is the dense one, where it was asked for.
    """

    entry: Entry
    dense: float | None = None
    context: float | None = None
    bm25: float | None = None
    fact: float | None = None
    vector: Vector | None = None

    @property
    def similarity(self) -> float:
        """What a threshold acts on: the raw cosine of its text; 0 where nobody asked for it."""
        return 0.0 if self.dense is None else self.dense
