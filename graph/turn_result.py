"""Builds a turn's result: the recalled memory, the earlier replies, and the fields stored beside its texts."""

from collections.abc import Mapping
from typing import Any

from recollect.graph.past import FINGERPRINT
from recollect.graph.state import Json, State
from recollect.memory.values.turn import RECORDED

SAID_SEPARATOR = "\n\n"


def recalled_json(state: State) -> Json:
    """Return the recalled memory as the reply's `memory` shows it. `window` counts turns."""
    turns = {turn_id for message in state["window"] if (turn_id := message.get("turn_id")) is not None}
    return {
        "window": len(turns),
        "facts": state["facts"],
        "summary": state["summary"],
        "hits": state["hits"],
        "degraded": state["degraded"],
        **state["filtered"],
    }


def turn_result(
    state: State, timings: Json, *, history: str | None = None, response: Mapping[str, Any] | None = None
) -> Json:
    """Return the turn's result apart from its texts.

    `history` is the fingerprint of its client's history before it, `response` what its client's door keeps with it.
    """
    result = {
        "model": state["model"],
        "memory": recalled_json(state),
        "tools": state["tool_uses"],
        "usage": state["usage"],
        "timings_ms": timings,
        "trace": state["trace"],
        RECORDED: {
            "window_from": state["window_from"],
            "left_out": state["left_out"],
            "block": state["block"],
        },
    }
    if history is not None:
        result[FINGERPRINT] = history
    if response is not None:
        result["response"] = dict(response)
    return result if state["finish_reason"] == "stop" else {**result, "finish_reason": state["finish_reason"]}


def earlier_replies(state: State) -> list[str]:
    """Return the agent's texts of this turn's earlier rounds, before its tool calls: they are part of the reply.

    Rounds that a client sent are left out, because the client has them.
    """
    rounds = state["exchange"][state["brought"] :]
    return [item["content"] for item in rounds if item["role"] == "assistant" and item["content"]]
