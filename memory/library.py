"""The library port: documents, their passages, and the threads that they are attached to. Part of the documents port.

A document is one header and the passages of its text, which joined in order are the text. Every write of a text is a
version of its own: passages are written under the new version first, then one conditional write of the header makes
them the document's. What the header does not name is never shown, and is removed later.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import blake2b
from typing import Any, Literal, Protocol

from memory.scope import GLOBAL_USER, Scope
from memory.times import iso
from memory.turn import derived_id

DocumentKind = Literal["text", "markdown", "html", "pdf", "docx"]
DocumentStatus = Literal["processing", "done", "failed"]


@dataclass(frozen=True, slots=True)
class LibraryDocument:
    """A document's header. `user_id` is its owner, or GLOBAL_USER for everybody's.

    `version` is the version of its passages, 0 while there is none; `incoming` is one that is being written, else 0.
    `pages` is None for kinds without pages. `error` says why it is `failed`. `revision` rises with every write.
    """

    id: str
    user_id: str
    title: str
    kind: DocumentKind
    content_hash: str
    created_at: datetime
    updated_at: datetime
    domain: str | None = None
    source: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    status: DocumentStatus = "processing"
    error: str | None = None
    characters: int = 0
    pages: int | None = None
    passages: int = 0
    version: int = 0
    incoming: int = 0
    revision: int = 0

    def revised(self, **changes: Any) -> "LibraryDocument":
        """The next revision."""
        return replace(self, **{"revision": self.revision + 1, **changes})

    def as_json(self, *, progress: float) -> dict[str, Any]:
        """The document as the HTTP contract shows it; `progress` in [0, 1] is how much of it can be found."""
        return {
            "id": self.id,
            "user_id": None if self.user_id == GLOBAL_USER else self.user_id,
            "scope": "global" if self.user_id == GLOBAL_USER else "user",
            "title": self.title,
            "domain": self.domain,
            "source": self.source,
            "kind": self.kind,
            "metadata": dict(self.metadata),
            "status": self.status,
            "progress": round(progress, 4),
            "error": self.error,
            "characters": self.characters,
            "pages": self.pages,
            "passages": self.passages,
            "created_at": iso(self.created_at),
            "updated_at": iso(self.updated_at),
        }


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document's text. `place` counts from 0, `page` from 1 (None where there are no pages).

    `id` is its point's: the same text in the same document keeps it, whatever version it is of. `indexed` says that
    the index holds it.
    """

    id: str
    user_id: str
    document_id: str
    version: int
    place: int
    text: str
    created_at: datetime
    page: int | None = None
    indexed: bool = False

    @property
    def said(self) -> str:
        """The text without the space around it."""
        return self.text.strip()


@dataclass(frozen=True, slots=True)
class Attached:
    """A document that a thread has attached."""

    document: LibraryDocument
    attached_at: datetime


@dataclass(frozen=True, slots=True)
class Holdings:
    """Whether there are documents of the user's own, and everybody's."""

    own: bool = False
    shared: bool = False


def document_id(user_id: str, *, source: str | None, content_hash: str) -> str:
    """The id of an owner's document: by its source, or where it has none by its content."""
    named = f"source:{text_hash(source)}" if source is not None else f"content:{content_hash}"
    return derived_id(user_id, "", f"document:{named}")  # a turn's id is never empty: no turn derives such an id


def passage_id(user_id: str, document_id: str, text: str, occurrence: int) -> str:
    """The id of the `occurrence`-th passage (from 0) with this text in the document."""
    return derived_id(user_id, document_id, f"passage:{text_hash(text)}:{occurrence}")


def text_hash(text: str) -> str:
    """32 hexadecimal digits."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


class Passages(Protocol):
    """The passages of documents. Where no version is named, only those of the version that the header names count."""

    async def add(self, passages: Sequence[Passage]) -> bool:
        """Store these (at most 500, of one document) under its incoming version; twice is once.

        False, and nothing of it stays, where the document is gone or another version is incoming.
        """
        ...

    async def passages(self, *, user_id: str, passage_ids: Sequence[str]) -> list[Passage]:
        """Those of these (at most 500) that exist, in any order."""
        ...

    def of_document(self, *, user_id: str, document_id: str) -> AsyncIterator[Sequence[Passage]]:
        """The document's passages in their order, in batches: joined they are its text."""
        ...

    async def owed(self, *, user_id: str, document_id: str, limit: int) -> list[Passage]:
        """Passages of the document that the index does not hold yet, in their order."""
        ...

    async def count_owed(self, user_id: str, *, document_id: str | None = None) -> int:
        """How many passages of the user (or of one document) the index does not hold yet."""
        ...

    async def mark_indexed(self, passages: Sequence[Passage]) -> int:
        """Say that the index holds these (at most 500, of one document and version); how many of them still exist."""
        ...

    async def outdated(self, *, user_id: str, document_id: str, limit: int) -> list[Passage]:
        """Passages of a version that the header names neither as its own nor as incoming; of a lost document any."""
        ...

    async def remove(self, passages: Sequence[Passage]) -> int:
        """Delete these (at most 500, of one document and version); how many there were."""
        ...

    def indexed(self, *, user_id: str | None = None) -> AsyncIterator[Sequence[Passage]]:
        """Those marked as indexed, of any version: what the index must hold. In batches of at most 500, any order."""
        ...

    async def count_indexed(self) -> int:
        """How many passages `indexed` yields for all users."""
        ...


class Library(Protocol):
    """Documents, each written whole under the revision that it was read at, and what threads have attached."""

    @property
    def passages(self) -> Passages:
        """The texts."""
        ...

    async def put(self, document: LibraryDocument, *, revision: int) -> bool:
        """Store the header in place of the one with `revision` (0: there is none yet); else False."""
        ...

    async def document(self, *, user_id: str, document_id: str) -> LibraryDocument | None:
        """One document of this owner, or None."""
        ...

    async def documents(self, *, user_id: str, document_ids: Sequence[str]) -> list[LibraryDocument]:
        """Those of these (at most 500) that exist, in any order."""
        ...

    async def page(
        self, user_id: str, *, limit: int, domain: str | None = None, before: tuple[datetime, str] | None = None
    ) -> list[LibraryDocument]:
        """The owner's documents, newest first (ties: by id, descending); `before`: the last page's last place."""
        ...

    async def in_domains(self, user_id: str, domains: Sequence[str], *, limit: int) -> list[str]:
        """The ids of the owner's documents in one of these domains, newest first."""
        ...

    async def holdings(self, user_id: str) -> Holdings:
        """Which documents there are for this user, however many: looked up, not counted."""
        ...

    async def is_empty(self) -> bool:
        """Whether nobody has any document."""
        ...

    async def processing(self, *, limit: int) -> list[LibraryDocument]:
        """Documents of any owner that are `processing`, those not written to for longest first."""
        ...

    async def attach(self, scope: Scope, document: LibraryDocument, *, at: datetime) -> bool:
        """Attach the document to the thread; False if it is attached already."""
        ...

    async def detach(self, scope: Scope, *, document_id: str) -> bool:
        """Take the document from the thread; False if it is not attached."""
        ...

    async def attached(self, scope: Scope) -> list[Attached]:
        """What the thread has attached, in the order of attaching."""
        ...

    async def attachments(self, user_id: str) -> Mapping[str, Sequence[Attached]]:
        """What each of the user's threads has attached."""
        ...

    async def remove(self, *, user_id: str, document_id: str) -> bool:
        """Delete the document with its passages, from every thread too; False if there is none."""
        ...

    async def delete(self, scope: Scope) -> int:
        """Delete the thread's attachments, or the user's documents and all their threads' attachments; how many."""
        ...

    async def count(self, user_id: str | None = None) -> int:
        """How many documents the user has; without one, all users together."""
        ...
