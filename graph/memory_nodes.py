"""The memory's nodes: three that fetch side by side before the agent, one that saves the turn, one that learns."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any

from langgraph.runtime import Runtime

from graph.context import Context, accepted_of, listener_of, services_of
from graph.resources import Services
from graph.state import Json, State
from graph.tools import TOOL_SPECS, as_proposal
from graph.turn_input import accepted_message, message_of, options_of, scope_of, turn_id_of
from memory.errors import StoreUnavailable
from memory.memory import Memory
from memory.recall_options import RecallOptions
from memory.thread_record import ThreadRecord
from memory.turn import Message, Turn
from memory.update import Update, not_owed

logger = logging.getLogger(__name__)

MOST_TRACED = 20
"""How many candidates' ways are kept with a turn, the hits' first."""
NO_USAGE = {"input_tokens": 0, "output_tokens": 0}


async def load_window(state: State, runtime: Runtime[Context]) -> Json:
    """Fetch the thread's last turns. It also begins the turn: every key of the agent's rounds starts empty."""
    started = perf_counter()
    services = await services_of(runtime)
    scope, options = scope_of(state), options_of(state, services.memory.config)
    fresh = _fresh_turn(state, services, options)
    accepted = accepted_of(runtime)
    if accepted is None:
        # Nobody has stored the message yet (Studio): before the model is called, it is.
        accepted = await services.memory.accept(message_of(state, fresh["turn_id"], services.memory.clock()))
        fresh |= {"accepted": {**accepted.as_json(), "position": accepted.position}}
    before = accepted.position

    async def fetch() -> Json:
        if not options.enabled:
            return empty
        exchanges = await services.memory.recall.window(scope, options, before=before)
        messages = [message.as_json() for exchange in exchanges for message in exchange.messages]
        return {"window": messages, "window_from": exchanges[0].user.position if exchanges else before}

    empty: Json = {"window": [], "window_from": before}
    fetched = await _fetch("load_window", services, fetch, empty)
    return {**fresh, "started": started, **fetched}


async def search_memories(state: State, runtime: Runtime[Context]) -> Json:
    """Search past messages that the window does not show."""
    services = await services_of(runtime)
    scope, options = scope_of(state), options_of(state, services.memory.config)
    accepted = accepted_of(runtime)

    async def fetch() -> Json:
        if not options.enabled:
            return empty
        before = accepted.position if accepted else None
        recalled = await services.memory.recall.search(scope, state["message"], options, before=before)
        hits = [hit.as_json() for hit in recalled.hits]
        return {"hits": hits, "trace": recalled.trace_json(limit=MOST_TRACED)}

    empty: Json = {"hits": [], "trace": []}
    return await _fetch("search_memories", services, fetch, empty)


async def load_facts(state: State, runtime: Runtime[Context]) -> Json:
    """Fetch what is known of the user, and the summary of what left the thread's window."""
    services = await services_of(runtime)
    scope, options = scope_of(state), options_of(state, services.memory.config)
    empty: Json = {"facts": {}, "notes": [], "summary": None, "thread": None}

    async def fetch() -> Json:
        if not options.enabled:
            return empty
        recall = services.memory.recall
        known, record = await asyncio.gather(recall.facts(scope, with_global=True), recall.thread(scope))
        return {
            "facts": dict(known.facts),
            "notes": list(known.notes),
            "summary": record.summary if record is not None else None,
            "thread": record.progress() if record is not None else None,
        }

    return await _fetch("load_facts", services, fetch, empty)


async def save_turn(state: State, runtime: Runtime[Context]) -> Json:
    """Store the reply with the pending update it owes; then the reply may go out."""
    services = await services_of(runtime)
    memory, options = services.memory, options_of(state, services.memory.config)
    message = accepted_of(runtime) or accepted_message(state)
    total = round((perf_counter() - state["started"]) * 1000, 3)
    timings = {**state["timings_ms"], "total": total}
    result = {
        "model": state["model"],
        "memory": recalled_json(state),
        "usage": state["usage"],
        "timings_ms": timings,
        "trace": state["trace"],
    }
    turn = await memory.commit(
        message,
        reply=state["reply"] or "",
        result=result,
        update=_owed(state, memory, message) if options.enabled else not_owed("disabled"),
    )
    listener_of(runtime).saved(turn)
    done: Json = {"timings_ms": timings, "committed": message.turn_id, "update": _update_json(turn)}
    # Inputs of this turn alone: with a checkpointer (Studio), the next one would take them over.
    return {**done, "metadata": {}, "memory": {}}


async def update_memory(state: State, runtime: Runtime[Context]) -> Json:
    """Learn from the turn and index it, until each step was tried. What an outage leaves, the updater goes on with."""
    services = await services_of(runtime)
    memory = services.memory
    update = await memory.updater.wait_tried(
        user_id=state["user_id"], turn_id=state["committed"], seconds=memory.config.memory_wait_seconds
    )
    return {"update": update.as_json() if update is not None else state["update"]}


def _owed(state: State, memory: Memory, message: Message) -> Update:
    scope, progress = message.scope, state["thread"]
    return memory.owed(
        message,
        proposals=tuple(as_proposal(proposal) for proposal in state["proposals"]),
        record=ThreadRecord(scope.user_id, scope.thread, **progress) if progress is not None else None,
        window_from=state["window_from"],
    )


def recalled_json(state: State) -> Json:
    """What was recalled, as the reply's `memory` shows it. `window` counts turns."""
    return {
        "window": len({message["turn_id"] for message in state["window"]}),
        "facts": state["facts"],
        "summary": state["summary"],
        "hits": state["hits"],
        "degraded": state["degraded"],
    }


def _fresh_turn(state: State, services: Services, options: RecallOptions) -> Json:
    """The keys that a turn starts with."""
    agent_takes_tools = services.agent is not None or services.memory.chat.calls_tools
    offered = options.enabled and services.offers_tools and agent_takes_tools
    return {
        "turn_id": turn_id_of(state),
        "accepted": None,
        "tools": list(TOOL_SPECS) if offered else [],
        "rounds": 0,
        "tool_calls": [],
        "tool_results": [],
        "exchange": [],
        "proposals": [],
        "reply": None,
        "model": "",
        "usage": NO_USAGE,
        "timings_ms": {"recall": 0.0, "agent": 0.0},
    }


async def _fetch(name: str, services: Services, fetch: Callable[[], Awaitable[Json]], empty: Json) -> Json:
    """Run one fetch within its time, once more where the store failed. A failure costs its own part only."""
    try:
        async with asyncio.timeout(services.memory.config.recall_timeout_seconds):
            try:
                fetched = await fetch()
            except StoreUnavailable:
                fetched = await fetch()
    except Exception as error:
        # The boundary of a fetch: whatever failed is named in the reply and in the log, and the turn goes on.
        logger.warning(
            "memory fetch failed", extra={"action": "fetch_failed", "node": name, "error": type(error).__name__}
        )
        return {**empty, "degraded": {name: True}}
    return {**fetched, "degraded": {name: False}}


def _update_json(turn: Turn) -> Any:
    return turn.update.as_json() if turn.update is not None else None
