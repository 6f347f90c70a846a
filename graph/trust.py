"""Decides whether a turn's context holds other people's words, which makes the turn's proposals wait. Pure."""

from collections.abc import Mapping
from typing import Any

from recollect.graph.state import State
from recollect.memory.values.fact import fold

SEARCH, REMEMBER = "search_memory", "remember_fact"
OWN_TOOLS = frozenset({SEARCH, REMEMBER})
"""The agent's own tools."""


def is_beside_others(state: State) -> bool:
    """Tell whether the model has read documents, tool results or other people's words in this turn so far.

    The agent's own tools answer with words of the user and of itself, unless a search `found_others`.
    """
    own_names = names_of(state)
    rounds = [*state["window"], *state["exchange"]]
    called = {call["id"]: call["function"]["name"] for item in rounds for call in item.get("tool_calls") or ()}
    return (
        state["found_others"]
        or any(_is_results(item, called, state["client_tools"]) for item in rounds)
        or any(is_others(item, own_names) for item in (*state["hits"], *state["window"]))
    )


def names_of(state: State) -> frozenset[str]:
    """Return the folded names that mean the user; "" for a message without one."""
    return frozenset({fold(state["user_id"]), fold(state["facts"].get("name", "")), ""})


def is_others(item: Mapping[str, Any], own_names: frozenset[str]) -> bool:
    """Tell whether a hit or message is a document's or another person's, with a speaker not in `own_names`."""
    return item.get("kind") == "document" or (item["role"] == "user" and fold(item.get("name") or "") not in own_names)


def _is_results(item: Mapping[str, Any], called: Mapping[str, str], client_tools: list[str]) -> bool:
    """Tell whether the message is a result of a tool that is not the agent's own."""
    if item["role"] not in {"tool", "function"}:
        return False
    name = called.get(item.get("tool_call_id") or "", "")
    return name in client_tools or name not in {SEARCH, REMEMBER}
