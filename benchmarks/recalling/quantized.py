"""Measures what quantization takes from recall: Qdrant's engine searches LoCoMo as QDRANT_QUANTIZATION makes it search.

The embedded engine keeps the short forms that a server keeps, with the server's parameters. Every vector gets one (a
server leaves small segments whole), and no graph is built, so that nothing else differs from the embedded index, whose
own codes are measured too.
"""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import qdrant_edge as edge
from typing_extensions import override

from benchmarks.recalling.locomo import Talk, as_one
from benchmarks.recalling.measures import Outcome
from benchmarks.recalling.passes import ask, say, take_in
from benchmarks.report import Row
from recollect.memory.memory import Memory
from recollect.memory.opening.opening import open_memory
from recollect.memory.ports.forwarding_index import ForwardingIndex
from recollect.memory.ports.vector_index import Match, PointStore, Query, VectorIndex
from recollect.memory.recall.candidates.candidate_query import CHANNEL_LIMIT
from recollect.memory.stores.edge.collection import EdgeCollection
from recollect.memory.stores.edge.engine_threads import EngineThreads
from recollect.memory.stores.edge.running import Running
from recollect.memory.stores.edge.selection import params_of
from recollect.memory.stores.edge.shard import open_shard
from recollect.memory.stores.points import BM25, CONTEXT, DENSE
from recollect.memory.stores.qdrant.layout import OVERSAMPLING, QUANTILE, Quantization
from recollect.memory.values.filtering.keys import NO_KEYS
from recollect.memory.values.mem_config import MemoryConfig
from recollect.memory.values.scope import Scope

WHOLE = "whole vectors"
CODES = "the embedded index's codes"
_ALL_OF_A_SEGMENT = 1_000_000_000
_LEAST_KB = 1
"""A segment with more than this gets short vectors."""


@dataclass(slots=True)
class Quantized:
    """Passes by their names, and how many of the nearest messages short vectors find, in percent by kind."""

    passes: dict[str, list[Outcome]] = field(default_factory=dict[str, list[Outcome]])
    kept: dict[str, float] = field(default_factory=dict[str, float])


class OtherVectors(EdgeCollection):
    """A collection whose vectors are compared as `by` says; that of words is searched as ever."""

    def __init__(self, shard: edge.EdgeShard, path: Path, *, dimension: int, by: edge.SearchParams) -> None:
        def compared(query: Query, limit: int) -> edge.SearchParams:
            return params_of(query, limit) if query.channel == BM25 else by

        super().__init__(
            shard, path, dimension=dimension, threads=EngineThreads(Running()), keys=NO_KEYS, compared=compared
        )


class QuantizedIndex(ForwardingIndex):
    """Searches `copy`, a copy of the `served` index; everything else is the served one's."""

    def __init__(self, served: VectorIndex, copy: OtherVectors) -> None:
        self.name = served.name
        self._served = served
        self._copy = copy

    @override
    async def _opened(self) -> VectorIndex:
        return self._served

    @override
    async def search(self, query: Query) -> list[Match]:
        return await self._copy.search(query)

    @override
    async def rank(self, queries: Sequence[Query]) -> list[dict[str, float]]:
        return await self._copy.rank(queries)


async def quantized(
    talks: Sequence[Talk], base: MemoryConfig, kinds: Sequence[Quantization], *, doing: str
) -> Quantized:
    """Return passes with whole and with short vectors, in which all conversations are one user's.

    A conversation of its own would try little: of some 600 messages, 450 are found by binary vectors before the whole
    ones rank them.
    """
    one, found = as_one(talks), Quantized()
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder:
        config = base.replace(data_dir=Path(folder, "data"))
        async with open_memory(config) as memory:
            await take_in(memory, [one])
        [served] = [path for path in (config.data_dir / "index").iterdir() if path.is_dir()]
        copies: dict[str, Path] = {kind: Path(folder, kind) for kind in ("whole", *kinds)}
        for path in copies.values():
            shutil.copytree(served, path)  # before the memory is open again, which writes to the served one
        async with open_memory(config) as memory:
            dimension = await memory.parts.embedder.dimension()
            async with _whole_vectors(copies["whole"], dimension) as whole:
                searched = _searching(memory, QuantizedIndex(memory.parts.index, whole))
                found.passes[f"{doing}, {WHOLE}"] = await ask(searched, [one], doing=f"{doing}, {WHOLE}")
                name = f"{doing}, {CODES}"
                found.kept[name] = await _share_kept(memory, whole, memory.parts.index, one)
                found.passes[name] = await ask(memory, [one], doing=name)
                for kind in kinds:
                    name = f"{doing}, {kind}"
                    async with _short_vectors(copies[kind], kind, dimension) as short:
                        found.kept[name] = await _share_kept(memory, whole, short, one)
                        searched = _searching(memory, QuantizedIndex(memory.parts.index, short))
                        found.passes[name] = await ask(searched, [one], doing=name)
    return found


def kept_row(doing: str, share: float) -> Row:
    """Return the row that shows a share of `Quantized.kept`."""
    return Row(f"{doing}: found of the nearest {CHANNEL_LIMIT} messages", "", f"{share:.2f} %")


def _searching(memory: Memory, index: VectorIndex) -> Memory:
    search = replace(memory.recall.vector_search, index=index)
    return replace(memory, recall=replace(memory.recall, vector_search=search))


async def _share_kept(memory: Memory, whole: PointStore, short: PointStore, talk: Talk) -> float:
    """Return how many of the messages nearest to a question by whole vectors the short ones find too, in percent."""
    say(f"comparing the nearest {CHANNEL_LIMIT} messages")
    kept = wanted = 0
    for question in talk.questions:
        vector = await memory.parts.embedder.embed_query(question.text)
        asked = [Query(Scope(talk.id), vector, CHANNEL_LIMIT)]
        [nearest], [found] = await whole.rank(asked), await short.rank(asked)
        kept, wanted = kept + len(nearest.keys() & found.keys()), wanted + len(nearest)
    return 100 * kept / wanted


@asynccontextmanager
async def _whole_vectors(path: Path, dimension: int) -> AsyncGenerator[OtherVectors]:
    shard = await asyncio.to_thread(open_shard, path, dimension=dimension)
    async with _opened(OtherVectors(shard, path, dimension=dimension, by=edge.SearchParams(exact=True))) as opened:
        yield opened


@asynccontextmanager
async def _short_vectors(path: Path, kind: Quantization, dimension: int) -> AsyncGenerator[OtherVectors]:
    shard = await asyncio.to_thread(_shortened, path, kind, dimension)
    rescored = edge.QuantizationSearchParams(rescore=True, oversampling=OVERSAMPLING[kind])
    by = edge.SearchParams(quantization=rescored)
    async with _opened(OtherVectors(shard, path, dimension=dimension, by=by)) as opened:
        yield opened


@asynccontextmanager
async def _opened(collection: OtherVectors) -> AsyncGenerator[OtherVectors]:
    try:
        yield collection
    finally:
        await collection.close()


def _shortened(path: Path, kind: Quantization, dimension: int) -> edge.EdgeShard:
    """Open the shard in `path` and give it short vectors.

    Raises:
        RuntimeError: the engine has made none.
    """
    vector = edge.EdgeVectorParams(size=dimension, distance=edge.Distance.Cosine, memory=edge.Memory.Cold)
    config = edge.EdgeConfig(
        vectors={DENSE: vector, CONTEXT: vector},  # those of words are the shard's own
        hnsw_config=edge.HnswIndexConfig(m=0, ef_construct=100, full_scan_threshold=_ALL_OF_A_SEGMENT),
        quantization_config=_config(kind),
        optimizers=edge.EdgeOptimizersConfig(indexing_threshold=_LEAST_KB),
    )
    shard = edge.EdgeShard.load(str(path), config)
    shard.optimize()
    if not any(path.rglob("quantized.data")):
        raise RuntimeError("The engine made no short vectors.")
    return shard


def _config(kind: Quantization) -> edge.ScalarQuantizationConfig | edge.BinaryQuantizationConfig:
    if kind == "binary":
        return edge.BinaryQuantizationConfig(memory=edge.Memory.Pinned)
    return edge.ScalarQuantizationConfig(edge.ScalarType.Int8, quantile=QUANTILE, memory=edge.Memory.Pinned)
