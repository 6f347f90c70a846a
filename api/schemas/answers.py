"""Answers of the routes, for the OpenAPI text. The domain builds the values; none is validated again on its way."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from recollect.memory.recall.hit import Stage


class OriginAnswer(BaseModel):
    """The document that a hit is from; `page` counts from 1, where it has pages."""

    id: str
    title: str
    domain: str | None
    source: str | None
    page: int | None


class RepeatsAnswer(BaseModel):
    """How often one speaker said a hit's text: `count` includes the hit; `first` and `last` are times."""

    count: int
    first: str
    last: str
    ids: list[str] = Field(description="At most 50, newest first.")


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
    repeats: RepeatsAnswer | None = Field(description="Where one speaker said it more than once; else null.")
    excerpt: bool | None = Field(None, description="Only where true: the content is a longer text's best passages.")
    document: OriginAnswer | None = Field(None, description="Only of a document's passage, or a whole document.")
    whole: bool | None = Field(None, description="Only where true: a small attached document, given whole, unranked.")


class TracedAnswer(BaseModel):
    """One candidate's way through a recall: its score of every stage, the stage where it ended, and why.

    `selected`, `neighbour`, `session`, `recent`, `period` and `coverage` are among the hits; other stages left it out.
    """

    id: str
    scores: dict[str, float]
    stage: Stage
    reason: str | None


class ChangeAnswer(BaseModel):
    """One change that the turn made to the facts; `before` and `after` are values, or statements of keyless facts.

    Only a change that waits for its owner has a `status`.
    """

    decision: Literal["add", "update", "delete", "keep"]
    fact_id: str
    key: str | None
    before: str | None
    after: str | None
    evidence: str
    reason: str | None
    status: Literal["proposed"] | None = None


class RefusedAnswer(BaseModel):
    """One proposal that was refused, and why."""

    decision: str
    fact_id: str | None
    key: str | None
    value: str | None
    evidence: str
    reason: str


class LeftAnswer(BaseModel):
    """A fact that an undo left as it is, and why."""

    fact_id: str
    key: str | None
    reason: str


class UndoneAnswer(BaseModel):
    """When what a turn taught was taken back, and what was left."""

    at: str
    left: list[LeftAnswer]


class StepAnswer(BaseModel):
    """One kind of work of an update: how often it was tried, why it has not ended well, and when it is tried again."""

    status: Literal["pending", "done", "skipped", "failed"]
    tries: int
    reason: str | None
    next_try_at: str | None


class UpdateAnswer(BaseModel):
    """What became of learning from the turn; `model` is the one that extracted."""

    status: Literal["pending", "done", "skipped", "failed"]
    reason: str | None = Field(description="Why it waits or failed, step by step, or was skipped.")
    model: str | None
    changes: list[ChangeAnswer]
    refused: list[RefusedAnswer]
    undone: UndoneAnswer | None = Field(None, description="Only where what it taught was taken back.")
    steps: dict[Literal["facts", "index", "summary"], StepAnswer] | None = Field(
        None, description="Only in `GET /api/turns/{turn_id}`, while the update is pending or where it has failed."
    )


class FilterAnswer(BaseModel):
    """How a filter was checked: `complete` is false where only the newest 10,000 items of the scope were."""

    complete: bool


LABEL = "Only where it has the label of an agent."
FILTERED = "Only where a filter was given."


class MemoryAnswer(BaseModel):
    """What was recalled. `window` counts turns; `degraded` lists the nodes that failed."""

    window: int
    facts: dict[str, str]
    summary: str | None
    hits: list[HitAnswer]
    degraded: list[str]
    update: UpdateAnswer
    filter: FilterAnswer | None = Field(None, description=FILTERED)
    trace: list[TracedAnswer] | None = Field(
        None, description="Only of a stored turn that searched: how its best 20 candidates were scored and chosen."
    )


class UsageAnswer(BaseModel):
    """Tokens of the turn's chat calls, as the provider counted them."""

    input_tokens: int
    output_tokens: int


class TimingsAnswer(BaseModel):
    """Milliseconds: fetching memory, the agent's rounds, and the turn until it was about to be stored."""

    recall: float
    agent: float
    total: float


class ToolUseAnswer(BaseModel):
    """A tool that the agent used: what it was asked (`args`), and what it answered (`content`)."""

    id: str
    name: str
    args: dict[str, Any] = Field(description="At most 4,000 characters; empty where a memory in it was removed.")
    content: str = Field(description="Cut to 10,000 characters; empty where a memory in it was removed.")
    ms: float | None = Field(description="Milliseconds until it answered; null where it did not.")
    error: str | None = Field(description="Why it failed; null where it did not.")


class FurtherAnswer(BaseModel):
    """A further message of a turn that an agent elsewhere ran."""

    role: Literal["user", "assistant", "system", "tool"]
    name: str | None
    content: str
    metadata: dict[str, Any]
    created_at: str


class TurnAnswer(BaseModel):
    """A turn. `reply` and `model` are null, and `state` is "unfinished", while it has no reply."""

    turn_id: str
    user_id: str
    thread_id: str
    reply: str | None
    model: str | None
    memory: MemoryAnswer
    tools: list[ToolUseAnswer] = Field([], description="The tools that the agent used, in their order; at most 50.")
    usage: UsageAnswer
    timings_ms: TimingsAnswer
    state: Literal["unfinished"] | None = Field(None, description="Only in unfinished turns.")
    messages: list[FurtherAnswer] | None = Field(None, description="Only where an exchange brought further messages.")


class MessageAnswer(BaseModel):
    """One stored message."""

    id: str
    turn_id: str
    role: Literal["user", "assistant"]
    name: str | None
    content: str
    metadata: dict[str, Any]
    created_at: str
    agent_id: str | None = Field(None, description=LABEL)
    messages: list[FurtherAnswer] | None = Field(None, description="Only of a user's message: what followed it.")


class ExchangesAnswer(BaseModel):
    """The turns of several exchanges, in their order."""

    items: list[TurnAnswer]


class ClearedAnswer(BaseModel):
    """How much of a thread went, by the kind of thing."""

    counts: dict[str, int]


class MessagesAnswer(BaseModel):
    """A page of a thread's messages, oldest first."""

    items: list[MessageAnswer]
    next_cursor: str | None
    filter: FilterAnswer | None = Field(None, description=FILTERED)


class ContextTokensAnswer(BaseModel):
    """Estimated tokens of the block, and of the window's messages."""

    block: int
    window: int


class ContextTimingsAnswer(BaseModel):
    """Milliseconds: fetching memory, and the whole."""

    recall: float
    total: float


class ContextAnswer(BaseModel):
    """The context that a turn would have been given; `degraded` lists the fetches that failed."""

    block: str = Field(description='The text for the system message, as an own turn has it; "" where nothing is known.')
    facts: dict[str, str]
    notes: list[str]
    summary: str | None
    window: list[MessageAnswer]
    hits: list[HitAnswer]
    degraded: list[str]
    filter: FilterAnswer | None = Field(None, description=FILTERED)
    tokens: ContextTokensAnswer
    timings_ms: ContextTimingsAnswer


class ThreadAnswer(BaseModel):
    """One thread of a list. `turns` are finished ones; `archived` ends with the next message."""

    thread_id: str
    title: str | None
    last_activity_at: str
    turns: int
    messages: int
    archived: bool


class ThreadsAnswer(BaseModel):
    """A page of a user's threads, those last written to first."""

    items: list[ThreadAnswer]
    next_cursor: str | None
    filter: FilterAnswer | None = Field(None, description=FILTERED)


class WholeThreadAnswer(ThreadAnswer):
    """One thread with its summary; `summary_status` is "pending" while its archive's summary is to come."""

    summary: str | None
    summary_by: Literal["model", "extract", "person"] | None
    summary_status: Literal["pending", "done"] | None
    archived_at: str | None


class SummaryAnswer(BaseModel):
    """A thread's summary and who wrote it."""

    summary: str | None
    summary_by: Literal["model", "extract", "person"] | None


class SearchAnswer(BaseModel):
    """What a search found, best first, and how many milliseconds it took."""

    hits: list[HitAnswer]
    took_ms: float
    degraded: list[Literal["search_memories"]] | None = Field(
        None, description="Only while the index is down: the newest 2,000 memories were searched, by words."
    )
    filter: FilterAnswer | None = Field(None, description=FILTERED)
    trace: list[TracedAnswer] | None = Field(None, description="Only with `explain`.")


class FactAnswer(BaseModel):
    """One fact. `status` "ended" was superseded or deleted, "forgotten" is a tombstone without text."""

    id: str
    key: str | None
    value: str
    statement: str
    scope: Literal["user", "thread", "global"]
    thread_id: str | None
    turn_id: str | None
    source: Literal["turn", "manual", "tool", "import", "text"]
    tags: list[str]
    metadata: dict[str, Any]
    agent_id: str | None = Field(None, description=LABEL)
    importance: float
    pinned: bool
    evidence: str | None
    created_at: str
    updated_at: str
    confirmed_at: str
    valid_from: str
    valid_to: str | None
    replaces: str | None
    status: Literal["active", "ended", "proposed", "rejected", "undone", "forgotten"]
    proposes: Literal["add", "update", "delete", "keep"] | None = Field(description="What its approval does.")


class FactsAnswer(BaseModel):
    """A page of facts, and the whole user-fact dict."""

    items: list[FactAnswer]
    facts: dict[str, str]
    next_cursor: str | None
    filter: FilterAnswer | None = Field(None, description=FILTERED)


class EndedAnswer(BaseModel):
    """What ended a version of a fact: a turn, a person's act, a review or an undo."""

    by: Literal["turn", "person", "review", "undo"]
    at: str
    turn_id: str | None
    reason: str | None


class VersionAnswer(FactAnswer):
    """One version of a fact, and what ended it."""

    ended: EndedAnswer | None


class HistoryAnswer(BaseModel):
    """All versions of what a fact says, oldest first."""

    items: list[VersionAnswer]
    next_cursor: str | None


class UndoAnswer(BaseModel):
    """What was taken back, as changes from before the undo to after it, and what was left."""

    turn_id: str
    undone: list[ChangeAnswer]
    left: list[LeftAnswer]


class LearnAnswer(BaseModel):
    """The turn's update after it was learned from again."""

    turn_id: str
    update: UpdateAnswer


class RehearsalAnswer(BaseModel):
    """What learning again would change and refuse. `preview_id` can be applied until `expires_at`."""

    turn_id: str
    model: str
    changes: list[ChangeAnswer]
    refused: list[RefusedAnswer]
    dry_run: Literal[True]
    preview_id: str
    expires_at: str


class FileReaderAnswer(BaseModel):
    """What confines the process that reads a file: the walls in force, and those that this machine lacks."""

    in_force: list[str]
    missing: list[str]


class HealthAnswer(BaseModel):
    """What runs here; `warnings` are sentences about what is weaker than it might be."""

    status: Literal["ok"]
    version: str
    backends: dict[str, str]
    models: dict[str, str]
    warnings: list[str]
    file_reader: FileReaderAnswer


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
    details: list[ErrorDetail] | list[LeftAnswer] | None
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
    "tools": [],
    "usage": {"input_tokens": 0, "output_tokens": 0},
    "timings_ms": {"recall": 1.9, "agent": 0.4, "total": 2.6},
}
