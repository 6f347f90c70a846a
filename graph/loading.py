"""Imports the graph beside the start: LangGraph takes as long to import as all else together."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.graph.workflow import Graph


def load_graph() -> "Graph":
    """Import LangGraph, build the graph and return it; an event loop calls it in a thread, for half a second."""
    from recollect.graph.workflow import graph

    return graph
