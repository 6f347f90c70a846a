"""Says what became of a turn: `X-Memory-Stored`, and `memory` in the body, or in a stream's last part."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, Field

from recollect.api.schemas.answers import FILTERED, FilterAnswer
from recollect.graph.running_turn import RunningTurn
from recollect.memory.values.turn import Turn

Json = dict[str, Any]

STORED = "X-Memory-Stored"
"""The header that says whether the turn is stored."""
KEPT = "Whether the turn is kept; of a stream, whether it is going to be (its last part has the last word)."
HEADERS: Json = {STORED: {"description": KEPT, "schema": {"type": "string", "enum": ["true", "false"]}}}
"""The header, for the OpenAPI text."""


class FateAnswer(BaseModel):
    """What became of the turn."""

    stored: bool = Field(
        description="Whether it is kept: not without a thread, nor where the client's tools are called."
    )
    user_id: str
    thread_id: str | None = Field(description="Null where there is none.")
    turn_id: str | None = Field(description="Null where nothing is stored.")
    reason: Literal["no_thread", "store_false", "chore"] | None = Field(
        description="Why nothing is ever stored of it; null where it is stored, or will be with the final answer."
    )


class MemoryHitAnswer(BaseModel):
    """One recalled memory; `role` is who said it, or its kind."""

    role: Literal["user", "assistant", "fact", "summary", "document"]
    content: str
    created_at: str
    score: float


class RememberedAnswer(BaseModel):
    """What became of the turn, and what was recalled for it."""

    memory: FateAnswer
    memory_hits: list[MemoryHitAnswer]
    memory_filter: FilterAnswer | None = Field(None, description=FILTERED)
    memory_degraded: list[str] | None = Field(None, description="Only where parts of the memory failed: their names.")


def whole_or_streamed(model: type[BaseModel]) -> Json:
    """Return the OpenAPI text of a route's answer, which is `model` in one piece or a stream, with the header."""
    return {"model": model, "content": {"application/json": {}, "text/event-stream": {}}, "headers": HEADERS}


def fate(running: RunningTurn) -> Json:
    """Return what became of the turn."""
    scope, chat = running.request.scope, running.request.chat
    is_stored = running.is_stored
    return {
        "stored": is_stored,
        "user_id": scope.user_id,
        "thread_id": scope.thread_id,
        "turn_id": running.turn_id if is_stored else None,
        "reason": None if is_stored or chat is None else chat.unkept,
    }


def remembered(turn: Turn, running: RunningTurn) -> Json:
    """Return what became of the turn, what was recalled, and which parts of the memory failed."""
    memory: Mapping[str, Any] = (turn.result or {})["memory"]
    hits = [
        {
            "role": hit["role"] or hit["kind"],
            "content": hit["content"],
            "created_at": hit["created_at"],
            "score": hit["score"],
        }
        for hit in memory["hits"]
    ]
    shown: Json = {"memory": fate(running), "memory_hits": hits}
    if "filter" in memory:
        shown["memory_filter"] = memory["filter"]
    return {**shown, "memory_degraded": memory["degraded"]} if memory["degraded"] else shown


def stored_header(running: RunningTurn) -> dict[str, str]:
    """Return the header that says whether the turn is stored; before its end, whether it is going to be."""
    return {STORED: "true" if running.is_stored else "false"}
