"""The embedder port: text to vector."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol


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
