"""The points of turns that a search leaves out, looked up once as long as nothing is written."""

from collections.abc import Sequence

import qdrant_edge as edge

from recollect.memory.stores.edge.selection import equals
from recollect.memory.stores.edge.writes import Writes
from recollect.memory.stores.points import TURN, USER

_MOST = 100_000


class TurnPoints:
    """Finds the points of turns, for several threads."""

    def __init__(self, shard: edge.EdgeShard, writes: Writes) -> None:
        self._shard = shard
        self._writes = writes
        self._known: tuple[int, str, tuple[str, ...], frozenset[str]] = 0, "", (), frozenset()

    def of(self, user_id: str, turn_ids: Sequence[str]) -> frozenset[str]:
        """Return the ids of the points of these turns of the user."""
        if not turn_ids:
            return frozenset()
        rest = self._writes.rest
        *known, found = self._known
        if rest is None:
            return self._read(user_id, turn_ids)
        asked = rest, user_id, tuple(turn_ids)
        if tuple(known) != asked:
            found = self._read(user_id, turn_ids)
            self._known = *asked, found
        return found

    def _read(self, user_id: str, turn_ids: Sequence[str]) -> frozenset[str]:
        of_turns = edge.FieldCondition(TURN, match=edge.MatchAny(list(turn_ids)))
        chosen = edge.Filter(must=[equals(USER, user_id), of_turns])
        request = edge.ScrollRequest(limit=_MOST, filter=chosen, with_payload=False, with_vector=False)
        records, _ = self._shard.scroll(request)
        return frozenset(str(record.id) for record in records)
