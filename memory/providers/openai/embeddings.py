"""Opens OpenAIEmbeddings as the embedder of OpenAI or any server with its protocol."""

import asyncio
import logging
from base64 import b64decode
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import orjson
from langchain_openai import OpenAIEmbeddings
from openai.resources.embeddings import AsyncEmbeddings
from typing_extensions import override

from recollect.memory.ports.embedder import Embedder
from recollect.memory.providers.endpoint import Endpoint, known_dimension
from recollect.memory.providers.failures import Failures, status_of
from recollect.memory.providers.openai.client import open_client, ping
from recollect.memory.providers.wire import MOST_BYTES, AnswerTooLong
from recollect.memory.values.errors import ModelUnavailable

logger = logging.getLogger(__name__)

BATCH_TEXTS = 128
NUMBER_BYTES = 24
"""Most bytes of one number of a vector, written as JSON."""
BATCH_CHARACTERS = 200_000
"""OpenAI takes 300,000 tokens in one request."""
TEXT_CHARACTERS = (24_000, 6_000, 1_500)
"""A text is cut to the first of these, and to the next one as long as the model refuses the request: 8,191 tokens at
OpenAI, 512 in many local models. A long message is found by its beginning rather than never."""


class RemoteEmbedder(Embedder):
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
    @override
    def model(self) -> str:
        """Return the model's name."""
        return self._client.model

    @property
    @override
    def knows_meaning(self) -> bool:
        """Return True: a trained model knows meaning."""
        return True

    @override
    async def dimension(self) -> int:
        """Return the vectors' length; ask the model with one word where it is unknown.

        Raises:
            ModelTimeout, ModelUnavailable: as `embed_documents`.
        """
        async with self._asking:
            if self._dimension is None:
                await self._request(["dimension"])
        if self._dimension is None:
            raise self._unusable()
        return self._dimension

    @override
    async def embed_query(self, text: str) -> Sequence[float]:
        """Return the vector of a search text."""
        return (await self.embed_documents([text]))[0]

    @override
    async def embed_documents(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """Return the texts' vectors, in their order. A text of white space gets zeros: providers refuse it.

        Raises:
            ModelTimeout: a request took longer than `timeout_seconds`.
            ModelUnavailable: no connection, a refusal, or vectors of another length than stated.
        """
        spoken = [text[: TEXT_CHARACTERS[0]] for text in texts if text.strip()]
        vectors: list[Sequence[float]] = []
        while len(vectors) < len(spoken):
            vectors += await self._embed(_batch(spoken[len(vectors) : len(vectors) + self._most_texts()]))
        found = iter(vectors)
        zeros = [0.0] * (0 if len(spoken) == len(texts) else await self.dimension())
        return [next(found) if text.strip() else zeros for text in texts]

    @override
    async def ping(self) -> None:
        """Check, without spending tokens, that the provider can be reached; raises ModelUnavailable."""
        await self._ping()

    def _most_texts(self) -> int:
        """Return how many texts go in one request, so that their vectors fit in one answer."""
        if self._dimension is None:
            return BATCH_TEXTS
        return max(1, min(BATCH_TEXTS, MOST_BYTES // (self._dimension * NUMBER_BYTES)))

    async def _embed(self, texts: list[str]) -> list[Sequence[float]]:
        longest = max(map(len, texts))
        for shorter in (*(limit for limit in TEXT_CHARACTERS[1:] if limit < longest), None):
            try:
                return await self._fitting(texts, may_split=self._dimension is None)
            except _RefusedError:
                if shorter is None:
                    raise
                logger.warning("texts too long to embed were cut", extra={"action": "embedding_cut", "to": shorter})
                texts = [text[:shorter] for text in texts]
        raise AssertionError  # The loop's last round returns or raises.

    async def _fitting(self, texts: list[str], *, may_split: bool) -> list[Sequence[float]]:
        """Return the vectors; with `may_split` in several requests where they are too long for one answer."""
        try:
            return await self._request(texts)
        except AnswerTooLong:
            if not may_split or len(texts) == 1:
                raise
        halves = texts[: len(texts) // 2], texts[len(texts) // 2 :]
        return [vector for half in halves for vector in await self._fitting(half, may_split=True)]

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
    """The SDK's embeddings client in the form that LangChain calls, with answers as plain JSON.

    The SDK itself checks every number of a vector: 1,536 dimensions took 3 ms each time.
    """

    def __init__(self, resource: AsyncEmbeddings) -> None:
        self._resource = resource

    async def create(self, **parameters: Any) -> dict[str, Any]:
        """Send one request and unpack vectors that came as base64 (little-endian float32)."""
        answer = await self._resource.with_raw_response.create(**parameters)
        body: dict[str, Any] = orjson.loads(answer.content)
        for item in body["data"]:
            if isinstance(item["embedding"], str):
                item["embedding"] = np.frombuffer(b64decode(item["embedding"]), dtype="<f4")
        return body


class _RefusedError(ModelUnavailable):
    """The provider refused the texts; shorter ones it may take."""


def _batch(texts: Sequence[str]) -> list[str]:
    """Return as many of the first texts as one request may hold; at least one."""
    batch: list[str] = []
    size = 0
    for text in texts:
        size += len(text)
        if batch and size > BATCH_CHARACTERS:
            break
        batch.append(text)
    return batch


@asynccontextmanager
async def open_openai_embedder(
    source: Endpoint, *, model: str, dimensions: int | None, timeout_seconds: float
) -> AsyncGenerator[Embedder]:
    """Open the embedding model `model` at `source`; `dimensions` is EMBEDDING_DIMENSIONS.

    OpenAI's newer models shorten their vectors on request; vectors of other servers are only checked for that length.
    OpenAI itself sends base64, a third of the bytes; others are asked for plain numbers, which all of them know.
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
