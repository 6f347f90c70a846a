"""Answers of the routes about responses, for the OpenAPI text; `shapes.py` builds them."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from recollect.api.openai.fate import RememberedAnswer


class ItemAnswer(BaseModel):
    """A message, a call of a function, or its result; the fields depend on `type`."""

    id: str
    type: Literal["message", "function_call", "function_call_output"]
    status: Literal["in_progress", "completed", "incomplete"]
    role: Literal["user", "assistant", "system"] | None = None
    content: list[dict[str, Any]] | None = Field(None, description="Of a message: input_text or output_text.")
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    output: str | None = None


class ResponseAnswer(RememberedAnswer):
    """A response, with what became of its turn and what was recalled."""

    id: str
    object: Literal["response"]
    created_at: float
    status: Literal["completed", "incomplete", "in_progress", "failed"]
    model: str
    output: list[ItemAnswer]
    metadata: dict[str, str]
    previous_response_id: str | None
    conversation: dict[str, str] | None
    usage: dict[str, Any] | None


class ItemsAnswer(BaseModel):
    """A page of items."""

    object: Literal["list"]
    data: list[ItemAnswer]
    first_id: str | None
    last_id: str | None
    has_more: bool


class DeletedResponseAnswer(BaseModel):
    """What was deleted."""

    id: str
    object: Literal["response"]
    deleted: bool


class ConversationAnswer(BaseModel):
    """A conversation: a thread."""

    id: str
    object: Literal["conversation"]
    created_at: int
    metadata: dict[str, str]


class DeletedConversationAnswer(BaseModel):
    """What was deleted."""

    id: str
    object: Literal["conversation.deleted"]
    deleted: bool
