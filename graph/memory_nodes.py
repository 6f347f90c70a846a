"""The memory's nodes: three fetch side by side before the agent, one saves the turn, one learns from it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from time import perf_counter
from typing import Any

from recollect.graph.client_chat import ClientChat
from recollect.graph.context import LiveContext, Runtime, live_context
from recollect.graph.hand_over import hand_over
from recollect.graph.history import history_fingerprint, merged_history
from recollect.graph.kept_rounds import with_rounds
from recollect.graph.resources import Services
from recollect.graph.state import Json, State
from recollect.graph.tools import as_proposal, offered
from recollect.graph.trust import OWN_TOOLS, SEARCH
from recollect.graph.turn_input import accepted_message, options_of, scope_of, turn_id_of, user_message
from recollect.graph.turn_result import turn_result
from recollect.memory.memory import Memory
from recollect.memory.options.model_choice import ModelChoice
from recollect.memory.recall.recall_options import RecallOptions
from recollect.memory.recall.shown import ReadFacts, Shown
from recollect.memory.recall.turn_context import tried
from recollect.memory.threads.window import ReadWindow
from recollect.memory.values.scope import Scope
from recollect.memory.values.thread_record import ThreadRecord
from recollect.memory.values.turn import Message, Turn
from recollect.memory.values.update import Update, not_owed

INPUT_USED: Json = {"metadata": {}, "memory": {}}
"""One turn's inputs, emptied at its end: with a checkpointer (Studio), the next turn would inherit them."""
NO_USAGE = {"input_tokens": 0, "output_tokens": 0}


async def load_window(state: State, runtime: Runtime) -> Json:
    """Fetch the thread's last turns, and begin the turn: every key of the agent's rounds starts empty."""
    started = perf_counter()
    live = await live_context(runtime)
    services, placed, accepted = live.services, live.placed, live.accepted
    scope, options = scope_of(state, stateless=live.is_stateless), options_of(state, services.memory.config)
    fresh = _fresh_turn(state, services, options, live.chat) | _brought(live, scope)
    fresh["choice"] = (live.choice or ModelChoice()).as_json()
    if accepted is None:
        # In Studio no service has stored the message yet; it is stored before the model is called.
        accepted = await services.memory.accept(user_message(state, fresh["turn_id"], services.memory.now()))
        fresh |= {"accepted": {**accepted.as_json(), "position": accepted.position}}
    before = accepted.position

    async def fetch() -> Json:
        if not options.enabled or scope.thread_id is None:
            return empty
        exchanges = await _window(live, scope, options, before or None)()
        stored = [message for exchange in exchanges for message in exchange.spoken]
        if placed is not None:
            messages = merged_history(placed.chat.history, placed.known, stored)
        else:
            messages = [message.as_json() for message in stored]
        return {"window": messages, "window_from": exchanges[0].user.position if exchanges else before}

    empty: Json = {"window": list(placed.chat.history) if placed is not None else [], "window_from": before}
    fetched = await _fetch("load_window", services, fetch, empty)
    return {**fresh, "started": started, **fetched}


async def search_memories(state: State, runtime: Runtime) -> Json:
    """Search past messages that the window does not show."""
    live = await live_context(runtime)
    services, placed, accepted = live.services, live.placed, live.accepted
    scope, options = scope_of(state, stateless=live.is_stateless), options_of(state, services.memory.config)

    async def fetch() -> Json:
        if not options.enabled:
            return empty
        before = (accepted.position or None) if accepted else None
        hidden = set(placed.known.turn_ids if placed is not None else ())
        if live.regenerated:
            hidden.add(live.regenerated)
        shown = Shown(_window(live, scope, options, before), _facts(live, scope, options), hidden)
        recalled = await services.memory.recall.search(scope, state["message"], options, shown=shown)
        hits = [hit.as_json() for hit in recalled.hits]
        trace, left_out = recalled.recorded()
        return {"hits": hits, "trace": trace, "left_out": left_out, "filtered": recalled.filter_json}

    empty: Json = {"hits": [], "trace": [], "left_out": None, "filtered": {}}
    return await _fetch("search_memories", services, fetch, empty)


async def load_facts(state: State, runtime: Runtime) -> Json:
    """Fetch the user's facts, and the summary of the messages that left the thread's window."""
    live = await live_context(runtime)
    services, accepted, regenerated = live.services, live.accepted, live.regenerated
    scope, options = scope_of(state, stateless=live.is_stateless), options_of(state, services.memory.config)
    empty: Json = {"facts": {}, "notes": [], "fact_ids": [], "own_notes": 0, "summary": None, "thread": None}

    async def fetch() -> Json:
        if not options.enabled:
            return empty
        recall, facts = services.memory.recall, _facts(live, scope, options)
        if scope.thread_id is None:
            known, record = await facts(), None
        else:
            known, record = await asyncio.gather(facts(), recall.thread(scope, agent_id=options.agent_id))
        if regenerated and accepted is not None and record is not None:
            # The answer that is being replaced may be in the summary.
            record = record.without(accepted.position)
        return {
            "facts": dict(known.facts),
            "notes": list(known.notes),
            "fact_ids": list(known.ids),
            "own_notes": known.own_notes,
            "summary": record.summary if record is not None else None,
            "thread": record.progress() if record is not None else None,
        }

    return await _fetch("load_facts", services, fetch, empty)


async def save_turn(state: State, runtime: Runtime) -> Json:
    """Store the reply with its pending update, then release the reply.

    A stateless reply, and calls of a client's tools, are released unstored.
    """
    if state["stateless"] or state["tool_calls"]:
        return {**INPUT_USED, **await hand_over(state, runtime)}
    live = await live_context(runtime)
    memory, options = live.services.memory, options_of(state, live.services.memory.config)
    message = live.accepted or accepted_message(state)
    if not message.position:
        # The message is stored only now, with its answer: a round that ends in a client's tool calls stores nothing.
        message = await memory.accept(message, fence=live.fence, agent_id=options.agent_id)
    timings = {**state["timings_ms"], "total": round((perf_counter() - state["started"]) * 1000, 3)}
    chat = live.chat
    history = history_fingerprint(chat.history) if live.placed is not None and not chat.appends else None
    result = turn_result(state, timings, history=history, response=with_rounds(chat))
    if (trace_id := memory.observer.trace_id()) is not None:
        result["trace_id"] = trace_id
    commit = memory.commit_anew if live.regenerates else memory.commit
    turn = await commit(
        message,
        fence=live.fence,
        reply=state["reply"] or "",
        result=result,
        update=_owed(state, memory, message) if options.enabled else not_owed("disabled"),
    )
    # The reply goes out only after the commit, so that an answered turn is never lost.
    live.listener.saved(turn)
    return {**INPUT_USED, "timings_ms": timings, "committed": message.turn_id, "update": _update_json(turn)}


async def update_memory(state: State, runtime: Runtime) -> Json:
    """Learn from the turn and index it, trying each step once. The updater retries the steps that an outage stopped."""
    if not state["committed"]:
        return {"update": state["update"]}
    memory = (await live_context(runtime)).services.memory
    update = await memory.tried(user_id=state["user_id"], turn_id=state["committed"])
    return {"update": update.as_json() if update is not None else state["update"]}


def _owed(state: State, memory: Memory, message: Message) -> Update:
    scope, progress = message.scope, state["thread"]
    return memory.owed(
        message,
        proposals=tuple(as_proposal(proposal) for proposal in state["proposals"]),
        record=ThreadRecord(scope.user_id, scope.thread, **progress) if progress is not None else None,
        window_from=state["window_from"] or message.position,
    )


def _window(live: LiveContext, scope: Scope, options: RecallOptions, before: int | None) -> ReadWindow:
    """Return what reads the turns before the position `before`, once for all fetches of a run."""
    return lambda: live.reads.window.get(lambda: live.services.memory.recall.window(scope, options, before=before))


def _facts(live: LiveContext, scope: Scope, options: RecallOptions) -> ReadFacts:
    """Return what reads the facts that the turn is given, once for all fetches of a run."""
    recall, agent_id = live.services.memory.recall, options.agent_id
    return lambda: live.reads.facts.get(
        lambda: recall.facts(scope, with_global=True, without=live.regenerated, agent_id=agent_id)
    )


def _brought(live: LiveContext, scope: Scope) -> Json:
    """Return the client's tool rounds behind its message, with the agent's own part in them."""
    rounds, proposals = live.rounds.restored(scope, live.chat.rounds)
    return {
        "exchange": rounds,
        "brought": len(rounds),
        "tool_results": _last_results(rounds),
        "proposals": [*live.chat.proposals, *proposals],
        "stateless": scope.thread_id is None,
    }


def _last_results(rounds: Sequence[Json]) -> list[Json]:
    """Return the results of the last round's tools."""
    results = list[Json]()
    for message in reversed(rounds):
        if message["role"] != "tool":
            names = {call["id"]: call["function"]["name"] for call in message.get("tool_calls", ())}
            return [{**result, "name": names.get(result["id"], "")} for result in reversed(results)]
        results.append({"id": message["tool_call_id"], "content": message["content"]})
    return []


def _fresh_turn(state: State, services: Services, options: RecallOptions, chat: ClientChat) -> Json:
    """Return the keys that a turn starts with, except the client's tool rounds.

    Nothing is learned from a stateless turn. Many servers refuse tools where the answer must be JSON: then the agent's
    own tools are not offered.
    """
    agent_takes_tools = services.agent is not None or services.memory.chat.calls_tools
    offers = options.enabled and services.offers_tools and agent_takes_tools and not chat.wants_json
    own = offered(OWN_TOOLS if state["thread_id"] else {SEARCH}, options.scope) if offers else []
    return {
        "turn_id": turn_id_of(state),
        "accepted": None,
        "tools": [*own, *chat.tools],
        "client_tools": chat.tool_names,
        "rounds": 0,
        "block": None,
        "found_others": False,
        "tool_calls": [],
        "tool_uses": [],
        "reply": None,
        "finish_reason": "stop",
        "model": "",
        "usage": NO_USAGE,
        "timings_ms": {"recall": 0.0, "agent": 0.0},
    }


async def _fetch(name: str, services: Services, fetch: Callable[[], Awaitable[Json]], empty: Json) -> Json:
    """Run one fetch within its time, and retry it once if the store failed. A failure costs its own part only."""
    fetched = await tried(name, fetch, seconds=services.memory.config.recall_timeout_seconds)
    return {**(empty if fetched is None else fetched), "degraded": {name: fetched is None}}


def _update_json(turn: Turn) -> Any:
    return turn.update.as_json() if turn.update is not None else None
