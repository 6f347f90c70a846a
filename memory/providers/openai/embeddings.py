"""Opens the embedder of OpenAI or any server with its protocol."""

from base64 import b64decode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import numpy as np

from recollect.memory.ports.embedder import Embedder
from recollect.memory.providers.endpoint import Endpoint, known_dimension
from recollect.memory.providers.failures import Failures
from recollect.memory.providers.openai.client import open_client, ping
from recollect.memory.providers.openai.plain_client import open_plain_client
from recollect.memory.providers.remote_embedder import RemoteEmbedder


def _numbers(embedding: Any) -> Any:
    """Return a vector's numbers; OpenAI sends them as base64 of little-endian float32."""
    return np.frombuffer(b64decode(embedding), dtype="<f4") if isinstance(embedding, str) else embedding


@asynccontextmanager
async def open_openai_embedder(
    source: Endpoint, *, model: str, dimensions: int | None, timeout_seconds: float
) -> AsyncGenerator[Embedder]:
    """Open the embedding model `model` at `source`; `dimensions` is EMBEDDING_DIMENSIONS.

    OpenAI's newer models shorten their vectors on request; vectors of other servers are only checked for that length.
    OpenAI itself sends base64, a third of the bytes; others are asked for plain numbers, which all of them know.
    """
    parameters: dict[str, Any] = {"model": model, "encoding_format": "base64" if source.is_openai else "float"}
    if dimensions is not None and model.startswith("text-embedding-3"):
        parameters["dimensions"] = dimensions
    async with (
        open_client(source, timeout_seconds=timeout_seconds) as client,
        open_plain_client(source, client) as plain,
    ):

        async def ask(texts: list[str]) -> list[Any]:
            answer = await plain.post("/embeddings", {**parameters, "input": texts})
            return [_numbers(item["embedding"]) for item in answer["data"]]

        yield RemoteEmbedder(
            ask,
            name=model,
            dimension=known_dimension(model, dimensions),
            failures=Failures(
                key_setting=source.key_setting,
                model_setting="EMBEDDING_MODEL",
                address_setting=source.address_setting,
                timeout_setting="EMBEDDING_TIMEOUT_SECONDS",
            ),
            timeout_seconds=timeout_seconds,
            ping=lambda: ping(client),
        )
