from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import qdrant_edge as edge

from recollect.memory.ports.vector_index import Point, Query, Vector, VectorIndex, collection_name
from recollect.memory.stores.edge.index import open_edge_index
from recollect.memory.stores.points import BM25, CONTEXT, DENSE
from recollect.memory.values.scope import Scope
from tests.contracts.index.points import MODEL, point, vector

DIMENSION, MANY = 48, 1_200
ADA = Scope("ada")
SOUGHT = vector(9_999, DIMENSION)


def opened(folder: Path) -> AbstractAsyncContextManager[VectorIndex]:
    return open_edge_index(folder, base="edge", model=MODEL, dimension=DIMENSION)


def said(seed: int, *, as_if: int | None = None) -> Point:
    made = point(seed, turn_id=f"turn-{seed}")
    return replace(made, dense=vector(seed if as_if is None else as_if, DIMENSION))


def nearest(points: Sequence[Point], sought: Vector, limit: int) -> dict[str, float]:
    vectors = np.asarray([one.dense for one in points])
    cosines = vectors @ np.asarray(sought) / np.linalg.norm(vectors, axis=1) / np.linalg.norm(sought)
    best: list[int] = np.argsort(-cosines)[:limit].tolist()
    return {points[place].entry.id: float(cosines[place]) for place in best}


async def found(index: VectorIndex, limit: int, sought: Vector = SOUGHT) -> dict[str, float]:
    (scores,) = await index.rank([Query(ADA, sought, limit)])
    return scores


async def test_the_nearest_of_many_are_found_by_codes_and_scored_by_whole_vectors(tmp_path: Path) -> None:
    points = [said(seed) for seed in range(MANY)]
    async with opened(tmp_path) as index:
        await index.upsert(points)
        for limit in (1, 10, 150):
            assert await found(index, limit) == pytest.approx(nearest(points, SOUGHT, limit), abs=1e-5)
        replaced = [said(seed, as_if=seed + MANY) for seed in range(0, MANY, 2)]
        await index.upsert(replaced)
        gone = points[1:200:2]
        await index.remove(user_id="ada", ids=[one.entry.id for one in gone])
    left = [*replaced, *(one for one in points[1::2] if one not in gone)]
    async with opened(tmp_path) as index:
        assert await found(index, 150) == pytest.approx(nearest(left, SOUGHT, 150), abs=1e-5)
        assert await found(index, 1, replaced[7].dense) == pytest.approx({replaced[7].entry.id: 1.0}, abs=1e-5)
    assert codes_in(tmp_path)


def codes_in(folder: Path) -> list[Path]:
    return list(folder.rglob("quantized_data"))


async def test_a_shard_from_before_there_were_codes_is_read_whole_until_it_is_rewritten(tmp_path: Path) -> None:
    vectors = {
        name: edge.EdgeVectorParams(size=DIMENSION, distance=edge.Distance.Cosine, memory=edge.Memory.Cold)
        for name in (DENSE, CONTEXT)
    }
    path = tmp_path / collection_name("edge", model=MODEL, dimension=DIMENSION)
    path.mkdir()
    words = {BM25: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)}
    edge.EdgeShard.create(str(path), edge.EdgeConfig(vectors=vectors, sparse_vectors=words)).close()
    points = [said(seed) for seed in range(MANY)]
    expected = pytest.approx(nearest(points, SOUGHT, 150), abs=1e-5)
    async with opened(tmp_path) as index:
        await index.upsert(points)
    async with opened(tmp_path) as index:
        assert await found(index, 150) == expected
        assert not codes_in(tmp_path)
        await index.rewrite()
        assert await found(index, 150) == expected
    assert codes_in(tmp_path)
