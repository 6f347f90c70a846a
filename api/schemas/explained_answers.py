"""Answers that explain a turn: what it was given, what was left out, and what it taught."""

from typing import Literal

from pydantic import BaseModel, Field

from recollect.api.schemas.answers import ChangeAnswer, HitAnswer, MessageAnswer, RefusedAnswer, TurnAnswer
from recollect.memory.recall.hit import DropStage

State = Literal["shown", "forgotten", "deleted"]


class QuotePlaceAnswer(BaseModel):
    """The place of a quote in the user's message, counted in characters (code points); `end` is behind its last."""

    start: int
    end: int


class ExplainedChangeAnswer(ChangeAnswer):
    """A change, and where its quote stands; null where it is not found as it is."""

    quote: QuotePlaceAnswer | None


class ExplainedRefusedAnswer(RefusedAnswer):
    """A refused proposal, and where its quote stands; null where the message has no such words."""

    quote: QuotePlaceAnswer | None


class ExplainedHitAnswer(HitAnswer):
    """A hit with the parts of its score, and what became of its text since."""

    parts: dict[str, float] | None = Field(description="By name; null where they were not recorded.")
    state: State


class WindowAnswer(BaseModel):
    """The thread's turns that the model read word for word: those that are still stored, and how many are gone."""

    turns: int
    gone: int
    messages: list[MessageAnswer] = Field(description="Each cut to 2,000 characters.")


class LeftOutAnswer(BaseModel):
    """A candidate that was no hit. `source` is a message's turn, a summary's thread or a passage's document."""

    id: str
    kind: Literal["episode", "fact", "summary", "document"] | None
    source: str | None
    stage: DropStage
    reason: str | None
    scores: dict[str, float]
    content: str | None = Field(description="As it is stored now, cut to 2,000 characters; null where it is gone.")
    role: str | None
    created_at: str | None
    state: State


class AllLeftOutAnswer(BaseModel):
    """How many candidates the search left out, and up to 50 of them, those that came furthest first."""

    count: int
    items: list[LeftOutAnswer]


class BlockLineAnswer(BaseModel):
    """One line of the memory block; where its text is gone, the line says so."""

    kind: Literal["fact", "note", "summary", "whole", "message", "passage"]
    id: str | None
    line: str
    tokens: int
    state: State


class BlockAnswer(BaseModel):
    """The memory block, rebuilt from what is stored now; `tokens` are those that it had."""

    text: str
    tokens: int
    entries: list[BlockLineAnswer]


class ExplainedAnswer(BaseModel):
    """Why a turn answered as it did. `recorded` is false for turns of earlier versions, which kept less."""

    recorded: bool
    message: MessageAnswer
    window: WindowAnswer
    hits: list[ExplainedHitAnswer]
    left_out: AllLeftOutAnswer | None = Field(description="Null where nothing was searched, or not recorded.")
    block: BlockAnswer | None = Field(description="Null where an AGENT made its own prompt, or not recorded.")
    taught: list[ExplainedChangeAnswer]
    refused: list[ExplainedRefusedAnswer]


class ExplainedTurnAnswer(TurnAnswer):
    """A turn, with `explained` where that was asked for."""

    explained: ExplainedAnswer | None = Field(None, description="Only with `explain`.")
