"""The state machine in LangGraph: three fetches side by side, the agent and its tools, then saving and learning."""

# LangGraph types its builder only in part.
# pyright: reportUnknownMemberType=false, reportMissingTypeStubs=false

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from recollect.graph.context import Context
from recollect.graph.drawing import CHOICES, EDGES, FETCHES, JOIN, LAST, NODES
from recollect.graph.state import State, TurnInput

Graph = CompiledStateGraph[State, Context, TurnInput, State]


def build() -> "StateGraph[State, Context, TurnInput, State]":
    """Build the graph. Separate edges of equal length join the fetches (a list of them may never fire)."""
    builder = StateGraph(State, context_schema=Context, input_schema=TurnInput)
    for name, node in NODES.items():
        builder.add_node(name, node)
    for fetch in FETCHES:
        builder.add_edge(START, fetch)
        builder.add_edge(fetch, JOIN)
    for name, choice in CHOICES.items():
        builder.add_conditional_edges(name, choice.path, [*choice.followers])
    for name, follower in EDGES.items():
        builder.add_edge(name, follower)
    builder.add_edge(LAST, END)
    return builder


builder = build()
graph = builder.compile(name="recollect")
"""Compiled without a checkpointer: the conversation is in the store, and Studio brings its own."""
