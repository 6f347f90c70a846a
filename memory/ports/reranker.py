"""The reranker port: scores the best candidates of a search a second time, more slowly and more precisely."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol


class Reranker(Protocol):
    """A cross-encoder, which reads query and text together.

    Raises:
        ModelUnavailable: from any call, where it cannot serve.
    """

    @property
    @abstractmethod
    def model(self) -> str:
        """The model's name."""
        ...

    @abstractmethod
    async def relevance(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return how relevant each text is to the query, in (0, 1), in the order of `texts`.

        The value is the sigmoid of the model's score.
        """
        ...
