"""The documents port: documents, their passages, and their attachments to threads. It is part of the store port.

A document is one header and the passages of its text, which joined in order are the text. A write has two phases, so
that a kill between them shows neither half a text nor none: passages are stored under a new version first, then one
conditional write of the header makes that version the document's. Passages of a version that the header does not name
are never shown, and are removed later.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from recollect.memory.ports.passages import Passages
from recollect.memory.values.document import Attached, Document, Holdings
from recollect.memory.values.filtering.narrow import ALL, Narrow
from recollect.memory.values.scope import Scope


class Documents(Protocol):
    """Document headers, each written whole under the revision that was read, and attachments to threads."""

    passages: Passages
    """The passages of the documents."""

    @abstractmethod
    async def put(self, document: Document, *, revision: int) -> bool:
        """Store the header in place of the one with `revision` (0: none is stored yet).

        Else return False, and change nothing.
        """
        ...

    @abstractmethod
    async def document(self, *, user_id: str, document_id: str) -> Document | None:
        """Return one document of this owner, or None."""
        ...

    @abstractmethod
    async def by_ids(self, *, user_id: str, document_ids: Sequence[str]) -> list[Document]:
        """Return those of `document_ids` (at most 500) that exist, in any order."""
        ...

    @abstractmethod
    async def page(
        self,
        user_id: str,
        *,
        limit: int,
        domain: str | None = None,
        before: tuple[datetime, str] | None = None,
        where: Narrow = ALL,
    ) -> list[Document]:
        """Return the owner's documents, newest first (ties: by id, descending), with `domain` only those of it.

        `before` is the (creation, id) of the previous page's last document, which is not returned again.
        """
        ...

    @abstractmethod
    async def in_domains(self, user_id: str, domains: Sequence[str], *, limit: int) -> list[str]:
        """Return the ids of the owner's documents in one of `domains`, newest first."""
        ...

    @abstractmethod
    async def holdings(self, user_id: str) -> Holdings:
        """Tell which documents this user can have: own ones, global ones. It looks for one of each and counts none."""
        ...

    @abstractmethod
    async def is_empty(self) -> bool:
        """Tell whether no user has any document."""
        ...

    @abstractmethod
    async def processing(self, *, limit: int) -> list[Document]:
        """Return documents of any owner with `status` "processing", those first whose last write is oldest."""
        ...

    @abstractmethod
    async def attach(self, scope: Scope, document: Document, *, at: datetime) -> bool:
        """Attach the document to the thread; return False if it is attached already."""
        ...

    @abstractmethod
    async def detach(self, scope: Scope, *, document_id: str) -> bool:
        """Detach the document from the thread; return False if it is not attached."""
        ...

    @abstractmethod
    async def attached(self, scope: Scope) -> list[Attached]:
        """Return the documents attached to the thread, in the order of attaching."""
        ...

    @abstractmethod
    async def attachments(self, user_id: str) -> Mapping[str, Sequence[Attached]]:
        """Return, by thread id, the documents attached to each of the user's threads."""
        ...

    @abstractmethod
    async def remove(self, *, user_id: str, document_id: str) -> bool:
        """Delete the document, its passages and its attachments; return False if there is none."""
        ...

    @abstractmethod
    async def delete(self, scope: Scope) -> int:
        """Delete the thread's attachments, or the user's documents and the attachments in all their threads.

        Return how many attachments or documents were deleted.
        """
        ...

    @abstractmethod
    async def count(self, user_id: str | None = None) -> int:
        """Count the user's documents; without `user_id`, those of all users."""
        ...
