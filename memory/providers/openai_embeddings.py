"""OpenAIEmbeddings as the embedder: OpenAI and every server that speaks its protocol."""

import asyncio
import logging
from base64 import b64decode
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import orjson
from langchain_openai import OpenAIEmbeddings
from openai.resources.embeddings import AsyncEmbeddings

from memory.embedder import Embedder
from memory.errors import ModelUnavailable
from memory.providers.endpoint import Endpoint, known_dimension
from memory.providers.failures import Failures, status_of
from memory.providers.openai_client import open_client, ping

logger = logging.getLogger(__name__)

BATCH_TEXTS = 128
BATCH_CHARACTERS = 200_000
"""OpenAI takes 300,000 tokens in one request."""
TEXT_CHARACTERS = (24_000, 6_000, 1_500)
"""A text is cut to the first of these, and to the next one as long as the model refuses the request: 8,191 tokens at
OpenAI, 512 in many local models. A long message is found by its beginning rather than never."""


class RemoteEmbedder:
    """Embedder over `client`, which it neither opens nor closes.

    `dimension` is the length that every vector must have; None asks the model once. Each request (at most 128 texts)
    takes at most `timeout_seconds`. Vectors come back with length 1.
    """

    def __init__(
        self,
        client: OpenAIEmbeddings,
        *,
        dimension: int | None,
        failures: Failures,
        timeout_seconds: float,
        ping: Callable[[], Awaitable[None]],
    ) -> None:
        self._client = client
        self._dimension = dimension
        self._failures = failures
        self._timeout = timeout_seconds
        self._ping = ping
        self._asking = asyncio.Lock()

    @property
    def model(self) -> str:
        """The model's name."""
        return self._client.model

    @property
    def knows_meaning(self) -> bool:
        """A trained model does."""
        return True

    async def dimension(self) -> int:
        """The vectors' length; asks the model with one word where nobody has said it.

        Raises:
            ModelTimeout, ModelUnavailable: as `embed_documents`.
        """
        async with self._asking:
            if self._dimension is None:
                await self._request(["dimension"])
        if self._dimension is None:
            raise self._unusable()
        return self._dimension

    async def embed_query(self, text: str) -> Sequence[float]:
        """The vector of a search text."""
        return (await self.embed_documents([text]))[0]

    async def embed_documents(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """The texts' vectors, in their order. A text of white space gets zeros: providers refuse it.

        Raises:
            ModelTimeout: a request took longer than `timeout_seconds`.
            ModelUnavailable: no connection, a refusal, or vectors of another length than stated.
        """
        spoken = [text for text in texts if text.strip()]
        vectors: list[Sequence[float]] = []
        for batch in _batches([text[: TEXT_CHARACTERS[0]] for text in spoken]):
            vectors += await self._embed(batch)
        found = iter(vectors)
        zeros = [0.0] * (0 if len(spoken) == len(texts) else await self.dimension())
        return [next(found) if text.strip() else zeros for text in texts]

    async def ping(self) -> None:
        """Ask, without spending tokens, whether the provider can be reached; raises ModelUnavailable."""
        await self._ping()

    async def _embed(self, texts: list[str]) -> list[Sequence[float]]:
        longest = max(map(len, texts))
        for shorter in (*(limit for limit in TEXT_CHARACTERS[1:] if limit < longest), None):
            try:
                return await self._request(texts)
            except _RefusedError:
                if shorter is None:
                    raise
                logger.warning("texts too long to embed were cut", extra={"action": "embedding_cut", "to": shorter})
                texts = [text[:shorter] for text in texts]
        raise AssertionError  # The loop's last round returns or raises.

    async def _request(self, texts: list[str]) -> list[Sequence[float]]:
        try:
            async with asyncio.timeout(self._timeout):
                answer = await self._client.aembed_documents(texts)
            vectors = np.array(answer, dtype=np.float64)
        except Exception as error:
            logger.debug("the embedder failed", exc_info=error, extra={"action": "model_failed", "model": self.model})
            failure = self._failures.read(error)
            if status_of(error) in {400, 413, 422}:
                failure = _RefusedError(failure.message, outage=False)
            raise failure from None
        return self._checked(vectors, len(texts))

    def _checked(self, vectors: Any, count: int) -> list[Sequence[float]]:
        if vectors.ndim != 2 or len(vectors) != count or not vectors.shape[1] or not np.isfinite(vectors).all():
            raise self._unusable()
        if self._dimension is None:
            self._dimension = int(vectors.shape[1])
        if vectors.shape[1] != self._dimension:
            raise ModelUnavailable(
                f"The embedding model's vectors have {vectors.shape[1]} dimensions and not {self._dimension}; check "
                "EMBEDDING_DIMENSIONS.",
                outage=False,
            )
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return list((vectors / np.where(lengths > 0, lengths, 1.0)).tolist())

    def _unusable(self) -> ModelUnavailable:
        return ModelUnavailable(
            "The embedding model's answer holds no usable vectors; check EMBEDDING_MODEL and EMBEDDING_DIMENSIONS.",
            outage=False,
        )


class _PlainEmbeddings:
    """The SDK's embeddings as LangChain calls them, with answers as plain JSON.

    The SDK looks at every number of a vector on its own: of 1,536 dimensions that took 3 ms each time.
    """

    def __init__(self, resource: AsyncEmbeddings) -> None:
        self._resource = resource

    async def create(self, **parameters: Any) -> dict[str, Any]:
        """One request; vectors that came as base64 (little-endian float32) are unpacked."""
        answer = await self._resource.with_raw_response.create(**parameters)
        body: dict[str, Any] = orjson.loads(answer.content)
        for item in body["data"]:
            if isinstance(item["embedding"], str):
                item["embedding"] = np.frombuffer(b64decode(item["embedding"]), dtype="<f4")
        return body


class _RefusedError(ModelUnavailable):
    """The provider refused the texts; shorter ones it may take."""


def _batches(texts: list[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) == BATCH_TEXTS or size + len(text) > BATCH_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch


@asynccontextmanager
async def open_openai_embedder(
    source: Endpoint, *, model: str, dimensions: int | None, timeout_seconds: float
) -> AsyncGenerator[Embedder]:
    """The embedding model `model` at `source`; `dimensions` is EMBEDDING_DIMENSIONS.

    OpenAI's newer models shorten their vectors on request; other servers are only held to the number. OpenAI itself
    sends base64, which is a third of the bytes; others are asked for plain numbers, which all of them know.
    """

    async def key() -> str:
        # As a callable, because a plain key would make LangChain build a blocking client too.
        return source.api_key

    async with open_client(source, timeout_seconds=timeout_seconds) as client:
        embeddings = await asyncio.to_thread(
            OpenAIEmbeddings,
            model=model,
            api_key=key,
            base_url=source.base_url,
            async_client=_PlainEmbeddings(client.embeddings),
            dimensions=dimensions if model.startswith("text-embedding-3") else None,
            check_embedding_ctx_length=False,
            chunk_size=BATCH_TEXTS,
            model_kwargs={} if source.is_openai else {"encoding_format": "float"},
        )
        yield RemoteEmbedder(
            embeddings,
            dimension=known_dimension(model, dimensions),
            failures=Failures(
                key_setting=source.key_setting,
                model_setting="EMBEDDING_MODEL",
                timeout_setting="EMBEDDING_TIMEOUT_SECONDS",
            ),
            timeout_seconds=timeout_seconds,
            ping=lambda: ping(client),
        )
