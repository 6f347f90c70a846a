"""What a turn comes to: what it recalled, what the agent has said, and what is stored beside its texts."""

from graph.state import Json, State

SAID_SEPARATOR = "\n\n"


def recalled_json(state: State) -> Json:
    """What was recalled, as the reply's `memory` shows it. `window` counts turns."""
    turns = {turn_id for message in state["window"] if (turn_id := message.get("turn_id")) is not None}
    return {
        "window": len(turns),
        "facts": state["facts"],
        "summary": state["summary"],
        "hits": state["hits"],
        "degraded": state["degraded"],
    }


def turn_result(state: State, timings: Json) -> Json:
    """What the turn answered, apart from its texts."""
    result = {
        "model": state["model"],
        "memory": recalled_json(state),
        "usage": state["usage"],
        "timings_ms": timings,
        "trace": state["trace"],
    }
    return result if state["finish_reason"] == "stop" else {**result, "finish_reason": state["finish_reason"]}


def said_before(state: State) -> list[str]:
    """What the agent said in earlier rounds of this turn, before it called tools: it is part of the reply.

    What a client brought is known to it.
    """
    rounds = state["exchange"][state["brought"] :]
    return [item["content"] for item in rounds if item["role"] == "assistant" and item["content"]]
