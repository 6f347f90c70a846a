"""The embedder port: text to vector."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol

from typing_extensions import override


class Embedder(Protocol):
    """Turns texts into vectors. It distinguishes queries from documents, because some models embed them differently.

    Raises:
        ModelUnavailable: from any call, where it cannot be reached (with `outage` set as `errors.is_outage` reads it).
    """

    @property
    @abstractmethod
    def model(self) -> str:
        """The model's name, part of the collection's fingerprint."""
        ...

    @property
    @abstractmethod
    def knows_meaning(self) -> bool:
        """Tell whether texts of similar meaning get similar vectors without sharing words.

        Recall weighs its channels by it.
        """
        ...

    @abstractmethod
    async def dimension(self) -> int:
        """Return the length of the vectors; asks the model once where no setting or table says it."""
        ...

    @abstractmethod
    async def embed_query(self, text: str) -> Sequence[float]:
        """Return the vector of a search text, of Euclidean length 1 (or 0 for a text without words)."""
        ...

    @abstractmethod
    async def embed_documents(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """Return the vectors of texts to be found, in the order of `texts`, of length 1 (or 0) likewise."""
        ...

    @abstractmethod
    async def ping(self) -> None:
        """Ask whether it can serve.

        Raises:
            ModelUnavailable: it cannot.
        """
        ...


class ForwardingEmbedder(Embedder):
    """Forwards each call to `embedder`, for wrappers that change only some of them.

    `model` is read at each call, as every property is: what is cached by a model's name must not keep an old one.
    """

    __slots__ = ("embedder",)

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder

    @property
    @override
    def model(self) -> str:
        return self.embedder.model

    @property
    @override
    def knows_meaning(self) -> bool:
        return self.embedder.knows_meaning

    @override
    async def dimension(self) -> int:
        return await self.embedder.dimension()

    @override
    async def embed_query(self, text: str) -> Sequence[float]:
        return await self.embedder.embed_query(text)

    @override
    async def embed_documents(self, texts: Sequence[str]) -> list[Sequence[float]]:
        return await self.embedder.embed_documents(texts)

    @override
    async def ping(self) -> None:
        await self.embedder.ping()
