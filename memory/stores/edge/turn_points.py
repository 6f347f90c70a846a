"""The points of turns that a search leaves out, looked up once as long as nothing is written."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager

import qdrant_edge as edge

from recollect.memory.stores.edge.selection import equals
from recollect.memory.stores.points import TURN, USER

_MOST = 100_000


class TurnPoints:
    """Finds the points of turns. One thread reads, another one writes, and says so by `writing`."""

    def __init__(self, shard: edge.EdgeShard) -> None:
        self._shard = shard
        self._writes = 0  # odd while one is under way
        self._known: tuple[int, str, tuple[str, ...], frozenset[str]] = 0, "", (), frozenset()

    @contextmanager
    def writing(self) -> Generator[None]:
        """Tell that points are written within the block."""
        self._writes += 1
        try:
            yield
        finally:
            self._writes += 1

    def of(self, user_id: str, turn_ids: Sequence[str]) -> frozenset[str]:
        """Return the ids of the points of these turns of the user."""
        if not turn_ids:
            return frozenset()
        asked, (*known, found) = (self._writes, user_id, tuple(turn_ids)), self._known
        if asked[0] % 2 or tuple(known) != asked:
            found = self._read(user_id, turn_ids)
            self._known = *asked, found
        return found

    def _read(self, user_id: str, turn_ids: Sequence[str]) -> frozenset[str]:
        of_turns = edge.FieldCondition(TURN, match=edge.MatchAny(list(turn_ids)))
        chosen = edge.Filter(must=[equals(USER, user_id), of_turns])
        request = edge.ScrollRequest(limit=_MOST, filter=chosen, with_payload=False, with_vector=False)
        records, _ = self._shard.scroll(request)
        return frozenset(str(record.id) for record in records)
