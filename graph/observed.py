"""Reports each node of the graph as a stage to the memory's observer."""

from collections.abc import Awaitable
from typing import Protocol

from recollect.graph.context import Runtime, live_context
from recollect.graph.state import Json, State


class Node(Protocol):
    """A node's function, with the node's name."""

    __name__: str

    def __call__(self, state: State, runtime: Runtime) -> Awaitable[Json]:
        """Return the keys of the state that the node writes."""
        ...


def observed(node: Node) -> Node:
    """Wrap `node` so that the observer times it under its own name."""
    name = node.__name__

    async def run(state: State, runtime: Runtime) -> Json:
        live = await live_context(runtime)
        with live.services.memory.observer.stage(name):
            return await node(state, runtime)

    run.__name__, run.__doc__ = name, node.__doc__
    return run
