"""The second reference: a bare LangGraph graph without memory, whose prompt holds the thread's last turns.

`MODEL_URL=… WINDOW=… python -m benchmarks.bare_graph` prints its port. Histories live in the process alone; nothing is
stored, searched or learned.
"""

# LangGraph types its builder only in part.
# pyright: reportUnknownMemberType=false, reportMissingTypeStubs=false

import os
from collections import defaultdict

from fastapi import FastAPI
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from pydantic import SecretStr

from benchmarks.floor import Question, serve

_SYSTEM = SystemMessage("You are a helpful assistant. Answer the user's last message; those before it are its history.")


def create_app(model_url: str, window: int) -> FastAPI:
    """Create the endpoint, at the service's own path; `window` turns stand in the prompt."""
    app = FastAPI()
    chat = ChatOpenAI(model="fake-chat", base_url=model_url, api_key=SecretStr("none"), stream_usage=True)
    histories = defaultdict[tuple[str, str], list[AnyMessage]](list)

    async def agent(state: MessagesState) -> dict[str, list[AIMessage]]:
        return {"messages": [await chat.ainvoke([_SYSTEM, *state["messages"]])]}

    builder = StateGraph(MessagesState)
    builder.add_node("agent", agent)
    builder.add_edge(START, "agent")
    builder.add_edge("agent", END)
    graph = builder.compile()

    @app.post("/api/agent")
    async def answer(body: Question) -> dict[str, str]:  # pyright: ignore[reportUnusedFunction]  # the route
        thread = body.user_id, body.thread_id
        given = MessagesState(messages=[*histories[thread], HumanMessage(body.message)])
        messages: list[AnyMessage] = (await graph.ainvoke(given))["messages"]
        histories[thread] = messages[-2 * window :]
        return {"reply": str(messages[-1].text)}

    return app


def main() -> None:
    """Serve on a free loopback port until killed."""
    serve(create_app(os.environ["MODEL_URL"], int(os.environ["WINDOW"])))


if __name__ == "__main__":
    main()
