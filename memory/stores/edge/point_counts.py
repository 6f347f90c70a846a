"""Tells which users have so few points that the event loop itself may read them."""

from collections.abc import Iterable

import qdrant_edge as edge

from recollect.memory.stores.edge.selection import owned_by
from recollect.memory.values.scope import Scope

FEW = 500
"""So many points are searched in less than a millisecond, holding the interpreter's lock in any thread."""
FEW_BESIDE = 50_000
"""Beside so many points of the user a few that are named are scored in 2 ms: a word's weight asks how many hold it."""
_MOST_USERS = 100_000
"""About 15 MB."""


class PointCounts:
    """Counts users' points once, and adds what is written since: a count may be too high, but not too low for long."""

    def __init__(self, shard: edge.EdgeShard) -> None:
        self._shard = shard
        self._counts: dict[str, int] = {}

    def are_few(self, user_id: str, few: int) -> bool | None:
        """Tell whether the user has at most `few` points; None where they were not counted."""
        counted = self._counts.get(user_id)
        return None if counted is None else counted <= few

    def count(self, user_id: str) -> None:
        """Count the user's points, unless they are counted."""
        if user_id not in self._counts:
            if len(self._counts) >= _MOST_USERS:
                self._counts.clear()
            self._counts[user_id] = self._shard.count(edge.CountRequest(filter=owned_by(Scope(user_id))))

    def add(self, user_ids: Iterable[str]) -> None:
        """Take in that a point of each of these users is written, new or not."""
        for user_id in user_ids:
            if user_id in self._counts:
                self._counts[user_id] += 1

    def forget(self) -> None:
        """Forget all counts, because points were deleted."""
        self._counts.clear()
