"""What requests may say. They are read strictly: unknown fields and other types are refused."""

import math
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, model_validator

from memory.scope import ID_PATTERN
from memory.text import MOST_MESSAGE_CHARACTERS, text_problem

MOST_METADATA_DEPTH = 20


def check_text(text: str) -> str:
    """Text that every store can hold: no NUL, no lone surrogate."""
    problem = text_problem(text)
    if problem is not None:
        raise ValueError(problem)
    return text


def check_id(text: str) -> str:
    """An id that is not a path's dots."""
    if text in {".", ".."}:
        raise ValueError("must not be '.' or '..'")
    return text


def check_json(value: Any, depth: int = 0) -> Any:
    """Plain JSON of bounded depth, whose texts and numbers every store can hold."""
    if depth > MOST_METADATA_DEPTH:
        raise ValueError(f"must not be nested deeper than {MOST_METADATA_DEPTH} levels")
    if isinstance(value, str):
        check_text(value)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError("must not contain NaN or Infinity")
    elif isinstance(value, dict):
        for key, item in value.items():  # pyright: ignore[reportUnknownVariableType] - any JSON
            check_text(str(key))  # pyright: ignore[reportUnknownArgumentType] - any JSON
            check_json(item, depth + 1)
    elif isinstance(value, list):
        for item in value:  # pyright: ignore[reportUnknownVariableType] - any JSON
            check_json(item, depth + 1)
    return value  # pyright: ignore[reportUnknownVariableType] - any JSON


Id = Annotated[
    str,
    Field(strict=True, pattern=f"^{ID_PATTERN}$", description="1-128 characters of [A-Za-z0-9._:@-]"),
    AfterValidator(check_id),
]
Weight = Annotated[StrictFloat, Field(ge=0, le=1, allow_inf_nan=False)]
Cosine = Annotated[StrictFloat, Field(ge=-1, le=1, allow_inf_nan=False)]


class MemoryOptions(BaseModel):
    """How this turn uses memory. What is left out, or null, takes the configured default."""

    model_config = ConfigDict(extra="forbid")

    enabled: StrictBool = Field(True, description="False: stored, but nothing is recalled, indexed or learned.")
    scope: Literal["thread", "user"] = Field("thread", description="Search this thread, or all of the user's.")
    window: Annotated[StrictInt, Field(ge=0, le=50)] | None = Field(None, description="Turns given verbatim.")
    top_k: Annotated[StrictInt, Field(ge=0, le=50)] | None = Field(None, description="Most hits; 0: no search.")
    score_threshold: Cosine | None = Field(None, description="Least cosine similarity of a hit.")
    recency_weight: Weight | None = Field(None, description="Share of recency in a hit's score.")
    mmr_lambda: Weight | None = Field(None, description="MMR's trade-off: 1 relevance alone, 0 variety alone.")


class AgentRequest(BaseModel):
    """One turn. `query` and `session_id` are other names of `message` and `thread_id`."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"user_id": "ada", "thread_id": "t1", "message": "Hi, I'm Ada."}],
        },
    )

    user_id: Id
    thread_id: Id
    message: Annotated[
        str, Field(strict=True, min_length=1, max_length=MOST_MESSAGE_CHARACTERS), AfterValidator(check_text)
    ]
    turn_id: Id | None = Field(None, description="Yours, for retries: the same one again returns the stored result.")
    stream: StrictBool = Field(False, description="Answer as text/event-stream.")
    wait_for_memory: StrictBool = Field(False, description="Answer once the turn was learned from.")
    metadata: Annotated[dict[str, Any], AfterValidator(check_json)] = Field(
        default_factory=dict, description="Kept with the user's message."
    )
    memory: MemoryOptions = MemoryOptions.model_validate({})

    @model_validator(mode="before")
    @classmethod
    def _take_other_names(cls, data: Any) -> Any:
        """Rename the aliases; both names at once are left, and refused as unknown fields."""
        if not isinstance(data, dict):
            return data
        given: dict[str, Any] = dict(data)  # pyright: ignore[reportUnknownArgumentType] - any JSON
        for alias, name in (("query", "message"), ("session_id", "thread_id")):
            if alias in given and name not in given:
                given[name] = given.pop(alias)
        return given
