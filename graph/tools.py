"""The agent's own tools. Their scope comes from the turn, never from the model, and they only propose."""

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from recollect.graph.context import Runtime, live_context
from recollect.graph.prompts import found_by_tool
from recollect.graph.state import Json, State
from recollect.graph.tool_uses import ToolUses
from recollect.graph.trust import REMEMBER, SEARCH, is_beside_others, is_others, names_of
from recollect.graph.turn_input import options_of, scope_of
from recollect.memory.learning.plan import Review
from recollect.memory.recall.recall import Recall
from recollect.memory.recall.recall_options import RecallOptions
from recollect.memory.recall.shown import Shown
from recollect.memory.values.decision import Proposal
from recollect.memory.values.errors import RecollectError
from recollect.memory.values.frozen import frozen
from recollect.memory.values.mem_config import Scoped
from recollect.memory.values.scope import Scope

logger = logging.getLogger(__name__)

MOST_ROUNDS = 5
"""After so many rounds of tool calls the agent gets one more call, without tools."""
MOST_CALLS = 10
"""Calls of one round after so many are answered with an error."""
MOST_CHARACTERS = 2_000
FOUND = 5
NOTED = "Noted. It is remembered if the quote is the user's own words."
WAITS = (
    "Proposed. Documents, tool results or other people's texts are in this conversation, so it is not remembered until "
    "the user approves it."
)

SEARCHED: Mapping[Scoped, str] = {
    "auto": "Search all that this user has said and what is known of them, by meaning: this conversation first, then "
    "their other ones, notes and documents.",
    "thread": "Search earlier messages of this conversation alone, and the user's notes and documents, by meaning.",
    "user": "Search all that this user has said in any conversation, and their notes and documents, by meaning.",
}
"""How `search_memory` says what it looks through."""
REMEMBER_SPEC: Json = {
    "type": "function",
    "function": {
        "name": REMEMBER,
        "description": "Propose to remember something the user has just said about themselves.",
        "parameters": {
            "type": "object",
            "properties": {
                "key": {"type": ["string", "null"], "description": "snake_case name, such as occupation."},
                "value": {"type": "string"},
                "statement": {"type": "string", "description": "One self-contained sentence."},
                "evidence": {"type": "string", "description": "Verbatim quote of the user's message."},
            },
            "required": ["key", "value", "statement", "evidence"],
        },
    },
}


async def tools(state: State, runtime: Runtime) -> Json:
    """Answer the calls of the agent's own tools; those of a client's stay open.

    After the last round that is allowed, the agent's own tools are offered no more.
    """
    live = await live_context(runtime)
    services = live.services
    asked = options_of(state, services.memory.config)
    options = RecallOptions.of(
        services.memory.config,
        scope=asked.scope,
        timezone=asked.timezone,
        window=0,
        top_k=FOUND,
        filter=asked.filter,
    )
    results, proposals = list[Json](), list(state["proposals"])
    uses, found_others = ToolUses(state["tool_uses"], live.listener), state["found_others"]
    own = [call for call in state["tool_calls"] if call["name"] not in state["client_tools"]]
    for place, call in enumerate(own):
        arguments: Mapping[str, Any] = call.get("args") or {}
        uses.begin(call["id"], call["name"], arguments)
        if place >= MOST_CALLS:
            answered = _failed(f"Not done: at most {MOST_CALLS} calls at once.")
        elif call["name"] == SEARCH:
            scope, regenerated = scope_of(state, stateless=live.is_stateless), live.regenerated
            answered = await _search(services.memory.recall, scope, options, arguments, regenerated)
            found_others = found_others or any(is_others(hit, names_of(state)) for hit in answered.hits)
        elif call["name"] == REMEMBER:
            untrusted = is_beside_others(state)
            proposals.append({**_proposed(arguments), "untrusted": untrusted})
            waits = Review.of(services.memory.config).holds_tool_back(untrusted=untrusted)
            answered = _ToolAnswer(WAITS if waits else NOTED)
        else:
            answered = _failed("There is no such tool.")
        uses.end(call["id"], answered.content, error=answered.error, found=answered.hits)
        results.append({"id": call["id"], "name": call["name"], "content": answered.content})
    rounds = state["rounds"] + 1
    return {
        "tool_results": results,
        "tool_uses": uses.kept(),
        "tool_calls": [call for call in state["tool_calls"] if call["name"] in state["client_tools"]],
        "exchange": [*state["exchange"], *(_answer(result) for result in results)],
        "proposals": proposals,
        "found_others": found_others,
        "rounds": rounds,
        "tools": state["tools"] if rounds < MOST_ROUNDS else _of_the_client(state),
    }


async def after_tools(state: State) -> str:
    """Tell where the tools' answers lead: back to the agent, or to the end, where a client's tools were called too."""
    return "save_turn" if state["tool_calls"] else "agent"


def offered(names: Collection[str], scope: Scoped) -> list[Json]:
    """Return the agent's own tools with these names; `search_memory` says what a search of `scope` looks through."""
    return [spec for spec in (_search_spec(scope), REMEMBER_SPEC) if spec["function"]["name"] in names]


def _search_spec(scope: Scoped) -> Json:
    return {
        "type": "function",
        "function": {
            "name": SEARCH,
            "description": SEARCHED[scope],
            "parameters": {
                "type": "object",
                "properties": {"query": {"type": "string", "description": "What to look for."}},
                "required": ["query"],
            },
        },
    }


def _of_the_client(state: State) -> list[Json]:
    return [tool for tool in state["tools"] if tool["function"]["name"] in state["client_tools"]]


@frozen
class _ToolAnswer:
    """What a tool answers; `error` says why it failed, `hits` are the HITs that it found."""

    content: str
    error: str | None = None
    hits: Sequence[Json] = ()


def _failed(error: str) -> _ToolAnswer:
    return _ToolAnswer(error, error)


async def _search(
    recall: Recall, scope: Scope, options: RecallOptions, arguments: Mapping[str, Any], without: str | None
) -> _ToolAnswer:
    query = str(arguments.get("query") or "")[:MOST_CHARACTERS]
    if not query.strip():
        return _failed("Not done: query is empty.")
    try:
        hits = (await recall.search(scope, query, options, shown=Shown(turns=[without] if without else ()))).hits
    except RecollectError as error:
        logger.warning("tool search failed", extra={"action": "tool_failed", "error": type(error).__name__})
        return _failed("Memory cannot be searched at the moment.")
    shown = [{**hit.as_json(), "content": hit.entry.content[:MOST_CHARACTERS]} for hit in hits]
    return _ToolAnswer(found_by_tool(shown), hits=shown)


def _proposed(arguments: Mapping[str, Any]) -> Json:
    """Return a proposal as plain JSON, cut to a bounded size; whether it holds, reconciliation decides."""
    said = {name: arguments.get(name) for name in ("key", "value", "statement", "evidence")}
    return {name: value[:MOST_CHARACTERS] if isinstance(value, str) else None for name, value in said.items()}


def as_proposal(proposed: Json) -> Proposal:
    """Return what `remember_fact` was told, as a proposal to add."""
    return Proposal(
        decision="add",
        key=proposed["key"],
        value=proposed["value"],
        statement=proposed["statement"],
        evidence=proposed["evidence"] or "",
        source="tool",
        untrusted=proposed.get("untrusted", True),
    )


def _answer(result: Json) -> Json:
    return {"role": "tool", "tool_call_id": result["id"], "name": result["name"], "content": result["content"]}
