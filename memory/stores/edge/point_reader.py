"""Reads the points of a shard, in whatever thread it is called: their ids with scores, and their entries."""

from collections.abc import Callable, Sequence
from typing import cast

import qdrant_edge as edge

from recollect.memory.ports.vector_index import Entry, Match, Query, SparseVector, Vector
from recollect.memory.stores.edge.id_texts import IdTexts
from recollect.memory.stores.edge.known_entries import KnownEntries
from recollect.memory.stores.edge.selection import request_of
from recollect.memory.stores.edge.turn_points import TurnPoints
from recollect.memory.stores.edge.writes import Writes
from recollect.memory.stores.points import DENSE, cosine_of_score, raw_score

Asked = tuple[Query, list[float] | SparseVector | None]
"""A query with its checked vector; None finds nothing."""
Comparing = Callable[[Query, int], edge.SearchParams]
"""How the query's vector is compared with others, for so many of the best points."""
_Found = tuple[str, edge.ScoredPoint]


class PointReader:
    """Answers queries; the engine's errors are its own. It makes values of what the engine finds as it is read."""

    def __init__(self, shard: edge.EdgeShard, writes: Writes, compared: Comparing) -> None:
        self.entries = KnownEntries(shard, writes)
        self._shard = shard
        self._compared = compared
        self._id_texts = IdTexts()
        self._turn_points = TurnPoints(shard, writes, self._id_texts)

    def matches(self, query: Query, vector: list[float]) -> list[Match]:
        """Return the best entries of the query with their cosines."""
        (found,) = self._found([(query, vector)])
        entries = {entry.id: entry for entry in self.entries.of([found_id for found_id, _ in found])}
        return [_match(entries[found_id], point) for found_id, point in found if found_id in entries]

    def ranked(self, asked: Sequence[Asked]) -> list[dict[str, float]]:
        """Return the best ids of each query with their raw scores."""
        return [
            {found_id: raw_score(query, point.score) for found_id, point in points}
            for (query, _), points in zip(asked, self._found(asked), strict=True)
        ]

    def _found(self, asked: Sequence[Asked]) -> "list[list[_Found]]":
        """Return the best points of each query. Points of excluded turns are few: find them, then drop them."""
        before = self._excluded(asked)
        found = [
            self._query(query, vector, limit=query.limit + len(excluded))
            for (query, vector), excluded in zip(asked, before, strict=True)
        ]
        after = self._excluded(asked)  # The writer may have stored one meanwhile.
        kept = list[list[_Found]]()
        for (query, _), excluded, added, points in zip(asked, before, after, found, strict=True):
            dropped = excluded | added
            ids = self._id_texts.of(point.id for point in points)
            left = [(found_id, point) for found_id, point in zip(ids, points, strict=True) if found_id not in dropped]
            kept.append(left[: query.limit])
        return kept

    def _excluded(self, asked: Sequence[Asked]) -> list[frozenset[str]]:
        """Return the ids of the points of each query's excluded turns; those of the same turns are looked up once."""
        of_turns = [(query.scope.user_id, tuple(query.exclude_turns)) for query, _ in asked]
        looked_up = {turns: self._turn_points.of(*turns) for turns in dict.fromkeys(of_turns)}
        return [looked_up[turns] for turns in of_turns]

    def _query(self, query: Query, vector: list[float] | SparseVector | None, *, limit: int) -> list[edge.ScoredPoint]:
        if vector is None:
            return []
        return self._shard.query(request_of(query, vector, limit=limit, params=self._compared(query, limit)))


def _match(entry: Entry, found: edge.ScoredPoint) -> Match:
    vectors = cast("dict[str, Vector] | None", found.vector)
    return Match(
        entry=entry,
        similarity=cosine_of_score(found.score),
        dense=None if vectors is None else vectors[DENSE],
    )
