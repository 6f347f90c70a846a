"""The state machine: three fetches side by side, the agent and its tools, then saving and learning."""

# LangGraph types its builder only in part.
# pyright: reportUnknownMemberType=false, reportMissingTypeStubs=false

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from recollect.graph.agent import agent, next_node
from recollect.graph.context import Context
from recollect.graph.memory_nodes import load_facts, load_window, save_turn, search_memories, update_memory
from recollect.graph.observed import observed
from recollect.graph.state import State, TurnInput
from recollect.graph.tools import after_tools, tools

Graph = CompiledStateGraph[State, Context, TurnInput, State]


def build() -> "StateGraph[State, Context, TurnInput, State]":
    """Build the graph. Separate edges of equal length join the fetches (a list of them may never fire)."""
    builder = StateGraph(State, context_schema=Context, input_schema=TurnInput)
    for fetch in (load_window, search_memories, load_facts):
        builder.add_node(fetch.__name__, observed(fetch))
        builder.add_edge(START, fetch.__name__)
        builder.add_edge(fetch.__name__, "agent")
    builder.add_node("agent", observed(agent))
    builder.add_node("tools", observed(tools))
    builder.add_node("save_turn", observed(save_turn))
    builder.add_node("update_memory", observed(update_memory))
    builder.add_conditional_edges("agent", next_node, ["tools", "save_turn"])
    builder.add_conditional_edges("tools", after_tools, ["agent", "save_turn"])
    builder.add_edge("save_turn", "update_memory")
    builder.add_edge("update_memory", END)
    return builder


builder = build()
graph = builder.compile(name="recollect")
"""Compiled without a checkpointer: the conversation is in the store, and Studio brings its own."""
