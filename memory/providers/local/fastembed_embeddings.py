"""Opens local embedding models through fastembed (ONNX; extra `local`)."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import override

from recollect.memory.ports.embedder import Embedder
from recollect.memory.providers.local.local_model import BATCH, LocalKind, LocalModel, in_order_of_length

if TYPE_CHECKING:
    from fastembed import TextEmbedding

_THREADS = 2
_TEXT_CHARACTERS = 24_000


class LocalEmbedder(LocalModel["TextEmbedding"], Embedder):
    """Embedder over a loaded model."""

    @property
    @override
    def knows_meaning(self) -> bool:
        """Return True: a trained model knows meaning."""
        return True

    @override
    async def dimension(self) -> int:
        """Return the vectors' length."""
        return self._loaded.embedding_size

    @override
    async def embed_query(self, text: str) -> Sequence[float]:
        """Return the vector of a search text, of length 1."""
        found = await self._run(lambda: list(self._loaded.query_embed([text[:_TEXT_CHARACTERS]])))
        return found[0]

    @override
    async def embed_documents(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """Return the texts' vectors, of length 1; each text is read up to the model's own limit."""
        if not texts:
            return []
        cut = [text[:_TEXT_CHARACTERS] for text in texts]
        return await self._run(
            lambda: in_order_of_length(cut, lambda some: list(self._loaded.passage_embed(some, batch_size=BATCH)))
        )

    @override
    async def ping(self) -> None:
        """Return at once: the model is loaded."""

    async def _run(self, work: Any) -> list[Sequence[float]]:
        def unit() -> list[Sequence[float]]:
            vectors = np.array(work(), dtype=np.float64)
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
            return list((vectors / np.where(lengths > 0, lengths, 1.0)).tolist())

        return await asyncio.get_running_loop().run_in_executor(self._threads, unit)


_KIND: "LocalKind[TextEmbedding]" = LocalKind(
    what="embedding model",
    setting="EMBEDDING_MODEL",
    path_setting="EMBEDDING_MODEL_PATH",
    example="fastembed:BAAI/bge-small-en-v1.5",
    module="fastembed",
    class_name="TextEmbedding",
)


@asynccontextmanager
async def open_local_embedder(name: str, *, path: Path | None) -> AsyncGenerator[Embedder]:
    """Open the model `name`, loaded from `path`, else from fastembed's cache, else from the model hub.

    Raises:
        ConfigurationError: the package, the path or the model is missing, or the hub cannot be reached.
    """
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="embedder") as threads:
        yield LocalEmbedder(await _KIND.load(name, path=path, threads=threads), name=name, threads=threads)
