from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typing_extensions import override

from recollect.memory.ports.forwarding_index import ForwardingIndex
from recollect.memory.ports.vector_index import Query, SparseVector, VectorIndex
from recollect.memory.recall.candidates.candidate import Candidate
from recollect.memory.recall.candidates.candidate_query import CHANNEL_LIMIT, CandidateQuery
from recollect.memory.recall.candidates.retrieval import named_by_words, retrieve
from recollect.memory.stores.edge.index import open_edge_index
from recollect.memory.values.scope import Scope
from tests.contracts.index.points import DIMENSION, MODEL, point, vector

ADA = Scope("ada")
MANY = 2 * CHANNEL_LIMIT
DENSE, WORDS = vector(9_999), SparseVector([1, 2], [1.0, 0.5])


class Watched(ForwardingIndex):
    """Passes every call on, and keeps the queries with their answers."""

    def __init__(self, index: VectorIndex) -> None:
        self.name = index.name
        self._index = index
        self.ranked: list[tuple[Query, dict[str, float]]] = []

    @override
    async def _opened(self) -> VectorIndex:
        return self._index

    @override
    async def rank(self, queries: Sequence[Query]) -> list[dict[str, float]]:
        found = await self._index.rank(queries)
        self.ranked += zip(queries, found, strict=True)
        return found


@pytest.mark.parametrize("count", [20, MANY], ids=["all are listed", "more than lists hold"])
async def test_no_score_is_asked_for_twice_and_each_is_the_points_own(tmp_path: Path, count: int) -> None:
    random = np.random.default_rng(3)
    points = [
        replace(
            point(seed, turn_id=f"turn-{seed}"),
            context=vector(seed + 5_000),
            bm25=SparseVector([1, 2, 3], random.uniform(0.1, 1.0, 3).tolist()) if seed % 4 else None,
        )
        for seed in range(count)
    ]
    async with open_edge_index(tmp_path, base="edge", model=MODEL, dimension=DIMENSION) as opened:
        await opened.upsert(points)
        index, query = Watched(opened), CandidateQuery(ADA, DENSE, WORDS, ("episode",))
        candidates = await retrieve(index, query)
        asked = {(one.channel, found) for one, scores in index.ranked for found in (one.ids or scores)}
        assert len(asked) == sum(len(one.ids or scores) for one, scores in index.ranked)
        ids = [one.entry.id for one in candidates]
        own = await opened.rank([query.scoring(channel, ids) for channel in ("dense", "context", "bm25")])
    assert len(ids) == count if count < CHANNEL_LIMIT else len(ids) > CHANNEL_LIMIT
    for one in candidates:
        assert [one.dense, one.context, one.bm25] == pytest.approx([scores.get(one.entry.id) for scores in own])


@pytest.mark.parametrize("count", [20, MANY], ids=["all are listed", "more than lists hold"])
async def test_candidates_are_the_same_where_words_were_looked_up_before(tmp_path: Path, count: int) -> None:
    points = [
        replace(point(seed, turn_id=f"turn-{seed}"), bm25=SparseVector([1, seed], [1.0, 2.0]))
        for seed in range(2, count)
    ]
    async with open_edge_index(tmp_path, base="edge", model=MODEL, dimension=DIMENSION) as opened:
        await opened.upsert(points)
        index, query = Watched(opened), CandidateQuery(ADA, DENSE, WORDS, ("episode",))
        words = await named_by_words(opened, replace(query, dense=()))
        before, at_once = await retrieve(index, query, words), await retrieve(opened, query)
        assert [one.channel for one, _ in index.ranked if one.ids is None] == ["dense"]
    assert words
    assert sorted(before, key=_id) == sorted(at_once, key=_id)


def _id(one: Candidate) -> str:
    return one.entry.id
