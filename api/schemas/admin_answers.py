"""Answers of the administration routes, for the OpenAPI text alone: the domain builds the answers from values."""

from typing import Literal

from pydantic import BaseModel, Field

from recollect.api.schemas.answers import ErrorContent


class FindingsAnswer(BaseModel):
    """What the doctor found. `points` are those there are; messages, facts, summaries and passages must be."""

    messages: int
    facts: int
    summaries: int
    passages: int
    points: int
    missing: int
    orphaned: int
    wrong_fingerprint: int = Field(description="Points made by another embedder or scheme, or from another text.")
    pending: int = Field(description="Turns, facts, summaries and passages on their way: nothing is wrong.")
    failed: int = Field(description="Turns whose update was given up.")
    oldest_pending_seconds: float | None


class UserFindingsAnswer(FindingsAnswer):
    """What the doctor found of one user; `*` stands for the global facts."""

    user_id: str


class DelayAnswer(BaseModel):
    """Why the steps of some updates wait for another try (`pending`), or were given up (`failed`)."""

    step: Literal["facts", "index", "summary"]
    status: Literal["pending", "failed"]
    reason: str
    updates: int
    next_try_at: str | None


class DoctorAnswer(BaseModel):
    """Documents and index compared, user by user, and what to do."""

    healthy: bool
    advice: list[str]
    totals: FindingsAnswer
    users: list[UserFindingsAnswer]
    other_collections: list[str]
    delays: list[DelayAnswer] = Field(description="The most frequent reasons first.")


class ReindexedAnswer(BaseModel):
    """What a rebuild came to, or would come to."""

    points: int
    embedded: int
    reused: int = Field(description="Points found in what a killed rebuild had left.")
    removed: int = Field(description="Points that no document calls for.")
    dry_run: bool
    user_id: str | None


class ReindexLine(BaseModel):
    """One line of the stream: how far it is, then the report, or why it ended early."""

    done: int | None = None
    total: int | None = None
    report: ReindexedAnswer | None = None
    error: ErrorContent | None = None


class ReplayedAnswer(BaseModel):
    """How many failed updates were tried again, and how they have ended so far."""

    replayed: int
    done: int
    failed: int
    pending: int


class PromptMessage(BaseModel):
    """One message of a prompt."""

    role: str
    content: str


class PromptAnswer(BaseModel):
    """What a model would be asked, to learn from a turn."""

    turn_id: str
    messages: list[PromptMessage]
