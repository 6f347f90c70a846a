"""Describes what the routes about memories ask for and answer: facts without a key, seen as texts."""

from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool

from recollect.api.schemas.answers import FILTERED, ChangeAnswer, FactAnswer, FilterAnswer, RefusedAnswer
from recollect.api.schemas.requests import (
    AGENT,
    MOST_LISTED,
    MOST_TEXT,
    WHOSE,
    Id,
    MessageText,
    Weight,
    check_json,
    check_request_text,
)
from recollect.memory.facts.fact_edit import FactEdit
from recollect.memory.values.fact import Fact
from recollect.memory.values.fact_limits import MOST_STATEMENT_CHARACTERS


def check_content(text: str) -> str:
    """Return a statement: something said, and not too much of it."""
    if not 1 <= len(check_request_text(text).strip()) <= MOST_STATEMENT_CHARACTERS:
        raise ValueError(f"must have 1 to {MOST_STATEMENT_CHARACTERS:,} characters")
    return text


Content = Annotated[str, Field(strict=True, max_length=MOST_TEXT), AfterValidator(check_content)]
CONTENT = "One statement, 1-2,000 characters."


class _MemoryFields(BaseModel):
    """What a person may say of a memory beside its text."""

    model_config = ConfigDict(extra="forbid")

    tags: list[Annotated[str, Field(strict=True, max_length=MOST_TEXT)]] = Field(
        [], max_length=MOST_LISTED, description="At most 10, of 1-64 characters each."
    )
    importance: Weight = Field(0.5, description="What the prompt prefers and eviction spares.")
    pinned: StrictBool = Field(False, description="Pinned: in every prompt of the user's, and never evicted.")
    metadata: Annotated[dict[str, Any], AfterValidator(check_json)] = Field(
        default_factory=dict, description="Any JSON object, which filters see."
    )
    agent_id: Id | None = Field(None, description=AGENT)

    def edit(self) -> FactEdit:
        """Return the fields that were given."""
        given = self.model_dump(exclude_unset=True, exclude={"user_id"})
        if "content" in given:
            given["statement"] = given.pop("content")
        return cast("FactEdit", given)


class MemoryRequest(_MemoryFields):
    """A new memory."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"user_id": "ada", "content": "Ada's badge opens the north door.", "tags": ["work"]}]
        }
    )

    user_id: Id | None = Field(None, description=WHOSE)
    content: Content = Field(description=CONTENT)


class MemoryChange(_MemoryFields):
    """Changes of a memory; what is left out stays as it is."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"content": "Ada's badge opens both doors."}]})

    content: Content = Field("", description=CONTENT)


class LessonRequest(BaseModel):
    """A text to learn from: the user's own words, of which each fact must quote some."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"user_id": "ada", "content": "I moved to Oslo in May."}]}
    )

    user_id: Id | None = Field(None, description=WHOSE)
    content: MessageText
    thread_id: Id | None = Field(None, description="Whose working memory counts too; null: the user's facts alone.")
    agent_id: Id | None = Field(None, description=AGENT)


class FreeTextAnswer(FactAnswer):
    """One memory: a fact without a key. `content` is its statement."""

    content: str


class KnownTextAnswer(FreeTextAnswer):
    """A memory that was known already, and has been confirmed."""

    known: Literal[True]


class FreeTextsAnswer(BaseModel):
    """A page of memories, newest first."""

    items: list[FreeTextAnswer]
    next_cursor: str | None
    filter: FilterAnswer | None = Field(None, description=FILTERED)


class LessonAnswer(BaseModel):
    """What the text has taught, what was refused, and which model read it."""

    model: str
    changes: list[ChangeAnswer]
    refused: list[RefusedAnswer]


def as_memory(fact: Fact) -> dict[str, Any]:
    """Return the fact as a memory."""
    return {**fact.as_json(), "content": fact.statement}
