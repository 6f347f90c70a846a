"""Checks the input of a run of the graph: the service has checked it before, Studio has not."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast
from uuid import uuid4

from recollect.graph.state import State
from recollect.memory.recall.recall_options import RecallOptions
from recollect.memory.recall.turn_options import read_options
from recollect.memory.values.errors import InvalidRequest, Problem
from recollect.memory.values.mem_config import MemoryConfig
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Message


def scope_of(state: State, *, stateless: bool = False) -> Scope:
    """Return the user and thread of this turn (`stateless`: the user alone); raise InvalidRequest without them."""
    given = cast(Mapping[str, Any], state)
    missing = [name for name in ("user_id", "thread_id", "message") if not isinstance(given.get(name), str)]
    if missing:
        problems = [Problem(name, "is missing") for name in missing]
        raise InvalidRequest(f"The input needs {', '.join(missing)}.", problems=problems)
    return Scope(state["user_id"], None if stateless else state["thread_id"])


def options_of(state: State, config: MemoryConfig) -> RecallOptions:
    """Return the request's memory options over the configured defaults; None counts as not given."""
    return read_options(state.get("memory") or {}, config)


def turn_id_of(state: State) -> str:
    """Return the turn's id, and not the one that a checkpointer kept from an earlier turn."""
    given, accepted = state.get("turn_id"), state.get("accepted")
    is_old = given == state.get("committed")
    if accepted is not None and accepted["turn_id"] == given:
        # A checkpointer kept it from a run that failed: with the same message, this run repeats that turn.
        is_old = is_old or accepted["content"] != state["message"]
    return str(uuid4()) if not given or is_old else given


def user_message(state: State, turn_id: str, created_at: datetime, position: int = 0) -> Message:
    """Return the user's message; `position` 0 where the store has not assigned one yet."""
    return Message(
        user_id=state["user_id"],
        thread_id=state["thread_id"],
        turn_id=turn_id,
        role="user",
        content=state["message"],
        created_at=created_at,
        metadata=state.get("metadata") or {},
        position=position,
    )


def accepted_message(state: State) -> Message:
    """Return the message as `load_window` stored it."""
    accepted = state["accepted"] or {}
    created_at = datetime.fromisoformat(accepted["created_at"])
    return user_message(state, accepted["turn_id"], created_at, accepted["position"])
