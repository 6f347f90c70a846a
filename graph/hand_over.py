"""Returns an answer of which nothing is stored: a stateless one, or calls of the client's own tools."""

import json
from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

from recollect.graph.context import LiveContext, Runtime, live_context
from recollect.graph.kept_rounds import open_round
from recollect.graph.state import Json, State
from recollect.graph.turn_input import accepted_message, scope_of
from recollect.graph.turn_result import SAID_SEPARATOR, earlier_replies, turn_result
from recollect.memory.values.turn import Turn
from recollect.memory.values.update import not_owed


async def hand_over(state: State, runtime: Runtime) -> Json:
    """Pass the answer to the listener; keep the agent's own tool rounds until the client sends its calls' results."""
    live = await live_context(runtime)
    message = live.accepted or accepted_message(state)
    calls = state["tool_calls"]
    timings = {**state["timings_ms"], "total": round((perf_counter() - state["started"]) * 1000, 3)}
    result = turn_result(state, timings) | {"tool_calls": _for_the_client(calls)}
    text = SAID_SEPARATOR.join(earlier_replies(state)) if calls else state["reply"] or ""
    reply = replace(message, role="assistant", content=text, created_at=live.services.memory.now(), metadata={})
    update = not_owed("not stored")
    if calls:
        await _keep_round(state, live, Turn(message, reply, result, update))
    live.listener.answered(Turn(message, reply, result, update))
    return {"timings_ms": timings, "committed": "", "update": update.as_json()}


async def _keep_round(state: State, live: LiveContext, turn: Turn) -> None:
    """Keep the round until the client sends its results: whole in the store, or the agent's part in memory."""
    scope, fence = scope_of(state, stateless=live.is_stateless), live.fence
    own_rounds = state["exchange"][state["brought"] :]
    if live.chat.response is not None and scope.thread_id is not None and fence is not None:
        record = open_round(turn, live.chat, state["exchange"], state["proposals"])
        await live.services.memory.client_records.put(record, fence)
    elif any(item["role"] == "tool" for item in own_rounds):
        # Rounds kept after an erasure would survive it: the erasure has dropped the user's rounds by then.
        if fence is not None:
            await fence.check()
        ids = frozenset(call["id"] for call in state["tool_calls"])
        live.rounds.keep(scope, ids, own_rounds, state["proposals"])


def _for_the_client(calls: Sequence[Json]) -> list[Json]:
    """Return `calls` in OpenAI's form."""
    return [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": call["name"], "arguments": call.get("arguments") or json.dumps(call["args"])},
        }
        for call in calls
    ]
