"""The graph's nodes, each a stage that the memory's observer hears of."""

from collections.abc import Awaitable
from typing import Protocol

from langgraph.runtime import Runtime

from graph.context import Context, services_of
from graph.state import Json, State


class Node(Protocol):
    """A node's function, named as the node is."""

    __name__: str

    def __call__(self, state: State, runtime: Runtime[Context]) -> Awaitable[Json]:
        """What the node writes."""
        ...


def observed(node: Node) -> Node:
    """The node, and how long it takes, under its own name."""
    name = node.__name__

    async def run(state: State, runtime: Runtime[Context]) -> Json:
        services = await services_of(runtime)
        with services.memory.observer.stage(name):
            return await node(state, runtime)

    run.__name__, run.__doc__ = name, node.__doc__
    return run
