"""Opens the embedder of OpenAI or any server with its protocol."""

from base64 import b64decode
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from recollect.memory.ports.embedder import Embedder
from recollect.memory.providers.endpoint import Endpoint, known_dimension
from recollect.memory.providers.failures import Failures
from recollect.memory.providers.openai.listing import ping
from recollect.memory.providers.openai.plain_client import PlainClient, open_plain_client
from recollect.memory.providers.openai.plain_json import Refused
from recollect.memory.providers.remote_embedder import RemoteEmbedder


@dataclass(slots=True)
class _Asking:
    """Asks for vectors as base64, which has a third of the bytes and is read in a tenth of the time.

    It is what OpenAI's own clients ask for, so that servers with its protocol know it, or answer with plain numbers. A
    server that refuses it is asked for plain numbers from then on.
    """

    client: PlainClient
    parameters: Mapping[str, Any]
    encoding: Literal["base64", "float"] = "base64"

    async def vectors(self, texts: list[str]) -> list[Any]:
        """Return the texts' vectors, as the server sends them."""
        try:
            return await self._ask(texts)
        except Refused as error:
            if self.encoding == "float" or not _is_of_encoding(str(error)):
                raise
            self.encoding = "float"
        return await self._ask(texts)

    async def _ask(self, texts: list[str]) -> list[Any]:
        body = {**self.parameters, "input": texts, "encoding_format": self.encoding}
        answer = await self.client.post("/embeddings", body)
        return [_numbers(item["embedding"]) for item in answer["data"]]


def _is_of_encoding(refusal: str) -> bool:
    """Tell whether the server's words name the wish for base64."""
    return "encoding_format" in refusal or "base64" in refusal


def _numbers(embedding: Any) -> Any:
    """Return a vector's numbers; base64 is of little-endian float32."""
    return np.frombuffer(b64decode(embedding), dtype="<f4") if isinstance(embedding, str) else embedding


@asynccontextmanager
async def open_openai_embedder(
    source: Endpoint, *, model: str, dimensions: int | None, timeout_seconds: float
) -> AsyncGenerator[Embedder]:
    """Open the embedding model `model` at `source`; `dimensions` is EMBEDDING_DIMENSIONS.

    OpenAI's newer models shorten their vectors on request; vectors of other servers are only checked for that length.
    """
    parameters: dict[str, Any] = {"model": model}
    if dimensions is not None and model.startswith("text-embedding-3"):
        parameters["dimensions"] = dimensions
    async with open_plain_client(source) as plain:
        yield RemoteEmbedder(
            _Asking(plain, parameters).vectors,
            name=model,
            dimension=known_dimension(model, dimensions),
            failures=Failures(
                key_setting=source.key_setting,
                model_setting="EMBEDDING_MODEL",
                address_setting=source.address_setting,
                timeout_setting="EMBEDDING_TIMEOUT_SECONDS",
            ),
            timeout_seconds=timeout_seconds,
            ping=lambda: ping(plain),
        )
