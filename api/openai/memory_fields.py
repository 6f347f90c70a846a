"""The memory's fields of a request of OpenAI's clients: in the body, or in headers where a client cannot add any."""

from typing import Annotated, Any

from fastapi import Header
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StrictInt, WithJsonSchema

from recollect.api.auth.caller import Caller
from recollect.api.schemas.requests import (
    AGENT,
    COVERAGE,
    FALLBACK_RECENT,
    FILTER,
    SCOPE,
    TIME,
    TIMEZONE,
    Cosine,
    Domains,
    FilterField,
    Id,
    Timezone,
    Weight,
)
from recollect.memory.values.filtering.reading import MOST_FILTER_CHARACTERS, read_filter, read_json_object
from recollect.memory.values.mem_config import Coverage, Scoped, TimeUse


def _split(value: Any) -> Any:
    """Split a header's list at its commas; FastAPI gives such a list as one text."""
    texts = value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType] - from a header
    return [part.strip() for text in texts for part in str(text).split(",") if part.strip()]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - as above


def _said(value: Any) -> Any:
    """Return a header's text; None for an empty one, which front ends send where they have nothing to say."""
    return None if value == "" else value


Named = Annotated[Annotated[str, Field(max_length=128)] | None, BeforeValidator(_said)]
TopK = Annotated[int, Field(ge=0, le=50)]


class MemoryFields(BaseModel):
    """The memory's own fields of a body."""

    memory_id: Id | None = Field(None, description="The thread; without one nothing is stored or learned.")
    memory_scope: Scoped | None = Field(None, description=SCOPE)
    memory_top_k: Annotated[StrictInt, Field(ge=0, le=50)] | None = Field(None, description="Most hits; 0: no search.")
    memory_recency_weight: Weight | None = Field(None, description="Share of recency in a hit's score.")
    memory_score_threshold: Cosine | None = Field(None, description="Least cosine similarity of a hit.")
    memory_mmr_lambda: Weight | None = Field(None, description="MMR's trade-off: 1 relevance alone, 0 variety alone.")
    memory_time: TimeUse | None = Field(None, description=TIME)
    memory_timezone: Timezone | None = Field(None, description=TIMEZONE)
    memory_fallback_recent: StrictBool | None = Field(None, description=FALLBACK_RECENT)
    memory_coverage: Coverage | None = Field(None, description=COVERAGE)
    memory_domains: Domains | None = None
    memory_filter: FilterField | None = Field(None, description=FILTER)
    memory_agent_id: Id | None = Field(None, description=AGENT)


class MemoryHeaders(BaseModel):
    """The memory's fields for clients that cannot add any to the body, which goes first."""

    model_config = ConfigDict(extra="ignore")

    key: Id | None = Field(
        None, alias="Idempotency-Key", description="The turn's id: the same one again gets the same."
    )
    user: Named = Field(None, alias="X-Memory-User", description="As `user`.")
    memory_id: Annotated[Id | None, BeforeValidator(_said)] = Field(
        None, alias="X-Memory-Id", description="As `memory_id`; an empty one counts as none."
    )
    frontend_user: Named = Field(
        None, alias="X-OpenWebUI-User-Id", description="As `user`, with TRUST_FRONTEND_HEADERS."
    )
    frontend_chat: Named = Field(
        None, alias="X-OpenWebUI-Chat-Id", description="As `memory_id`, with TRUST_FRONTEND_HEADERS."
    )
    scope: Scoped | None = Field(None, alias="X-Memory-Scope", description="As `memory_scope`.")
    top_k: TopK | None = Field(None, alias="X-Memory-Top-K", description="As `memory_top_k`.")
    recency_weight: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = Field(
        None, alias="X-Memory-Recency-Weight", description="As `memory_recency_weight`."
    )
    score_threshold: Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)] | None = Field(
        None, alias="X-Memory-Score-Threshold", description="As `memory_score_threshold`."
    )
    mmr_lambda: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = Field(
        None, alias="X-Memory-MMR-Lambda", description="As `memory_mmr_lambda`."
    )
    time: TimeUse | None = Field(None, alias="X-Memory-Time", description="As `memory_time`.")
    timezone: Timezone | None = Field(None, alias="X-Memory-Timezone", description="As `memory_timezone`.")
    fallback_recent: bool | None = Field(
        None, alias="X-Memory-Fallback-Recent", description="As `memory_fallback_recent`."
    )
    coverage: Coverage | None = Field(None, alias="X-Memory-Coverage", description="As `memory_coverage`.")
    domains: (
        Annotated[Domains, BeforeValidator(_split), WithJsonSchema({"type": "string", "maxLength": 1_400})] | None
    ) = Field(None, alias="X-Memory-Domains", description="As `memory_domains`, separated by commas.")
    filter: Annotated[str, Field(max_length=MOST_FILTER_CHARACTERS)] | None = Field(
        None, alias="X-Memory-Filter", description="As `memory_filter`, as JSON."
    )
    agent_id: Annotated[Id | None, BeforeValidator(_said)] = Field(
        None, alias="X-Memory-Agent-Id", description="As `memory_agent_id`."
    )


OPTIONS = (
    *("scope", "top_k", "recency_weight", "score_threshold", "mmr_lambda"),
    *("time", "timezone", "fallback_recent", "coverage", "domains"),
)
"""The memory's options of a turn: `memory_…` in the body, and the headers' fields."""
ChatHeaders = Annotated[MemoryHeaders, Header(convert_underscores=False)]


def memory_options(body: MemoryFields, headers: MemoryHeaders) -> dict[str, Any]:
    """Return the memory's options of a turn; the body overrides the headers.

    Raises:
        InvalidRequest: the filter is none.
    """
    options = dict[str, Any]()
    for name in OPTIONS:
        in_body = getattr(body, f"memory_{name}")
        options[name] = getattr(headers, name) if in_body is None else in_body
    said, in_header = _checked(body.memory_filter), _read(headers.filter)
    options["filter"] = in_header if said is None else said
    return {name: value for name, value in options.items() if value is not None}


def label_of(caller: Caller, body: MemoryFields, headers: MemoryHeaders) -> str | None:
    """Return the agent's label of the turn; the body overrides the header.

    Raises:
        InvalidRequest: the caller is bound to another agent.
    """
    given = headers.agent_id if body.memory_agent_id is None else body.memory_agent_id
    return caller.label(given, field="memory_agent_id")


def _checked(asked: dict[str, Any] | None) -> dict[str, Any] | None:
    if asked is not None:
        read_filter(asked, field="memory_filter")
    return asked


def _read(text: str | None) -> dict[str, Any] | None:
    """Return the filter of the header."""
    return None if text is None else _checked(read_json_object(text, field="memory_filter"))
