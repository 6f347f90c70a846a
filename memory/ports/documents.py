"""The documents port: documents, their passages, and their attachments to threads. It is part of the store port.

A document is one header and the passages of its text, which joined in order are the text. A write has two phases, so
that a kill between them shows neither half a text nor none: passages are stored under a new version first, then one
conditional write of the header makes that version the document's. Passages of a version that the header does not name
are never shown, and are removed later.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import blake2b
from typing import Any, Literal, Protocol

from recollect.memory.values.scope import GLOBAL_USER, Scope
from recollect.memory.values.times import iso
from recollect.memory.values.turn import derived_id

DocumentKind = Literal["text", "markdown", "html", "pdf", "docx"]
DocumentStatus = Literal["processing", "done", "failed"]


@dataclass(frozen=True, slots=True)
class Document:
    """A document's header. `user_id` is its owner, or GLOBAL_USER for a document of all users.

    `version` is the version of its passages (0: none yet); `incoming` is the version that is being written, or 0.
    `pages` is None for kinds without pages. `error` says why `status` is "failed". `revision` rises with every write.
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

    def revised(self, **changes: Any) -> "Document":
        """Return the next revision, with `changes` applied."""
        return replace(self, **{"revision": self.revision + 1, **changes})

    def as_json(self, *, progress: float) -> dict[str, Any]:
        """Return the document as the HTTP contract shows it.

        `progress` in [0, 1] is the share of its passages that a search can find.
        """
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
    """A piece of a document's text. `place` counts from 0, `page` from 1 (None where the document has no pages).

    `id` is also its point's id: the same text in the same document keeps it in every version. `indexed` records that
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
        """The text without surrounding white space."""
        return self.text.strip()


@dataclass(frozen=True, slots=True)
class Attached:
    """A document attached to a thread, and when (UTC)."""

    document: Document
    attached_at: datetime


@dataclass(frozen=True, slots=True)
class Holdings:
    """Flags: the user has documents of their own (`own`); there are documents of all users (`shared`)."""

    own: bool = False
    shared: bool = False


def document_id(user_id: str, *, source: str | None, content_hash: str) -> str:
    """Return the id of an owner's document: derived from its `source`, or where that is None from its content."""
    named = f"source:{text_hash(source)}" if source is not None else f"content:{content_hash}"
    return derived_id(user_id, "", f"document:{named}")  # a turn's id is never empty: no turn derives such an id


def passage_id(user_id: str, document_id: str, text: str, occurrence: int) -> str:
    """Return the id of the `occurrence`-th passage (from 0) with this text in the document."""
    return derived_id(user_id, document_id, f"passage:{text_hash(text)}:{occurrence}")


def text_hash(text: str) -> str:
    """Return 32 hexadecimal digits (BLAKE2b of 16 bytes)."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


class Passages(Protocol):
    """The passages of documents. Where no version is named, only passages of the header's `version` count."""

    async def add(self, passages: Sequence[Passage]) -> bool:
        """Store these passages (at most 500, of one document) under the document's incoming version.

        A passage that is stored already stays as it is, so a repeated call is safe. Return False, and store nothing,
        where the document is gone or another version is incoming.
        """
        ...

    async def passages(self, *, user_id: str, passage_ids: Sequence[str]) -> list[Passage]:
        """Return those of `passage_ids` (at most 500) that exist, in any order."""
        ...

    def of_document(self, *, user_id: str, document_id: str) -> AsyncIterator[Sequence[Passage]]:
        """Yield the document's passages in batches, by `place`, ascending: joined, they are its text."""
        ...

    async def owed(self, *, user_id: str, document_id: str, limit: int) -> list[Passage]:
        """Return passages of the document that the index does not hold yet, by `place`, ascending."""
        ...

    async def count_owed(self, user_id: str, *, document_id: str | None = None) -> int:
        """Count the passages of the user (or of one document) that the index does not hold yet."""
        ...

    async def mark_indexed(self, passages: Sequence[Passage]) -> int:
        """Record that the index holds these passages (at most 500, of one document and version).

        Return how many of them still exist.
        """
        ...

    async def outdated(self, *, user_id: str, document_id: str, limit: int) -> list[Passage]:
        """Return stored passages of one version that the header names neither as `version` nor as `incoming`.

        Of a document without a header, every version is such a one. Call it until it returns none.
        """
        ...

    async def remove(self, passages: Sequence[Passage]) -> int:
        """Delete these passages (at most 500, of one document and version); return how many were deleted."""
        ...

    def indexed(self, *, user_id: str | None = None) -> AsyncIterator[Sequence[Passage]]:
        """Yield the passages marked as indexed, of any version, which the index must hold.

        They come in batches of at most 500, in any order. Without `user_id`, yield those of all users.
        """
        ...

    async def count_indexed(self) -> int:
        """Count the passages that `indexed` yields for all users."""
        ...


class Documents(Protocol):
    """Document headers, each written whole under the revision that was read, and attachments to threads."""

    @property
    def passages(self) -> Passages:
        """The passages of the documents."""
        ...

    async def put(self, document: Document, *, revision: int) -> bool:
        """Store the header in place of the one with `revision` (0: none is stored yet).

        Else return False, and change nothing.
        """
        ...

    async def document(self, *, user_id: str, document_id: str) -> Document | None:
        """Return one document of this owner, or None."""
        ...

    async def by_ids(self, *, user_id: str, document_ids: Sequence[str]) -> list[Document]:
        """Return those of `document_ids` (at most 500) that exist, in any order."""
        ...

    async def page(
        self, user_id: str, *, limit: int, domain: str | None = None, before: tuple[datetime, str] | None = None
    ) -> list[Document]:
        """Return the owner's documents, newest first (ties: by id, descending), with `domain` only those of it.

        `before` is the (creation, id) of the previous page's last document, which is not returned again.
        """
        ...

    async def in_domains(self, user_id: str, domains: Sequence[str], *, limit: int) -> list[str]:
        """Return the ids of the owner's documents in one of `domains`, newest first."""
        ...

    async def holdings(self, user_id: str) -> Holdings:
        """Tell which documents this user can have: own ones, global ones. It looks for one of each and counts none."""
        ...

    async def is_empty(self) -> bool:
        """Tell whether no user has any document."""
        ...

    async def processing(self, *, limit: int) -> list[Document]:
        """Return documents of any owner with `status` "processing", those first whose last write is oldest."""
        ...

    async def attach(self, scope: Scope, document: Document, *, at: datetime) -> bool:
        """Attach the document to the thread; return False if it is attached already."""
        ...

    async def detach(self, scope: Scope, *, document_id: str) -> bool:
        """Detach the document from the thread; return False if it is not attached."""
        ...

    async def attached(self, scope: Scope) -> list[Attached]:
        """Return the documents attached to the thread, in the order of attaching."""
        ...

    async def attachments(self, user_id: str) -> Mapping[str, Sequence[Attached]]:
        """Return, by thread id, the documents attached to each of the user's threads."""
        ...

    async def remove(self, *, user_id: str, document_id: str) -> bool:
        """Delete the document, its passages and its attachments; return False if there is none."""
        ...

    async def delete(self, scope: Scope) -> int:
        """Delete the thread's attachments, or the user's documents and the attachments in all their threads.

        Return how many attachments or documents were deleted.
        """
        ...

    async def count(self, user_id: str | None = None) -> int:
        """Count the user's documents; without `user_id`, those of all users."""
        ...
