"""The graph as it is drawn: its nodes and their followers. LangGraph's graph and the direct walk are made of it."""

from collections.abc import Awaitable, Callable, Mapping

from recollect.graph.agent import agent, next_node
from recollect.graph.memory_nodes import load_facts, load_window, save_turn, search_memories, update_memory
from recollect.graph.observed import Node, observed
from recollect.graph.state import State
from recollect.graph.tools import after_tools, tools
from recollect.memory.values.frozen import frozen


@frozen
class Choice:
    """A node's followers, one of which `path` names by the state that the node leaves."""

    path: Callable[[State], Awaitable[str]]
    followers: tuple[str, ...]


FETCHES = ("load_window", "search_memories", "load_facts")
"""The first nodes, which run side by side."""
EARLY = ("search_memories", "load_facts")
"""The fetches of a new turn that need not know its message's position."""
JOIN = "agent"
"""The node that waits for all fetches."""
NODES: Mapping[str, Node] = {
    node.__name__: observed(node)
    for node in (load_window, search_memories, load_facts, agent, tools, save_turn, update_memory)
}
CHOICES: Mapping[str, Choice] = {
    "agent": Choice(next_node, ("tools", "save_turn")),
    "tools": Choice(after_tools, ("agent", "save_turn")),
}
EDGES: Mapping[str, str] = {"save_turn": "update_memory"}
LAST = "update_memory"
