"""Describes what the routes of keys take and answer, for the OpenAPI text."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from recollect.api.schemas.requests import Id
from recollect.memory.ports.keys import MOST_NAME_CHARACTERS
from recollect.memory.values.scope import ID_PATTERN

ROLE = (
    "`service` acts for any user, `admin` administers too, `user:<id>` acts for that one user "
    "only, `user:acme:*` for all users whose ids begin with `acme:`."
)


class KeyRequest(BaseModel):
    """A key to make."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"role": "user:ada", "name": "laptop"}]})

    role: Annotated[str, Field(strict=True, max_length=200)] = Field(
        description=ROLE, json_schema_extra={"pattern": f"^(service|admin|user:{ID_PATTERN}\\*?)$"}
    )
    name: Annotated[str, Field(strict=True, min_length=1, max_length=MOST_NAME_CHARACTERS)] | None = Field(
        None, description="What you tell it by."
    )
    agent_id: Id | None = Field(None, description="An agent: the key's callers write its label, and see it alone.")


class KeyAnswer(BaseModel):
    """A key, without what opens."""

    id: str
    role: str = Field(description=ROLE)
    name: str | None
    created_at: str
    agent_id: str | None = Field(None, description="Only of an agent's key.")


class NewKeyAnswer(KeyAnswer):
    """A key that was made; `key` is shown this once."""

    key: str


class KeysAnswer(BaseModel):
    """A page of keys, oldest first."""

    items: list[KeyAnswer]
    next_cursor: str | None
