"""Local embedding models through fastembed (ONNX; extra `local`)."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np

from memory.embedder import Embedder
from memory.errors import ConfigurationError

if TYPE_CHECKING:
    from fastembed import TextEmbedding

logger = logging.getLogger(__name__)

HUB_SECONDS = 5.0
"""How long the model hub may take to answer at all, before a download from it is begun."""
_THREADS = 2
_BATCH = 32
_TEXT_CHARACTERS = 24_000


class LocalEmbedder:
    """Embedder over a loaded model. Its work is done in `threads`, which it does not shut down."""

    def __init__(self, loaded: "TextEmbedding", *, name: str, threads: ThreadPoolExecutor) -> None:
        self._loaded = loaded
        self._name = name
        self._threads = threads

    @property
    def model(self) -> str:
        """The model's name as fastembed knows it."""
        return self._name

    async def dimension(self) -> int:
        """The vectors' length."""
        return self._loaded.embedding_size

    async def embed_query(self, text: str) -> Sequence[float]:
        """The vector of a search text, of length 1."""
        found = await self._run(lambda: list(self._loaded.query_embed([text[:_TEXT_CHARACTERS]])))
        return found[0]

    async def embed_documents(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """The vectors of texts to be found, of length 1; each text is read up to the model's own length."""
        if not texts:
            return []
        cut = [text[:_TEXT_CHARACTERS] for text in texts]
        return await self._run(lambda: list(self._loaded.passage_embed(cut, batch_size=_BATCH)))

    async def ping(self) -> None:
        """It is loaded, so it is there."""

    async def _run(self, work: Any) -> list[Sequence[float]]:
        def unit() -> list[Sequence[float]]:
            vectors = np.array(work(), dtype=np.float64)
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
            return list((vectors / np.where(lengths > 0, lengths, 1.0)).tolist())

        return await asyncio.get_running_loop().run_in_executor(self._threads, unit)


@asynccontextmanager
async def open_local_embedder(name: str, *, path: Path | None) -> AsyncGenerator[Embedder]:
    """The model `name`, loaded from `path`, else from fastembed's cache, else from the model hub.

    The hub is asked first whether it is there, for HUB_SECONDS at most: fastembed itself tries for most of a minute.

    Raises:
        ConfigurationError: the package, the path or the model is missing, or the hub cannot be reached.
    """
    if path is not None and not await asyncio.to_thread((path / "config.json").is_file):
        raise ConfigurationError("EMBEDDING_MODEL_PATH is not the folder of a model: it holds no config.json.")
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="embedder") as threads:
        loop = asyncio.get_running_loop()
        loaded = await loop.run_in_executor(threads, _load, name, path, True)
        if loaded is None:
            await _reach_hub()
            logger.info("fetching the embedding model", extra={"action": "model_download", "model": name})
            loaded = await loop.run_in_executor(threads, _load, name, None, False)
        if loaded is None:
            raise ConfigurationError(
                "The embedding model could not be fetched from the model hub: set EMBEDDING_MODEL_PATH to a folder "
                "with its files, or check EMBEDDING_MODEL."
            )
        yield LocalEmbedder(loaded, name=name, threads=threads)


def _load(name: str, path: Path | None, local_only: bool) -> "TextEmbedding | None":
    """The model, or None where it is not there and no path was named."""
    try:
        from fastembed import TextEmbedding
        from loguru import logger as loguru_logger
    except ImportError as error:
        raise ConfigurationError(
            'EMBEDDING_MODEL names a local model, which needs another package: pip install "recollect[local]".'
        ) from error
    loguru_logger.disable("fastembed")  # it prints errors for what is tried in passing; what matters is raised below
    known = {str(model["model"]).lower() for model in TextEmbedding.list_supported_models()}
    if name.lower() not in known:
        raise ConfigurationError(
            "EMBEDDING_MODEL names no local model that fastembed knows; one is fastembed:BAAI/bge-small-en-v1.5."
        )
    where: dict[str, Any] = {"specific_model_path": str(path)} if path else {}
    try:
        return TextEmbedding(name, local_files_only=local_only, **where)
    except Exception as error:  # onnxruntime's and the hub's errors have no base in common
        logger.debug("the local model did not load", exc_info=error, extra={"action": "model_load_failed"})
        if path is None:
            return None
        raise ConfigurationError(
            "EMBEDDING_MODEL_PATH does not hold the files of the model that EMBEDDING_MODEL names."
        ) from error


async def _reach_hub() -> None:
    from huggingface_hub import constants

    try:
        async with asyncio.timeout(HUB_SECONDS), httpx.AsyncClient(timeout=HUB_SECONDS) as http:
            await http.head(constants.ENDPOINT)
    except (httpx.HTTPError, TimeoutError) as error:
        raise ConfigurationError(
            "The embedding model is not on this machine and its hub cannot be reached: set EMBEDDING_MODEL_PATH to a "
            "folder with the model's files."
        ) from error
