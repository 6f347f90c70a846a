"""The filter terms port, part of the store: the terms of its items, and how far they are made with the present keys."""

import json
from abc import abstractmethod
from dataclasses import asdict
from typing import Protocol

from recollect.memory.values.frozen import frozen


@frozen
class Filling:
    """How far the store and an embedder's points have terms of the keys with this `digest`: for users before `place`.

    `embedder` is its model and dimension. `place` is the beginning of a user's id, too short to name anybody.
    `is_done`: for all users; what was written since has its terms from the start, but for what a process with the keys
    `others` has written. `keys` and `others` are declarations, as `FilterKeys.as_text` writes them.
    """

    digest: str
    embedder: str
    place: str = ""
    is_done: bool = False
    keys: str = ""
    others: str = ""

    def as_text(self) -> str:
        """Return the stored text; equal records have equal texts, those of earlier versions too."""
        known_always = {"digest", "embedder", "place", "is_done"}
        said = {name: value for name, value in asdict(self).items() if value or name in known_always}
        return json.dumps(said, sort_keys=True)

    @classmethod
    def of_text(cls, text: str) -> "Filling":
        """Return the record that `as_text` wrote."""
        return cls(**json.loads(text))


class FilterTerms(Protocol):
    """Terms of messages, facts and documents. Each write of one makes them, with the keys that the store was given."""

    @abstractmethod
    async def between(self, user_id: str, low: str, high: str, *, limit: int) -> list[str]:
        """Return up to `limit` distinct terms of the user's items that are at `low` or above it, and below `high`.

        A `where` names terms: a range of them is asked for here before.
        """
        ...

    @abstractmethod
    async def fill(self, user_id: str, *, limit: int) -> int:
        """Make the terms of up to `limit` of the user's items of each kind that have those of other keys, or none.

        Return how many were read; 0 says that all are made. An item that is changed meanwhile is left to its writer.
        """
        ...

    @abstractmethod
    async def filling(self) -> Filling | None:
        """Return the record of how far terms are made, or None."""
        ...

    @abstractmethod
    async def record(self, filling: Filling, *, seen: Filling | None) -> bool:
        """Store `filling` in place of `seen` (None: no record) in one write; return whether `seen` was the record."""
        ...
