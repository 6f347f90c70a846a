"""Answers of the documents' routes, for the OpenAPI text alone: the domain builds the answers from values."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from recollect.api.schemas.answers import FILTERED, LABEL, FilterAnswer


class DocumentAnswer(BaseModel):
    """One document. `progress` in [0, 1] is how much of it can be found; `error` says why it failed."""

    id: str
    user_id: str | None = Field(description="Whose it is; null: everybody's.")
    scope: Literal["user", "global"]
    title: str
    domain: str | None
    source: str | None
    kind: Literal["text", "markdown", "html", "pdf", "docx"]
    metadata: dict[str, Any]
    status: Literal["processing", "done", "failed"]
    progress: float
    error: str | None
    characters: int
    pages: int | None = Field(description="Of a PDF.")
    passages: int
    created_at: str
    updated_at: str
    agent_id: str | None = Field(None, description=LABEL)


class DocumentsAnswer(BaseModel):
    """A page of documents, newest first."""

    items: list[DocumentAnswer]
    next_cursor: str | None
    filter: FilterAnswer | None = Field(None, description=FILTERED)


class AttachedAnswer(DocumentAnswer):
    """A document that a thread has attached, and since when."""

    attached_at: str


class AttachedDocumentsAnswer(BaseModel):
    """What a thread has attached, in the order of attaching."""

    items: list[AttachedAnswer]
    next_cursor: None
    filter: FilterAnswer | None = Field(None, description=FILTERED)
