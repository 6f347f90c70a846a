"""The reranker port: a second, slower look at the best candidates of a search."""

from collections.abc import Sequence
from typing import Protocol


class Reranker(Protocol):
    """A cross-encoder: it reads query and text together.

    One that cannot serve raises `ModelUnavailable`.
    """

    @property
    def model(self) -> str:
        """The model's name."""
        ...

    async def relevance(self, query: str, texts: Sequence[str]) -> list[float]:
        """How relevant each text is to the query, in (0, 1): the sigmoid of the model's score, in the texts' order."""
        ...
