"""The points of turns that a search leaves out, looked up once as long as nothing of the user is written."""

from collections.abc import Sequence

import qdrant_edge as edge

from recollect.memory.stores.edge.id_texts import IdTexts
from recollect.memory.stores.edge.selection import equals
from recollect.memory.stores.edge.writes import Writes
from recollect.memory.stores.points import TURN, USER

_MOST = 100_000
_MOST_USERS = 1_000
"""About 10 MB, with windows of ten turns."""


class TurnPoints:
    """Finds the points of turns, for several threads; of each user it keeps those that were asked for last."""

    def __init__(self, shard: edge.EdgeShard, writes: Writes, id_texts: IdTexts) -> None:
        self._shard = shard
        self._writes = writes
        self._id_texts = id_texts
        self._known: dict[str, tuple[int, tuple[str, ...], frozenset[str]]] = {}

    def of(self, user_id: str, turn_ids: Sequence[str]) -> frozenset[str]:
        """Return the ids of the points of these turns of the user."""
        if not turn_ids:
            return frozenset()
        asked, rest = tuple(turn_ids), self._writes.rest(user_id)
        kept = self._known.get(user_id)
        if kept is not None and kept[:2] == (rest, asked):
            return kept[2]
        found = self._read(user_id, turn_ids)
        if rest is not None:
            if len(self._known) >= _MOST_USERS:
                self._known.clear()
            self._known[user_id] = rest, asked, found
        return found

    def _read(self, user_id: str, turn_ids: Sequence[str]) -> frozenset[str]:
        of_turns = edge.FieldCondition(TURN, match=edge.MatchAny(list(turn_ids)))
        chosen = edge.Filter(must=[equals(USER, user_id), of_turns])
        request = edge.ScrollRequest(limit=_MOST, filter=chosen, with_payload=False, with_vector=False)
        records, _ = self._shard.scroll(request)
        return frozenset(self._id_texts.of(record.id for record in records))
