"""Asks the embedding model of a provider, in batches that fit and within its timeout."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import override

from recollect.memory.ports.embedder import Embedder
from recollect.memory.providers.failures import Failures, status_in
from recollect.memory.providers.wire import MOST_BYTES, AnswerTooLong
from recollect.memory.values.errors import ModelUnavailable

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

logger = logging.getLogger(__name__)

Ask = Callable[[list[str]], Awaitable[Any]]
"""Takes texts, and returns their vectors: lists of numbers, or numpy's arrays."""
BATCH_TEXTS = 128
NUMBER_BYTES = 24
"""Most bytes of one number of a vector, written as JSON."""
BATCH_CHARACTERS = 200_000
"""OpenAI takes 300,000 tokens in one request."""
TEXT_CHARACTERS = (24_000, 6_000, 1_500)
"""A text is cut to the first of these, and to the next one as long as the model refuses the request: 8,191 tokens at
OpenAI, 512 in many local models. A long message is found by its beginning rather than never."""


class RemoteEmbedder(Embedder):
    """Embedder of the model `name`; `ask` returns the vectors of texts, in their order.

    `dimension` is the length that every vector must have; None asks the model once. Each request (at most 128 texts)
    takes at most `timeout_seconds`. Vectors come back with length 1.
    """

    def __init__(
        self,
        ask: Ask,
        *,
        name: str,
        dimension: int | None,
        failures: Failures,
        timeout_seconds: float,
        ping: Callable[[], Awaitable[None]],
    ) -> None:
        self._ask = ask
        self._name = name
        self._dimension = dimension
        self._failures = failures
        self._timeout = timeout_seconds
        self._ping = ping
        self._asking = asyncio.Lock()

    @property
    @override
    def model(self) -> str:
        """Return the model's name."""
        return self._name

    @property
    @override
    def knows_meaning(self) -> bool:
        """Return True: a trained model knows meaning."""
        return True

    @property
    @override
    def embeds_alike(self) -> bool:
        """Return True: queries are sent as documents are."""
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
        return await self._answered(self._ask(texts), len(texts))

    async def _answered(self, asked: Awaitable[Any], count: int) -> list[Sequence[float]]:
        """Wait for `count` vectors.

        Raises:
            ModelTimeout, ModelUnavailable: as `embed_documents`.
        """
        try:
            async with asyncio.timeout(self._timeout):
                answer = await asked
            vectors = np.array(answer, dtype=np.float64)
        except Exception as error:
            logger.debug("the embedder failed", exc_info=error, extra={"action": "model_failed", "model": self.model})
            failure = self._failures.read(error)
            if status_in(error) in {400, 413, 422}:
                failure = _RefusedError(failure.message, outage=False)
            raise failure from None
        return self._checked(vectors, count)

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


class QueryingEmbedder(RemoteEmbedder):
    """A RemoteEmbedder over LangChain's `client`, whose models embed queries otherwise than documents."""

    def __init__(
        self,
        client: "Embeddings",
        *,
        name: str,
        dimension: int | None,
        failures: Failures,
        timeout_seconds: float,
        ping: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__(
            client.aembed_documents,
            name=name,
            dimension=dimension,
            failures=failures,
            timeout_seconds=timeout_seconds,
            ping=ping,
        )
        self._client = client

    @property
    @override
    def embeds_alike(self) -> bool:
        """Return False: the models embed queries otherwise."""
        return False

    @override
    async def embed_query(self, text: str) -> Sequence[float]:
        """Return the vector of a search text; as a document's where the model refuses it, for its length say."""
        if not text.strip():
            return await super().embed_query(text)
        try:
            return (await self._answered(self._query(text[: TEXT_CHARACTERS[0]]), 1))[0]
        except _RefusedError:
            return await super().embed_query(text)

    async def _query(self, text: str) -> list[list[float]]:
        return [await self._client.aembed_query(text)]


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
