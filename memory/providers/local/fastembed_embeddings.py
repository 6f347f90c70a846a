"""Opens local embedding models through fastembed (ONNX; extra `local`)."""

import asyncio
import os
import sys
import threading
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import override

from recollect.memory.ports.embedder import Embedder
from recollect.memory.providers.local.local_model import LocalKind, LocalModel, batches_by_length
from recollect.memory.providers.local.query_model import query_model
from recollect.memory.values.mem_config import QueryPrecision

if TYPE_CHECKING:
    from fastembed import TextEmbedding

_QUERIES = 2
"""So many queries are embedded at once; they never wait for documents."""
_DOCUMENTS = max(1, min(4, (os.cpu_count() or 1) // 2))
"""So many batches of documents are embedded at once, each by one core: the others are for whoever waits."""
_NICENESS = 10
"""How far the threads of documents stand back behind all others, as of `nice`."""
_TEXT_CHARACTERS = 24_000


class LocalEmbedder(LocalModel["TextEmbedding"], Embedder):
    """Embedder over a loaded model. Queries are embedded in `threads`, documents in `behind`, batch by batch.

    `queries` embeds queries by its `query_embed`: the loaded model, or the same with smaller weights. Each run keeps to
    the thread that calls it, so that the priority of the thread is the priority of the work.
    """

    def __init__(
        self,
        loaded: "TextEmbedding",
        *,
        queries: Any,
        name: str,
        threads: ThreadPoolExecutor,
        behind: ThreadPoolExecutor,
    ) -> None:
        super().__init__(loaded, name=name, threads=threads)
        self._queries = queries
        self._behind = behind
        # It is fair: a caller with a few texts waits for a batch of an import, not for the import.
        self._documents = asyncio.Semaphore(_DOCUMENTS)

    @property
    @override
    def knows_meaning(self) -> bool:
        """Return True: a trained model knows meaning."""
        return True

    @property
    @override
    def embeds_alike(self) -> bool:
        """Return False: some models put other words before a query than before a document."""
        return False

    @override
    async def dimension(self) -> int:
        """Return the vectors' length."""
        return self._loaded.embedding_size

    @override
    async def embed_query(self, text: str) -> Sequence[float]:
        """Return the vector of a search text, of length 1."""
        found = await self._run(self._threads, lambda: list(self._queries.query_embed([text[:_TEXT_CHARACTERS]])))
        return found[0]

    @override
    async def embed_documents(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """Return the texts' vectors, of length 1; each text is read up to the model's own limit."""
        cut = [text[:_TEXT_CHARACTERS] for text in texts]
        by_place: dict[int, Sequence[float]] = {}
        for places in batches_by_length(cut):
            batch = [cut[place] for place in places]
            async with self._documents:
                vectors = await self._run(self._behind, partial(self._passages, batch))
            by_place.update(zip(places, vectors, strict=True))
        return [by_place[place] for place in range(len(cut))]

    @override
    async def ping(self) -> None:
        """Return at once: the model is loaded."""

    def _passages(self, texts: list[str]) -> list[Any]:
        return list(self._loaded.passage_embed(texts))

    async def _run(self, threads: ThreadPoolExecutor, work: Any) -> list[Sequence[float]]:
        def unit() -> list[Sequence[float]]:
            vectors = np.array(work(), dtype=np.float64)
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
            return list((vectors / np.where(lengths > 0, lengths, 1.0)).tolist())

        return await asyncio.get_running_loop().run_in_executor(threads, unit)


_KIND: "LocalKind[TextEmbedding]" = LocalKind(
    what="embedding model",
    setting="EMBEDDING_MODEL",
    path_setting="EMBEDDING_MODEL_PATH",
    example="fastembed:BAAI/bge-small-en-v1.5",
    module="fastembed",
    class_name="TextEmbedding",
)


@asynccontextmanager
async def open_local_embedder(
    name: str, *, path: Path | None, query_precision: QueryPrecision
) -> AsyncGenerator[Embedder]:
    """Open the model `name`, loaded from `path`, else from fastembed's cache, else from the model hub.

    Raises:
        ConfigurationError: the package, the path or the model is missing, or the hub cannot be reached.
    """
    with (
        ThreadPoolExecutor(_QUERIES, thread_name_prefix="embedder") as threads,
        ThreadPoolExecutor(_DOCUMENTS, thread_name_prefix="embedder-documents", initializer=_stand_back) as behind,
    ):
        loaded = await _KIND.load(name, path=path, threads=threads, cores=1)
        queries: Any = loaded
        if query_precision == "int8":
            queries = await asyncio.get_running_loop().run_in_executor(threads, query_model, loaded)
        yield LocalEmbedder(loaded, queries=queries, name=name, threads=threads, behind=behind)


def _stand_back() -> None:
    """Lower the priority of this thread; only Linux has priorities of threads under the ids that Python knows."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
