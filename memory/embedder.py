"""The embedder port: text to vector."""

from collections.abc import Sequence
from typing import Protocol


class Embedder(Protocol):
    """Turns texts into vectors. Query and document are told apart, because some models embed them differently.

    An embedder that cannot be reached raises `ModelUnavailable` (with `outage` set as `errors.is_outage` wants it).
    """

    @property
    def model(self) -> str:
        """The model's name, part of the collection's fingerprint."""
        ...

    @property
    def knows_meaning(self) -> bool:
        """Whether texts of like meaning come close though they share no words; recall weighs its channels by it."""
        ...

    async def dimension(self) -> int:
        """The vectors' length. Asks the model once where no setting or table says it."""
        ...

    async def embed_query(self, text: str) -> Sequence[float]:
        """The vector of a search text, of length 1 (or 0 for a text without words)."""
        ...

    async def embed_documents(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """The vectors of texts to be found, in their order."""
        ...

    async def ping(self) -> None:
        """Ask whether it can serve; raises ModelUnavailable."""
        ...
