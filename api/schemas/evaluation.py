"""Cases of an evaluation, the settings that it may compare, and its answers.

A line of `recollect eval` is read by the same model as a request.
"""

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt

from recollect.api.schemas.requests import (
    FILTER,
    Cosine,
    FilterField,
    Id,
    MessageText,
    Time,
    Timezone,
    Weight,
    check_request_text,
)
from recollect.memory.evaluation.cases import MOST_CASES, MOST_EXPECTED, Case
from recollect.memory.values.errors import InvalidRequest
from recollect.memory.values.filtering.reading import read_filter
from recollect.memory.values.mem_config import Coverage, MemoryConfig, Scoped, TimeUse

ExpectedId = Annotated[str, Field(strict=True, min_length=1, max_length=512), AfterValidator(check_request_text)]
Name = Annotated[str, Field(strict=True, min_length=1, max_length=200), AfterValidator(check_request_text)]
Folder = Annotated[str, Field(strict=True, min_length=1, max_length=4_096), AfterValidator(check_request_text)]


def check_filter(said: dict[str, Any]) -> dict[str, Any]:
    """Return conditions that can be read."""
    try:
        read_filter(said)
    except InvalidRequest as error:
        raise ValueError("; ".join(f"{one.field} {one.problem}" for one in error.problems)) from None
    return said


class EvalCase(BaseModel):
    """A query of a user, and what it has to find."""

    model_config = ConfigDict(extra="forbid")

    user_id: Id
    query: MessageText
    expect: Annotated[list[ExpectedId], Field(min_length=1, max_length=MOST_EXPECTED)] = Field(
        description="Ids of messages (their own, or their importer's) and of facts."
    )
    now: Time | None = Field(None, description="What `yesterday` and recency are reckoned from; null: now.")
    filter: Annotated[FilterField, AfterValidator(check_filter)] | None = Field(None, description=FILTER)

    def case(self, number: int) -> Case:
        """Return the domain's case, the `number`-th of all."""
        asked = None if self.filter is None else read_filter(self.filter)
        return Case(number, self.user_id, self.query, tuple(dict.fromkeys(self.expect)), self.now, asked)


class ComparedSettings(BaseModel):
    """Settings of recall, by their names in lower case; null: the setting's default. What is left out stays.

    Another `embedding_model` stays with the service's provider; its dimensions and path are those given beside it.
    """

    model_config = ConfigDict(extra="forbid")

    memory_window: Annotated[StrictInt, Field(ge=0, le=50)] | None = None
    memory_top_k: Annotated[StrictInt, Field(ge=0, le=50)] | None = None
    memory_score_threshold: Cosine | None = None
    memory_scope: Scoped | None = None
    memory_scope_margin: Annotated[StrictFloat, Field(ge=0, le=10, allow_inf_nan=False)] | None = None
    memory_recency_weight: Weight | None = None
    memory_mmr_lambda: Weight | None = None
    memory_time: TimeUse | None = None
    memory_timezone: Timezone | None = None
    memory_fallback_recent: StrictBool | None = None
    memory_coverage: Coverage | None = None
    reranker: Name | None = None
    reranker_path: Folder | None = None
    embedding_model: Name | None = None
    embedding_dimensions: Annotated[StrictInt, Field(ge=1, le=65_536)] | None = None
    embedding_model_path: Folder | None = None

    def changes(self) -> dict[str, Any]:
        """Return the fields of `MemoryConfig` that were given."""
        defaults = {item.name: item.default for item in fields(MemoryConfig)}
        given = set(self.model_fields_set)
        if "embedding_model" in given:
            given |= {"embedding_dimensions", "embedding_model_path"}
        changes = dict[str, Any]()
        for setting in given:
            field, value = setting.removeprefix("memory_"), getattr(self, setting)
            changes[field] = defaults[field] if value is None else Path(value) if field in PATHS else value
        return changes


PATHS = frozenset({"reranker_path", "embedding_model_path"})


class EvalRequest(BaseModel):
    """Cases to run, and other settings to compare by them."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"cases": [{"user_id": "ada", "query": "Where did I want to travel?", "expect": ["ada-trip-1"]}]}
            ]
        },
    )

    cases: Annotated[list[EvalCase], Field(min_length=1, max_length=MOST_CASES)]
    compare: ComparedSettings | None = Field(None, description="Run the cases with these settings, too.")


class MissAnswer(BaseModel):
    """An expected memory that is not among the first 10 hits."""

    case: int = Field(description="The case's number, from 1.")
    user_id: str
    query: str
    id: str
    rank: int | None = Field(description="From 1, where it was ranked.")
    stage: str = Field(
        description="The step that it reached last: `selected` (a hit), a step of the trace that dropped it, "
        "`filter` (the case's own excludes it), `retrieval` (no channel named it), `index` (it has no point), or "
        "`unknown` (no memory of this user)."
    )
    reason: str | None


class UnknownAnswer(BaseModel):
    """An expected id that is neither a message nor a fact of the user."""

    case: int
    user_id: str
    id: str


class IntervalAnswer(BaseModel):
    """The middle 95 % of the means of 1,000 bootstrap samples of the cases, in percent."""

    low: float
    high: float


class DifferenceAnswer(IntervalAnswer):
    """The compared settings' figure less the present ones', and its interval."""

    mean: float


class FiguresAnswer(BaseModel):
    """Means over the cases, in percent."""

    model_config = ConfigDict(serialize_by_alias=True)

    cases: int
    at_5: float = Field(alias="R@5", description="Share of the expected memories among the first 5 hits.")
    at_10: float = Field(alias="R@10")
    at_25: float = Field(alias="R@25")
    ndcg: float = Field(alias="nDCG", description="Over the first 25 hits.")
    misses: list[MissAnswer]
    unknown: list[UnknownAnswer]
    intervals: dict[str, IntervalAnswer] | None = Field(None, description="With `compare`: by measure.")


class EvalAnswer(FiguresAnswer):
    """What the cases came to; with `compare` beside the other settings."""

    compared: FiguresAnswer | None = None
    difference: dict[str, DifferenceAnswer] | None = None


class ProposedAnswer(BaseModel):
    """Proposed cases, as `POST /api/admin/eval` takes them."""

    items: list[EvalCase]
