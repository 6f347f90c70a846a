"""Agents of a user's own that say something while they work: async generators, and compiled graphs."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from tests.service.support.events import Event, data_of, names, stream
from tests.service.support.running import Service, service
from tests.service.support.shapes import check_turn, refused

GENERATORS = """
import asyncio


async def talk(state):
    message = state["message"]
    if message == "look" and not state["tool_results"]:
        yield {"token": "Let me look."}
        yield {"reply": "Let me look.", "tool_calls": [{"id": "1", "name": "search_memory", "args": {"query": "x"}}]}
        return
    if message == "weather":
        yield {"tool_call": {"id": "w", "name": "weather", "args": {"city": "Oslo"}}}
        await asyncio.sleep(0.02)
        yield {"tool_result": {"id": "w", "name": "weather", "content": "Snow.\\x00"}}
    if message == "slow":
        yield {"token": "First."}
        await asyncio.sleep(60)
    if message == "endless":
        while True:
            yield {"token": ""}
    if message == "flood":
        while True:
            yield {"token": "x" * 1_000}
    if message == "stubborn":
        while True:
            try:
                yield {"token": ""}
                await asyncio.sleep(0.01)
            except BaseException:
                pass
    for word in ("Hello", " \\ud83dthere", "."):
        yield {"token": word}
    if message == "raise":
        raise RuntimeError("secret words of the user")
    if message == "number":
        yield 5
    if message == "odd token":
        yield {"token": 5}
    if message == "odd call":
        yield {"tool_call": {"id": "1"}}
    if message == "no end":
        return
    yield {"model": "talker", "usage": {"input_tokens": 7, "output_tokens": 3}}
    if message == "more":
        yield {"token": "more"}
"""
GRAPHS = """
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

USAGE = {"input_tokens": 4, "output_tokens": 2, "total_tokens": 6}


class Scripted(GenericFakeChatModel):
    def _generate(self, messages, *args, **kwargs):
        result = super()._generate(messages, *args, **kwargs)
        result.generations[0].message.usage_metadata = USAGE
        return result


@tool
def weather(city: str) -> str:
    "The weather of a city."
    if city == "Atlantis":
        raise ValueError("no such city")
    return f"Snow in {city}."


def call(city):
    return {"id": f"call-{city}", "name": "weather", "args": {"city": city}}


async def model(state):
    first = state["messages"][0].text
    asked = state["messages"][-1]
    if isinstance(asked, ToolMessage):
        text = f"It is {asked.text}"
    elif asked.text == "prompt":
        said = "|".join(f"{one.type}:{one.text}" for one in state["messages"])
        return {"messages": [AIMessage(said, usage_metadata=USAGE)]}
    elif asked.text == "raise":
        raise RuntimeError("secret words of the user")
    elif asked.text in ("Oslo", "Atlantis"):
        return {"messages": [AIMessage("Let me look.", tool_calls=[call(asked.text)])]}
    elif asked.text == "nothing":
        return {}
    else:
        text = f"You said {asked.text}"
    return {"messages": [await Scripted(messages=iter([AIMessage(text)])).ainvoke(state["messages"])]}


def calls(state):
    return "tools" if state["messages"][-1].tool_calls else END


inner = StateGraph(MessagesState)
inner.add_node("model", model)
inner.add_node("tools", ToolNode([weather], handle_tool_errors=True))
inner.add_edge(START, "model")
inner.add_conditional_edges("model", calls, ["tools", END])
inner.add_edge("tools", "model")
plain = inner.compile()

outer = StateGraph(MessagesState)
outer.add_node("talk", plain)
outer.add_edge(START, "talk")
outer.add_edge("talk", END)
nested = outer.compile()
"""


def running(folder: Path, source: str, agent: str, **settings: str) -> Any:
    (folder / "own_agents.py").write_text(source, encoding="utf-8")
    return service(folder, AGENT=f"own_agents:{agent}", CHAT_TIMEOUT_SECONDS="1", **settings)


@pytest.fixture(scope="module")
def talker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("talker"), GENERATORS, "talk", MAX_REPLY_CHARACTERS="20000") as started:
        yield started


@pytest.fixture(scope="module", params=["plain", "nested"])
def graph(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("graph"), GRAPHS, str(request.param)) as started:
        yield started


def tokens(events: list[Event]) -> list[str]:
    return [data["text"] for name, data in events if name == "token"]


def test_a_generator_is_heard_as_it_speaks(talker: Service, user: str) -> None:
    events = stream(talker, "Hi.", user=user)
    assert tokens(events) == ["Hello", " ?there", "."]
    turn = check_turn(data_of(events, "message"))
    assert (turn["reply"], turn["model"]) == ("Hello ?there.", "talker")
    assert turn["usage"] == {"input_tokens": 7, "output_tokens": 3}
    assert talker.turn("Hi.", user=user)["reply"] == "Hello ?there."


def test_a_generators_tools_are_events(talker: Service, user: str) -> None:
    events = stream(talker, "weather", user=user)
    assert names(events)[:5] == ["turn", "memory", "tool_call", "tool_result", "token"]
    assert data_of(events, "tool_call") == {"id": "w", "name": "weather", "args": {"city": "Oslo"}}
    assert data_of(events, "tool_result") == {"id": "w", "name": "weather", "content": "Snow.?"}
    (use,) = check_turn(data_of(events, "message"))["tools"]
    assert use["ms"] > 10


def test_a_generator_may_call_the_memorys_tools_and_goes_on(talker: Service, user: str) -> None:
    events = stream(talker, "look", user=user)
    said = "".join(tokens(events))
    assert said == data_of(events, "message")["reply"] == "Let me look.\n\nHello ?there."
    assert names(events).count("tool_call") == names(events).count("tool_result") == 1


@pytest.mark.parametrize("message", ["raise", "number", "odd token", "odd call", "no end", "more", "flood"])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_generator_that_breaks_leaves_a_turn_that_can_be_repeated(
    talker: Service, user: str, message: str, streamed: bool
) -> None:
    if streamed:
        events = stream(talker, message, user=user, turn_id="broke")
        assert names(events)[-1] == "error"
        error = data_of(events, "error")["error"]
    else:
        body = {"user_id": user, "thread_id": "t1", "message": message, "turn_id": "broke"}
        error = refused(talker.http.post("/api/agent", json=body), 502, "model_unavailable")
    assert (error["code"], error["turn_id"]) == ("model_unavailable", "broke")
    assert "secret" not in error["message"]
    assert talker.get("/api/turns/broke", user_id=user)["state"] == "unfinished"


@pytest.mark.parametrize("message", ["slow", "endless", "stubborn"])
def test_a_generator_that_never_ends_is_504_and_holds_up_nobody(talker: Service, user: str, message: str) -> None:
    began = time.monotonic()
    events = stream(talker, message, user=user, turn_id="late")
    assert data_of(events, "error")["error"]["code"] == "model_timeout"
    assert time.monotonic() - began < 10
    assert talker.get("/api/turns/late", user_id=user)["state"] == "unfinished"
    assert talker.turn("Hi.", user=user, thread="t2")["reply"]


def test_a_graph_of_messages_reads_the_prompt_and_counts_its_tokens(graph: Service, user: str) -> None:
    graph.turn("My name is Ada.", user=user, wait_for_memory=True)
    turn = check_turn(graph.turn("prompt", user=user))
    system, *rest = turn["reply"].split("|")
    assert system.startswith("system:You are a helpful assistant")
    assert "Ada" in system
    assert rest == ["human:My name is Ada.", "ai:You said My name is Ada.", "human:prompt"]
    assert turn["usage"] == {"input_tokens": 4, "output_tokens": 2}
    explained = graph.get(f"/api/turns/{turn['turn_id']}", user_id=user, explain="true")["explained"]
    assert explained["block"]["entries"]


def test_a_graphs_model_is_heard_as_it_speaks(graph: Service, user: str) -> None:
    events = stream(graph, "one two three", user=user)
    assert len(tokens(events)) > 3
    turn = check_turn(data_of(events, "message"))
    assert "".join(tokens(events)) == turn["reply"] == "You said one two three"


def test_a_graphs_tools_are_events(graph: Service, user: str) -> None:
    events = stream(graph, "Oslo", user=user)
    assert data_of(events, "tool_call") == {"id": "call-Oslo", "name": "weather", "args": {"city": "Oslo"}}
    assert data_of(events, "tool_result") == {"id": "call-Oslo", "name": "weather", "content": "Snow in Oslo."}
    turn = check_turn(data_of(events, "message"))
    assert "".join(tokens(events)) == turn["reply"] == "Let me look.\n\nIt is Snow in Oslo."
    (use,) = turn["tools"]
    assert (use["content"], use["error"]) == ("Snow in Oslo.", None)
    (failed,) = graph.turn("Atlantis", user=user, thread="t2")["tools"]
    assert failed["error"] == "The tool failed."


@pytest.mark.parametrize("message", ["raise", "nothing"])
def test_a_graph_that_breaks_leaves_a_turn_that_can_be_repeated(graph: Service, user: str, message: str) -> None:
    events = stream(graph, message, user=user, turn_id="broke")
    error = data_of(events, "error")["error"]
    assert (error["code"], error["turn_id"]) == ("model_unavailable", "broke")
    assert "secret" not in json.dumps(error)
    assert graph.get("/api/turns/broke", user_id=user)["state"] == "unfinished"


def test_openais_doors_stream_it_too(graph: Service, user: str) -> None:
    with openai.OpenAI(base_url=f"{graph.url}/v1", api_key="unused", max_retries=0) as client:
        chunks = client.chat.completions.create(
            model="offline",
            messages=[{"role": "user", "content": "one two three"}],
            user=user,
            stream=True,
            stream_options={"include_usage": True},
        )
        pieces = [chunk for chunk in chunks if chunk.choices or chunk.usage]
        said = [chunk.choices[0].delta.content for chunk in pieces if chunk.choices and chunk.choices[0].delta.content]
        assert (len(said) > 3, "".join(said)) == (True, "You said one two three")
        assert pieces[-1].usage is not None
        deltas = [
            event.delta
            for event in client.responses.create(input="one two three", user=user, stream=True)
            if event.type == "response.output_text.delta"
        ]
        assert (len(deltas) > 3, "".join(deltas)) == (True, "You said one two three")


def test_who_leaves_amid_the_stream_loses_nothing(talker: Service, user: str) -> None:
    body = {"user_id": user, "thread_id": "t1", "message": "weather", "turn_id": "left", "stream": True}
    with httpx.stream("POST", f"{talker.url}/api/agent", json=body) as answer:
        next(answer.iter_lines())
    assert talker.turn("weather", user=user, turn_id="left")["reply"] == "Hello ?there."
