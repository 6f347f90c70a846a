"""Describes what requests about threads may say."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from recollect.api.schemas.requests import WHOSE, Id, check_text

MOST_TITLE = 1_000
"""Longer titles, white space and all, are refused before anything looks at them."""


class TitleRequest(BaseModel):
    """A thread's title."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"title": "Moving to Oslo"}]})

    title: Annotated[str, Field(strict=True, max_length=MOST_TITLE), AfterValidator(check_text)] | None = Field(
        description="1-200 characters, without the white space around it; null: none."
    )


class ClearRequest(BaseModel):
    """Whose session is cleared, where the query does not say it."""

    model_config = ConfigDict(extra="forbid")

    user_id: Id | None = Field(None, description=WHOSE)
