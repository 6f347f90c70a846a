"""Records rounds of a client's tools: open ones whole, those of a stored turn within bounds.

A round is calls of the client's tools and their results. An open one waits in the store for its results.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from recollect.graph.client_chat import ClientChat
from recollect.graph.state import Json
from recollect.graph.trust import OWN_TOOLS
from recollect.memory.ports.client_records import MOST_RECORD_CHARACTERS, ClientRecord
from recollect.memory.values.errors import TooLarge
from recollect.memory.values.text import cut
from recollect.memory.values.turn import Turn

OPEN_TIME = timedelta(hours=24)
MOST_KEPT_CHARACTERS = 10_000
"""A stored turn keeps so much of each call's arguments and of each result."""
MOST_KEPT_MESSAGES = 100


def open_round(turn: Turn, chat: ClientChat, exchange: Sequence[Json], proposals: Sequence[Json]) -> ClientRecord:
    """Return the record of a round that ends in calls of the client's tools; `turn` is its answer.

    Raises:
        TooLarge: the conversation is too long to be kept.
    """
    message, reply, result = turn.message, turn.reply, turn.result or {}
    content: Json = {
        "history": list(chat.history),
        "message": message.content,
        "parts": chat.content,
        "metadata": dict(message.metadata),
        "exchange": list(exchange),
        "proposals": list(proposals),
        "follows": chat.follows,
        "appends": chat.appends,
        "agent_id": message.agent_id,
        "text": reply.content if reply is not None else "",
        "tool_calls": result.get("tool_calls") or [],
        "model": result.get("model"),
        "usage": result.get("usage"),
        "response": with_rounds(chat),
    }
    if len(json.dumps(content)) > MOST_RECORD_CHARACTERS:
        raise TooLarge("The conversation is too long for its tool calls to be kept; send less, or store: false.")
    return ClientRecord(
        message.user_id,
        message.thread_id,
        message.turn_id,
        "open_round",
        message.created_at,
        message.created_at + OPEN_TIME,
        content,
    )


def with_rounds(chat: ClientChat) -> Mapping[str, Any] | None:
    """Return `chat.response` with the client's rounds, cut to what a turn keeps; None without one."""
    if chat.response is None:
        return None
    rounds = [kept for message in chat.rounds if (kept := _clients(message)) is not None]
    answered = {call["id"] for kept in rounds for call in kept.get("tool_calls", ())}
    known = [kept for kept in rounds if kept["role"] != "tool" or kept["tool_call_id"] in answered]
    return {**chat.response, "rounds": known[-MOST_KEPT_MESSAGES:]}


def _clients(message: Json) -> Json | None:
    """Return the client's part of a message among the rounds; None where it has none."""
    if message["role"] == "tool":
        content = message["content"] if isinstance(message["content"], str) else ""
        return {"role": "tool", "tool_call_id": message["tool_call_id"], "content": cut(content, MOST_KEPT_CHARACTERS)}
    calls = [_cut(call) for call in message.get("tool_calls") or () if call["function"]["name"] not in OWN_TOOLS]
    return {"role": "assistant", "content": "", "tool_calls": calls} if calls else None


def _cut(call: Json) -> Json:
    function = call["function"]
    arguments = function["arguments"] if len(function["arguments"]) <= MOST_KEPT_CHARACTERS else "{}"
    kept = {name: call[name] for name in ("id", "type")}
    return {**kept, "function": {"name": function["name"], "arguments": arguments}}
