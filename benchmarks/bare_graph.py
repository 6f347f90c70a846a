"""The second reference: a bare LangGraph graph without memory, whose prompt holds the thread's history.

`MODEL_URL=… python -m benchmarks.bare_graph` prints its port. LangGraph keeps the history as its documentation has it:
messages in the state, a checkpointer, the whole thread in the prompt. With `WINDOW=…` the prompt holds the last so many
turns, which the endpoint keeps by hand, and nothing is checkpointed. Histories live in the process alone; nothing is
searched or learned.
"""

# LangGraph types its builder only in part.
# pyright: reportUnknownMemberType=false, reportMissingTypeStubs=false

import os
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from pydantic import SecretStr

from benchmarks.floor import Question, serve

_SYSTEM = SystemMessage("You are a helpful assistant. Answer the user's last message; those before it are its history.")
Replies = Callable[[Question], Awaitable[AnyMessage]]


def create_app(model_url: str, window: int | None) -> FastAPI:
    """Create the endpoint, at the service's own path; `window` turns stand in the prompt, None for the whole thread."""
    app = FastAPI()
    reply = _with_checkpoints(model_url) if window is None else _with_window(model_url, window)

    @app.post("/api/agent")
    async def answer(body: Question) -> dict[str, str]:  # pyright: ignore[reportUnusedFunction]  # the route
        return {"reply": str((await reply(body)).text)}

    return app


def _with_checkpoints(model_url: str) -> Replies:
    graph = _builder(model_url).compile(checkpointer=InMemorySaver())

    async def reply(asked: Question) -> AnyMessage:
        config = RunnableConfig(configurable={"thread_id": f"{asked.user_id}/{asked.thread_id}"})
        return await _last(graph, [HumanMessage(asked.message)], config)

    return reply


def _with_window(model_url: str, window: int) -> Replies:
    graph = _builder(model_url).compile()
    histories = defaultdict[tuple[str, str], list[AnyMessage]](list)

    async def reply(asked: Question) -> AnyMessage:
        history, said = histories[asked.user_id, asked.thread_id], HumanMessage(asked.message)
        last = await _last(graph, [*history, said])
        history[:] = [*history, said, last][-2 * window :]
        return last

    return reply


def _builder(model_url: str) -> StateGraph[MessagesState]:
    chat = ChatOpenAI(model="fake-chat", base_url=model_url, api_key=SecretStr("none"), stream_usage=True)

    async def agent(state: MessagesState) -> dict[str, list[AIMessage]]:
        return {"messages": [await chat.ainvoke([_SYSTEM, *state["messages"]])]}

    builder = StateGraph(MessagesState)
    builder.add_node("agent", agent)
    builder.add_edge(START, "agent")
    builder.add_edge("agent", END)
    return builder


async def _last(
    graph: "CompiledStateGraph[MessagesState, None, Any, Any]",
    given: list[AnyMessage],
    config: RunnableConfig | None = None,
) -> AnyMessage:
    answered: dict[str, list[AnyMessage]] = await graph.ainvoke(MessagesState(messages=given), config)
    return answered["messages"][-1]


def main() -> None:
    """Serve on a free loopback port until killed."""
    window = os.environ.get("WINDOW")
    serve(create_app(os.environ["MODEL_URL"], None if window is None else int(window)))


if __name__ == "__main__":
    main()
