"""Runs the graph of a turn: straight along its edges, or in LangGraph's loop where something may watch the run.

LangGraph's loop costs a turn 2 ms of CPU, and its import 36 MB: callbacks, checkpoints and streams of each step, which
only Studio, a tracer or an agent of one's own make use of.
"""

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, cast

from recollect.graph.context import Context
from recollect.graph.drawing import CHOICES, EARLY, EDGES, FETCHES, JOIN, NODES
from recollect.graph.resources import Services
from recollect.graph.state import MERGED, Json, State, TurnInput
from recollect.memory.background.unread import may_go_unread
from recollect.memory.values.frozen import frozen

if TYPE_CHECKING:
    from recollect.graph.workflow import Graph


class Runs:
    """Runs the graph for the service. LangGraph is imported only where a run needs it.

    It is needed for every run where the services have an agent of one's own, which may use LangGraph's context, and
    where LangSmith traces this process; and for a run that a handler of LangChain's watches.
    """

    def __init__(self, services: Services) -> None:
        self._needs_langgraph = services.agent is not None or services.is_traced
        self.loading = _begin_loading() if self._needs_langgraph else None
        """The import beside the start: the service answers meanwhile, and the first turn waits for it."""

    def begin(self, given: TurnInput, context: Context) -> "Begun":
        """Begin those fetches of a new turn that need not know where it is stored, beside its acceptance.

        What LangGraph runs begins with the run.
        """
        if self._needs_langgraph or _is_watched():
            return Begun()
        state, runtime = _first_state(given), _Runtime(context)
        return Begun({name: may_go_unread(_node(name, state, runtime)) for name in EARLY})

    async def run(self, given: TurnInput, context: Context, begun: "Begun | None" = None) -> None:
        """Run the graph to its end; `begun` are the fetches that run already."""
        if not (self._needs_langgraph or _is_watched()):
            await walk(given, context, begun)
            return
        self.loading = self.loading or _begin_loading()
        graph = await asyncio.shield(self.loading)  # a turn that is aborted does not abort the import
        # LangGraph types ainvoke only in part. Nobody reads the final state, which it would copy after every step.
        await graph.ainvoke(given, context=context, output_keys="committed")  # pyright: ignore[reportUnknownMemberType]


@frozen
class Begun:
    """Holds the tasks of fetches that began before their run, by the names of their nodes."""

    tasks: "Mapping[str, asyncio.Future[Json]]" = field(default_factory=dict[str, "asyncio.Future[Json]"])

    def cancel(self) -> None:
        """Cancel them, because there will be no run."""
        for task in self.tasks.values():
            task.cancel()


async def walk(given: TurnInput, context: Context, begun: Begun | None = None) -> State:
    """Run the graph without LangGraph, and return the final state.

    A node sees what the nodes before it have written. The first error ends the run, and the other fetches with it.
    """
    runtime = _Runtime(context)
    state = _first_state(given)
    for written in await _side_by_side(state, runtime, begun or Begun()):
        state = _after(state, written)
    name: str | None = JOIN
    while name is not None:
        state = _after(state, await NODES[name](cast("State", state), runtime))
        choice = CHOICES.get(name)
        name = EDGES.get(name) if choice is None else await choice.path(cast("State", state))
    return cast("State", state)


@frozen
class _Runtime:
    """What the nodes are given in place of LangGraph's Runtime."""

    context: Context


def _first_state(given: TurnInput) -> Json:
    return {**given, **{name: [] for name in MERGED}}


def _node(name: str, state: Json, runtime: _Runtime) -> "asyncio.Future[Json]":
    return asyncio.ensure_future(NODES[name](cast("State", state), runtime))


async def _side_by_side(state: Json, runtime: _Runtime, begun: Begun) -> list[Json]:
    fetches = [begun.tasks.get(name) or _node(name, state, runtime) for name in FETCHES]
    try:
        return await asyncio.gather(*fetches)
    except BaseException:
        for fetch in fetches:
            fetch.cancel()
        await asyncio.gather(*fetches, return_exceptions=True)
        raise


def _after(state: Json, written: Mapping[str, Any]) -> Json:
    """Return the state with what a node has written."""
    merged = {name: merge(state[name], written[name]) for name, merge in MERGED.items() if name in written}
    return {**state, **written, **merged}


def _is_watched() -> bool:
    """Tell whether a handler of LangChain's watches this run; without LangChain's import there is none."""
    if "langchain_core" not in sys.modules:
        return False
    from langchain_core.callbacks import AsyncCallbackManager
    from langchain_core.runnables import ensure_config

    return bool(AsyncCallbackManager.configure(ensure_config().get("callbacks")).handlers)


def _begin_loading() -> "asyncio.Task[Graph]":
    return asyncio.create_task(asyncio.to_thread(_load), name="graph-load")


def _load() -> "Graph":
    """Import LangGraph, build the graph and return it; this takes a thread half a second."""
    from recollect.graph.workflow import graph

    return graph
