"""What the routes answer, for the OpenAPI text. The domain builds the values; none is validated again on its way."""

from typing import Any, Literal

from pydantic import BaseModel, Field


class HitAnswer(BaseModel):
    """One recalled memory: `similarity` is the raw cosine, `recency` in [0, 1], `score` what ordered it."""

    id: str
    kind: Literal["episode", "fact", "summary", "document"]
    role: str | None
    name: str | None
    content: str
    score: float
    similarity: float
    recency: float
    created_at: str
    thread_id: str | None
    turn_id: str | None
    message_id: str | None


class ChangeAnswer(BaseModel):
    """One change that the turn made to the facts; `before` and `after` are values, or statements of keyless facts."""

    decision: Literal["add", "update", "delete", "keep"]
    fact_id: str
    key: str | None
    before: str | None
    after: str | None
    evidence: str
    reason: str | None


class RefusedAnswer(BaseModel):
    """One proposal that was refused, and why."""

    decision: str
    fact_id: str | None
    key: str | None
    value: str | None
    evidence: str
    reason: str


class UpdateAnswer(BaseModel):
    """What became of learning from the turn; `model` is the one that extracted."""

    status: Literal["pending", "done", "skipped", "failed"]
    reason: str | None
    model: str | None
    changes: list[ChangeAnswer]
    refused: list[RefusedAnswer]


class MemoryAnswer(BaseModel):
    """What was recalled. `window` counts turns; `degraded` lists the nodes that failed."""

    window: int
    facts: dict[str, str]
    summary: str | None
    hits: list[HitAnswer]
    degraded: list[str]
    update: UpdateAnswer


class UsageAnswer(BaseModel):
    """Tokens of the turn's chat calls, as the provider counted them."""

    input_tokens: int
    output_tokens: int


class TimingsAnswer(BaseModel):
    """Milliseconds: fetching memory, the agent's rounds, and the turn until it was about to be stored."""

    recall: float
    agent: float
    total: float


class TurnAnswer(BaseModel):
    """A turn. `reply` and `model` are null, and `state` is "unfinished", while it has no reply."""

    turn_id: str
    user_id: str
    thread_id: str
    reply: str | None
    model: str | None
    memory: MemoryAnswer
    usage: UsageAnswer
    timings_ms: TimingsAnswer
    state: Literal["unfinished"] | None = Field(None, description="Only in unfinished turns.")


class MessageAnswer(BaseModel):
    """One stored message."""

    id: str
    turn_id: str
    role: Literal["user", "assistant"]
    name: str | None
    content: str
    metadata: dict[str, Any]
    created_at: str


class MessagesAnswer(BaseModel):
    """A page of a thread's messages, oldest first."""

    items: list[MessageAnswer]
    next_cursor: str | None


class FactAnswer(BaseModel):
    """One fact."""

    id: str
    key: str | None
    value: str
    statement: str
    scope: Literal["user", "thread", "global"]
    thread_id: str | None
    turn_id: str | None
    source: Literal["turn", "manual", "tool", "import"]
    tags: list[str]
    importance: float
    pinned: bool
    evidence: str | None
    created_at: str
    updated_at: str
    confirmed_at: str
    valid_from: str
    valid_to: str | None
    replaces: str | None


class FactsAnswer(BaseModel):
    """A page of living facts, and the whole user-fact dict."""

    items: list[FactAnswer]
    facts: dict[str, str]
    next_cursor: str | None


class HealthAnswer(BaseModel):
    """What runs here."""

    status: Literal["ok"]
    version: str
    backends: dict[str, str]
    models: dict[str, str]


class ReadyAnswer(BaseModel):
    """Whether every backend answers; `down` names those that do not."""

    status: Literal["ready", "down"]
    down: list[Literal["documents", "index", "chat", "embedder"]]


class ErrorDetail(BaseModel):
    """One thing wrong with the request."""

    field: str
    problem: str


class ErrorContent(BaseModel):
    """What went wrong: a stable code, a sentence, and the turn once one was accepted."""

    code: str
    message: str
    details: list[ErrorDetail] | None
    turn_id: str | None


class ErrorAnswer(BaseModel):
    """Every error."""

    error: ErrorContent


EXAMPLE_TURN: dict[str, Any] = {
    "turn_id": "0b1f…",
    "user_id": "ada",
    "thread_id": "t1",
    "reply": "Nice to meet you, Ada.",
    "model": "offline",
    "memory": {
        "window": 0,
        "facts": {},
        "summary": None,
        "hits": [],
        "degraded": [],
        "update": {"status": "pending", "reason": None, "model": None, "changes": [], "refused": []},
    },
    "usage": {"input_tokens": 0, "output_tokens": 0},
    "timings_ms": {"recall": 1.9, "agent": 0.4, "total": 2.6},
}
