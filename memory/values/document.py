"""A user's document: its header, its passages, and the ids derived from them."""

from collections.abc import Mapping
from dataclasses import field, replace
from datetime import datetime
from hashlib import blake2b
from typing import Any, Literal

from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import GLOBAL_USER
from recollect.memory.values.times import iso
from recollect.memory.values.turn import derived_id

DocumentKind = Literal["text", "markdown", "html", "pdf", "docx"]
DocumentStatus = Literal["processing", "done", "failed"]


@frozen
class Document:
    """A document's header. `user_id` is its owner, or GLOBAL_USER for a document of all users.

    `version` is the version of its passages (0: none yet); `incoming` is the version that is being written, or 0.
    `pages` is None for kinds without pages. `error` says why `status` is "failed". `revision` rises with every write.
    `agent_id` labels it with the agent that it was added for.
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
    agent_id: str | None = None

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
            **({} if self.agent_id is None else {"agent_id": self.agent_id}),
        }


@frozen
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


@frozen
class Attached:
    """A document attached to a thread, and when (UTC)."""

    document: Document
    attached_at: datetime


@frozen
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
