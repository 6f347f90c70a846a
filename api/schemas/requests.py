"""Describes what requests may say. They are read strictly: unknown fields and other types are refused."""

from dataclasses import fields
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    Tag,
    model_validator,
)

from recollect.memory.exchanges.given_exchange import MOST_AT_ONCE, MOST_NAME_CHARACTERS, GivenExchange, SaidMessage
from recollect.memory.facts.fact_edit import FactEdit
from recollect.memory.options.model_choice import MOST_INSTRUCTIONS_CHARACTERS, MOST_MODEL_CHARACTERS, PARAMETERS
from recollect.memory.recall.recall_options import RecallOptions
from recollect.memory.temporal.temporal import read_timezone
from recollect.memory.values.filtering.reading import EXAMPLE, read_filter
from recollect.memory.values.further_message import MOST_FURTHER, FurtherMessage
from recollect.memory.values.json_values import MOST_METADATA_DEPTH, json_problem
from recollect.memory.values.mem_config import Coverage, MemoryConfig, Scoped, TimeUse
from recollect.memory.values.scope import ID_PATTERN, ID_RULE
from recollect.memory.values.text import MOST_REPLY_CHARACTERS, text_problem
from recollect.memory.values.times import from_ms, to_ms, utc_now

MOST_TEXT = 100_000
"""Longer texts of a fact are refused before anything looks at them."""
MOST_LISTED = 1_000
"""Longer lists, of tags say, are refused in the same way."""
MOST_SUMMARY_CHARACTERS = 40_000
"""The length that the largest SUMMARY_TOKENS allows."""


def check_request_text(text: str) -> str:
    """Text that every store can hold: no NUL, no lone surrogate."""
    problem = text_problem(text)
    if problem is not None:
        raise ValueError(problem)
    return text


def check_path_id(text: str) -> str:
    """Return an id that is not a path's dots."""
    if text in {".", ".."}:
        raise ValueError("must not be '.' or '..'")
    return text


def check_json(value: dict[str, Any]) -> dict[str, Any]:
    """Plain JSON of bounded depth, whose texts and numbers every store can hold."""
    problem = json_problem(value, MOST_METADATA_DEPTH)
    if problem is not None:
        raise ValueError(problem)
    return value


Id = Annotated[
    str,
    Field(strict=True, pattern=f"^{ID_PATTERN}$", description=ID_RULE),
    AfterValidator(check_path_id),
]
MessageText = Annotated[str, Field(strict=True, min_length=1), AfterValidator(check_request_text)]
"""A message, as far as its form can say; MAX_MESSAGE_CHARACTERS bounds it in `Memory.check_message`."""
ModelName = Annotated[
    str, Field(strict=True, min_length=1, max_length=MOST_MODEL_CHARACTERS), AfterValidator(check_request_text)
]
Instructions = Annotated[
    str, Field(strict=True, min_length=1, max_length=MOST_INSTRUCTIONS_CHARACTERS), AfterValidator(check_request_text)
]
AGENT = "The agent that it is for: a label, and a name in filters."
WHOSE = "Whose memory it is; a key of one user's own may leave it out."
Weight = Annotated[StrictFloat, Field(ge=0, le=1, allow_inf_nan=False)]
Cosine = Annotated[StrictFloat, Field(ge=-1, le=1, allow_inf_nan=False)]


def read_request_time(value: Any) -> datetime:
    """Return a time in ISO 8601, in whole milliseconds; without an offset it is UTC."""
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else None
        if time is not None:
            utc = time.astimezone(UTC) if time.tzinfo is not None else time.replace(tzinfo=UTC)
            return from_ms(to_ms(utc))
    except (ValueError, OverflowError):
        pass
    raise ValueError("must be a time such as 2026-01-31T09:30:00Z")


Time = Annotated[datetime, BeforeValidator(read_request_time)]


def check_timezone(name: str) -> str:
    """Return the name of a time zone that is known here."""
    try:
        read_timezone(name)
    except ValueError:
        raise ValueError("must be an IANA time zone such as Europe/Berlin") from None
    return name


def check_given(value: Any) -> Any:
    """Return a value that is not null."""
    if value is None:
        raise ValueError("must be one of auto, thread, user; left out, it is the configured one")
    return value


Timezone = Annotated[str, Field(strict=True, max_length=64), AfterValidator(check_timezone)]
SCOPE = "Search this `thread`, all of the `user`'s, or that with the thread's hits first (`auto`)."
TIMEZONE = "Where the user's days begin, such as Europe/Berlin."
TIME = "What a time named in the text does: `boost` what was said then, `filter` the rest out, or `ignore` it."
FALLBACK_RECENT = "Where nothing is relevant: the newest few memories."
COVERAGE = (
    "Cover a period, or a subject over time: where the text asks for it (`auto`), always (`on`), or never (`off`)."
)


Domains = Annotated[
    list[Annotated[str, Field(strict=True, min_length=1, max_length=64), AfterValidator(check_request_text)]],
    Field(max_length=20),
]
FILTER = (
    'Conditions that hits fulfil, such as {"project": "apollo", "priority": {"gte": 2}}: on metadata, and on role, '
    "name, kind, source, created_at, agent_id and thread_id; null: none."
)
FilterField = Annotated[dict[str, Any], Field(json_schema_extra={"example": dict(EXAMPLE)})]
DOMAINS = "Of documents those in one of these domains, and those that are attached; null: all."


class MemoryOptions(BaseModel):
    """How this turn uses memory. What is left out, or null, takes the configured default."""

    model_config = ConfigDict(extra="forbid")

    enabled: StrictBool = Field(True, description="False: stored, but nothing is recalled, indexed or learned.")
    scope: Annotated[Scoped | None, BeforeValidator(check_given)] = Field(None, description=SCOPE)
    window: Annotated[StrictInt, Field(ge=0, le=50)] | None = Field(None, description="Turns given verbatim.")
    top_k: Annotated[StrictInt, Field(ge=0, le=50)] | None = Field(None, description="Most hits; 0: no search.")
    score_threshold: Cosine | None = Field(None, description="Least cosine similarity of a hit.")
    recency_weight: Weight | None = Field(None, description="Share of recency in a hit's score.")
    mmr_lambda: Weight | None = Field(None, description="MMR's trade-off: 1 relevance alone, 0 variety alone.")
    timezone: Timezone | None = Field(None, description=TIMEZONE)
    time: TimeUse | None = Field(None, description=TIME)
    fallback_recent: StrictBool | None = Field(None, description=FALLBACK_RECENT)
    domains: Domains | None = Field(None, description=DOMAINS)
    filter: FilterField | None = Field(None, description=FILTER)
    coverage: Coverage | None = Field(None, description=COVERAGE)


class AgentRequest(BaseModel):
    """One turn. `query` and `session_id` are other names of `message` and `thread_id`."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"user_id": "ada", "thread_id": "t1", "message": "Hi, I'm Ada."}],
        },
    )

    user_id: Id | None = Field(None, description=WHOSE)
    thread_id: Id
    message: MessageText
    turn_id: Id | None = Field(None, description="Yours, for retries: the same one again returns the stored result.")
    stream: StrictBool = Field(False, description="Answer as text/event-stream.")
    wait_for_memory: StrictBool = Field(False, description="Answer once the turn was learned from.")
    metadata: Annotated[dict[str, Any], AfterValidator(check_json)] = Field(
        default_factory=dict, description="Kept with the user's message."
    )
    agent_id: Id | None = Field(None, description=AGENT)
    memory: MemoryOptions = MemoryOptions.model_validate({})
    model: ModelName | None = Field(None, description="With ALLOW_MODEL_CHOICE: another model of the provider.")
    instructions: Instructions | None = Field(
        None, description="With ALLOW_MODEL_CHOICE: added to the agent's own instructions."
    )
    parameters: Annotated[dict[str, Any], AfterValidator(check_json)] | None = Field(
        None, description=f"With ALLOW_MODEL_CHOICE: of the model: {', '.join(PARAMETERS)}."
    )

    def choice(self) -> dict[str, Any]:
        """Return what the request chooses for the agent's model, by field."""
        return self.model_dump(include={"model", "instructions", "parameters"}, exclude_none=True)

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


class ContextRequest(BaseModel):
    """A message whose context is wanted."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"user_id": "ada", "thread_id": "t1", "message": "Which tea should I buy?"}]},
    )

    user_id: Id | None = Field(None, description=WHOSE)
    thread_id: Id
    message: MessageText
    memory: MemoryOptions = MemoryOptions.model_validate({})


Metadata = Annotated[dict[str, Any], AfterValidator(check_json)]
Name = Annotated[
    str, Field(strict=True, min_length=1, max_length=MOST_NAME_CHARACTERS), AfterValidator(check_request_text)
]
SaidText = Annotated[str, Field(strict=True), AfterValidator(check_request_text)]
DATES = "Dates the message; the order is that of arrival. Null: now."


class SaidByUser(BaseModel):
    """The user's message of an exchange."""

    model_config = ConfigDict(extra="forbid")

    content: MessageText
    name: Name | None = Field(None, description="Who said it, in a group.")
    created_at: Time | None = Field(None, description=DATES)
    metadata: Metadata = Field(default_factory=dict, description="Kept with the message.")


class SaidByAssistant(BaseModel):
    """The reply of an exchange."""

    model_config = ConfigDict(extra="forbid")

    content: Annotated[SaidText, Field(min_length=1, max_length=MOST_REPLY_CHARACTERS)]
    name: Name | None = None
    created_at: Time | None = Field(None, description="Dates the reply; null: as its message.")
    metadata: Metadata = Field(default_factory=dict, description="Kept with the reply.")


class SaidFurther(BaseModel):
    """A further message of an exchange: a tool's round, or another speaker."""

    model_config = ConfigDict(extra="forbid")

    role: Literal["user", "assistant", "system", "tool"]
    content: SaidText
    name: Name | None = None
    created_at: Time | None = Field(None, description="Dates the message; null: as the user's.")
    metadata: Metadata = Field(default_factory=dict, description="Kept with the message.")


class ExchangeRequest(BaseModel):
    """A turn that an agent elsewhere ran."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "user_id": "ada",
                    "thread_id": "t1",
                    "user": {"content": "I love green tea."},
                    "assistant": {"content": "Noted."},
                }
            ]
        },
    )

    user_id: Id | None = Field(None, description=WHOSE)
    thread_id: Id
    turn_id: Id | None = Field(None, description="Yours, for retries: the same one again returns the stored turn.")
    user: SaidByUser
    assistant: SaidByAssistant | None = Field(None, description="Null: a finished turn without a reply.")
    messages: list[SaidFurther] = Field(
        [], max_length=MOST_FURTHER, description="What else was said in the turn, in order; the user's are evidence."
    )
    learn: StrictBool = Field(True, description="False: stored and indexed, and nothing is learned from it.")
    agent_id: Id | None = Field(None, description=AGENT)
    wait_for_memory: StrictBool = Field(False, description="Answer once the turn was learned from.")

    def given(self) -> GivenExchange:
        """Return the exchange as the memory takes it."""
        said_at = self.user.created_at or utc_now()
        return GivenExchange(
            user=SaidMessage(self.user.content, self.user.name, said_at, self.user.metadata),
            assistant=SaidMessage(**dict(self.assistant)) if self.assistant is not None else None,
            turn_id=self.turn_id,
            messages=tuple(
                FurtherMessage(one.role, one.content, one.created_at or said_at, one.name, one.metadata)
                for one in self.messages
            ),
            learn=self.learn,
            agent_id=self.agent_id,
        )


def _how_many(body: Any) -> str:
    return SEVERAL if isinstance(body, list) else ONE


ONE, SEVERAL = "<one>", "<several>"
"""Tags of the two forms of a body, which are no fields of it; see `errors`."""
Exchanges = Annotated[
    Annotated[ExchangeRequest, Tag(ONE)]
    | Annotated[list[ExchangeRequest], Field(min_length=1, max_length=MOST_AT_ONCE), Tag(SEVERAL)],
    Discriminator(_how_many),
]
"""One exchange, or several in their order."""


class FactRequest(BaseModel):
    """Fields of a fact that a person writes; those that are left out stay as they are, or take the defaults."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"value": "vegetarian", "tags": ["food"], "importance": 0.8, "pinned": True}]},
    )

    value: Annotated[str, Field(strict=True, max_length=MOST_TEXT)] = Field("", description="1-1,000 characters.")
    statement: Annotated[str, Field(strict=True, max_length=MOST_TEXT)] | None = Field(
        None, description="At most 2,000 characters; null: made from key and value."
    )
    tags: list[Annotated[str, Field(strict=True, max_length=MOST_TEXT)]] = Field(
        [], max_length=MOST_LISTED, description="At most 10, of 1-64 characters each."
    )
    importance: Weight = Field(0.5, description="What the prompt prefers and eviction spares.")
    pinned: StrictBool = Field(False, description="Pinned: no model changes it, and it is never evicted.")
    scope: Literal["user", "thread", "global"] = Field("user", description="`thread` goes with its thread.")
    thread_id: Id | None = Field(None, description="Of scope `thread`: where the fact lives.")
    valid_from: Time | None = Field(None, description="It holds from then on; null: from now on.")
    valid_to: Time | None = Field(None, description="It holds until just before then; null: without end.")

    metadata: Annotated[dict[str, Any], AfterValidator(check_json)] = Field(
        default_factory=dict, description="Any JSON object, which filters see."
    )
    agent_id: Id | None = Field(None, description=AGENT)

    def edit(self) -> FactEdit:
        """Return the fields that were given."""
        return cast("FactEdit", self.model_dump(exclude_unset=True))


class UndoRequest(BaseModel):
    """How to undo a turn."""

    model_config = ConfigDict(extra="forbid")

    force: StrictBool = Field(False, description="Undo the rest, where facts have changed since.")


class LearnRequest(BaseModel):
    """How to learn from a turn again."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"model": None, "dry_run": True}]})

    model: ModelName | None = Field(
        None, description="Another extraction model than the configured one, which the provider lists."
    )
    dry_run: StrictBool = Field(False, description="Say what would change, and change nothing.")
    preview_id: Id | None = Field(
        None, description="Apply what a `dry_run` has shown, without asking a model again; alone, without `model`."
    )

    @model_validator(mode="after")
    def check_alone(self) -> Self:
        """Refuse a preview together with what would make another one."""
        if self.preview_id is not None and (self.model is not None or self.dry_run):
            raise ValueError("preview_id stands alone, without model and dry_run")
        return self


class SummaryRequest(BaseModel):
    """A person's summary of a thread."""

    model_config = ConfigDict(extra="forbid")

    summary: (
        Annotated[str, Field(strict=True, max_length=MOST_SUMMARY_CHARACTERS), AfterValidator(check_request_text)]
        | None
    ) = Field(description="At most SUMMARY_TOKENS; null or empty: none.")


class SearchRequest(BaseModel):
    """A search of a user's memory. What is null takes the configured default."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"user_id": "ada", "query": "Where did I want to travel?"}]},
    )

    user_id: Id | None = Field(None, description=WHOSE)
    thread_id: Id | None = Field(None, description="That thread alone, and its documents; null: all.")
    query: MessageText
    top_k: Annotated[StrictInt, Field(ge=0, le=50, description="Most hits.")] = 5
    score_threshold: Cosine | None = Field(None, description="Least cosine similarity of a hit.")
    recency_weight: Weight | None = Field(None, description="Share of recency in a hit's score.")
    mmr_lambda: Weight | None = Field(None, description="MMR's trade-off: 1 relevance alone, 0 variety alone.")
    token_budget: Annotated[StrictInt, Field(ge=1, le=100_000)] | None = Field(
        None, description="Pack the hits, long ones as excerpts, and the neighbours they need into so many tokens."
    )
    kinds: list[Literal["episode", "fact", "summary", "document"]] | None = Field(
        None, max_length=4, description="What to look for; null: all."
    )
    tags: (
        Annotated[list[Annotated[str, Field(strict=True, min_length=1, max_length=64)]], Field(max_length=10)] | None
    ) = Field(None, description="Only facts with one of these tags.")
    domains: Domains | None = Field(None, description=DOMAINS)
    filter: FilterField | None = Field(None, description=FILTER)
    now: Time | None = Field(None, description="What `yesterday` and recency are reckoned from; null: now.")
    timezone: Timezone | None = Field(None, description=TIMEZONE)
    time: TimeUse | None = Field(None, description=TIME)
    expand: Literal["thread"] | None = Field(None, description="`thread`: each hit with its whole session.")
    fallback_recent: StrictBool | None = Field(None, description=FALLBACK_RECENT)
    coverage: Coverage | None = Field(None, description=COVERAGE)
    explain: StrictBool = Field(
        False, description="Add `trace`: how each candidate was scored, and where it was left out."
    )

    def options(self, config: MemoryConfig) -> RecallOptions:
        """Return the recall's options; what is null takes the configured default.

        Raises:
            InvalidRequest: the filter is none.
        """
        said = self.model_dump(include={item.name for item in fields(RecallOptions)}, exclude_none=True)
        for name in ("kinds", "tags", "domains"):
            if name in said:
                said[name] = tuple(dict.fromkeys(said[name]))
        if "filter" in said:
            said["filter"] = read_filter(said["filter"])
        return RecallOptions.of(config, **said)
