"""The passages port, part of the documents: the pieces of their texts."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from recollect.memory.values.document import Passage


class Passages(Protocol):
    """The passages of documents. Where no version is named, only passages of the header's `version` count."""

    @abstractmethod
    async def add(self, passages: Sequence[Passage]) -> bool:
        """Store these passages (at most 500, of one document) under the document's incoming version.

        A passage that is stored already stays as it is, so a repeated call is safe. Return False, and store nothing,
        where the document is gone or another version is incoming.
        """
        ...

    @abstractmethod
    async def passages(self, *, user_id: str, passage_ids: Sequence[str]) -> list[Passage]:
        """Return those of `passage_ids` (at most 500) that exist, in any order."""
        ...

    @abstractmethod
    def of_document(self, *, user_id: str, document_id: str) -> AsyncIterator[Sequence[Passage]]:
        """Yield the document's passages in batches, by `place`, ascending: joined, they are its text."""
        ...

    @abstractmethod
    async def owed(self, *, user_id: str, document_id: str, limit: int) -> list[Passage]:
        """Return passages of the document that the index does not hold yet, by `place`, ascending."""
        ...

    @abstractmethod
    async def count_owed(self, user_id: str, *, document_id: str | None = None) -> int:
        """Count the passages of the user (or of one document) that the index does not hold yet."""
        ...

    @abstractmethod
    async def mark_indexed(self, passages: Sequence[Passage]) -> int:
        """Record that the index holds these passages (at most 500, of one document and version).

        Return how many of them still exist.
        """
        ...

    @abstractmethod
    async def outdated(self, *, user_id: str, document_id: str, limit: int) -> list[Passage]:
        """Return stored passages of one version that the header names neither as `version` nor as `incoming`.

        Of a document without a header, every version is such a one. Call it until it returns none.
        """
        ...

    @abstractmethod
    async def remove(self, passages: Sequence[Passage]) -> int:
        """Delete these passages (at most 500, of one document and version); return how many were deleted."""
        ...

    @abstractmethod
    def indexed(self, *, user_id: str | None = None) -> AsyncIterator[Sequence[Passage]]:
        """Yield the passages marked as indexed, of any version, which the index must hold.

        They come in batches of at most 500, in any order. Without `user_id`, yield those of all users.
        """
        ...

    @abstractmethod
    async def count_indexed(self) -> int:
        """Count the passages that `indexed` yields for all users."""
        ...
