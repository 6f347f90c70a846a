"""Describes what requests about threads may say."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from recollect.api.schemas.requests import AGENT, WHOSE, Id, MessageText, Metadata, Name, check_request_text

MOST_TITLE = 1_000
"""Longer titles, white space and all, are refused before anything looks at them."""


class TitleRequest(BaseModel):
    """A thread's title."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"title": "Moving to Oslo"}]})

    title: Annotated[str, Field(strict=True, max_length=MOST_TITLE), AfterValidator(check_request_text)] | None = Field(
        description="1-200 characters, without the white space around it; null: none."
    )


class ClearRequest(BaseModel):
    """Whose session is cleared, where the query does not say it."""

    model_config = ConfigDict(extra="forbid")

    user_id: Id | None = Field(None, description=WHOSE)


class MessageRequest(BaseModel):
    """One message of an agent elsewhere, or of its user."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"role": "user", "content": "Hello!"}]})

    user_id: Id | None = Field(None, description=WHOSE)
    role: Literal["user", "assistant"]
    content: MessageText
    turn_id: Id | None = Field(None, description="Of a user's message: the turn that it begins; yours, for retries.")
    name: Name | None = Field(None, description="Who said it, in a group.")
    metadata: Metadata = Field(default_factory=dict, description="Kept with a user's message.")
    agent_id: Id | None = Field(None, description=f"{AGENT} An assistant's message answers one with this label alone.")
