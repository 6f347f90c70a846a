import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.support.events import data_of, names, stream
from tests.service.support.running import PROJECT, Service, service
from tests.service.support.shapes import check_turn, fields, refused
from tests.service.support.stopped_start import stopped_start

AGENTS = """
import asyncio
import json

from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

READS = ("user_id", "thread_id", "message", "window", "hits", "facts", "summary", "tools")
ODD = {
    "none": None,
    "text": "reply",
    "list": ["reply"],
    "empty": {},
    "no words": {"reply": ""},
    "reply number": {"reply": 5},
    "reply list": {"reply": ["a"]},
    "calls text": {"tool_calls": "search"},
    "calls number": {"tool_calls": 5},
    "calls unnamed": {"tool_calls": [{"id": "1", "args": {}}]},
    "calls without dict": {"tool_calls": [{"id": "1", "name": "search_memory", "args": "query"}]},
    "calls no json": {"tool_calls": [{"id": "1", "name": "search_memory", "args": {"query": {1, 2}}}]},
    "usage text": {"reply": "Hi.", "usage": "many"},
    "usage list": {"reply": "Hi.", "usage": [1]},
    "usage words": {"reply": "Hi.", "usage": {"input_tokens": "many"}},
    "usage endless": {"reply": "Hi.", "usage": {"input_tokens": float("inf")}},
}


async def echo(state: dict) -> dict:
    message = state["message"]
    if message == "raise":
        raise RuntimeError("secret words of the user")
    if message == "sleep":
        await asyncio.sleep(60)
    if message in ODD:
        return ODD[message]
    if message == "surrogate":
        return {"reply": "half \\ud83d"}
    if message == "tools" and not state["tool_results"]:
        call = {"id": "1", "name": "search_memory", "args": {"query": "jazz"}}
        return {"tool_calls": [call], "usage": {"input_tokens": 3}}
    if message == "tools":
        return {"reply": state["tool_results"][0]["content"], "usage": {"input_tokens": 4}}
    if message == "read":
        return {"reply": json.dumps({name: state[name] for name in READS})}
    return {"reply": f"You said {message}", "model": "echo-1", "usage": {"input_tokens": 7, "output_tokens": 8}}


class Talk(TypedDict, total=False):
    message: str
    facts: dict
    reply: str
    model: str


async def answer(state: Talk) -> dict:
    return {"reply": f"Graph heard {state['message']}", "model": "graph-1"}


builder = StateGraph(Talk)
builder.add_node("answer", answer)
builder.add_edge(START, "answer")
builder.add_edge("answer", END)
graph = builder.compile()

number = 5


def blocking(state: dict) -> dict:
    return {"reply": "never"}
"""


def settings_for(folder: Path, agent: str) -> dict[str, str]:
    """Return a module folder of the user's own, on the path of the service."""
    modules = folder / "modules" / "my_agents"
    modules.mkdir(parents=True)
    (modules / "__init__.py").write_text("", encoding="utf-8")
    (modules / "nodes.py").write_text(AGENTS, encoding="utf-8")
    (modules / "broken.py").write_text("def echo(:\n", encoding="utf-8")
    (modules / "raising.py").write_text("raise RuntimeError('at import')\n", encoding="utf-8")
    path = os.pathsep.join([str(folder / "modules"), str(PROJECT)])
    return {"PYTHONPATH": path, "AGENT": agent}


@pytest.fixture(scope="module")
def custom(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Yield a service whose agent is an async function."""
    folder = tmp_path_factory.mktemp("custom")
    settings = settings_for(folder, "my_agents.nodes:echo")
    with service(folder, CHAT_TIMEOUT_SECONDS="2", **settings) as running:
        yield running


def test_its_reply_model_and_usage_are_the_turns(custom: Service, user: str) -> None:
    turn = check_turn(custom.turn("hello", user=user))
    assert (turn["reply"], turn["model"]) == ("You said hello", "echo-1")
    assert turn["usage"] == {"input_tokens": 7, "output_tokens": 8}


def test_it_reads_the_whole_turn(custom: Service, user: str) -> None:
    custom.turn("My name is Ada.", user=user, wait_for_memory=True)
    turn = custom.turn("read", user=user)
    assert turn["model"] == "my_agents.nodes:echo"
    read = json.loads(turn["reply"])
    assert (read["user_id"], read["thread_id"], read["message"]) == (user, "t1", "read")
    assert [(item["role"], item["content"]) for item in read["window"]] == [
        ("user", "My name is Ada."),
        ("assistant", "You said My name is Ada."),
    ]
    assert read["facts"] == {"name": "Ada"} == turn["memory"]["facts"]
    assert (read["hits"], read["summary"]) == ([], None)
    assert [tool["function"]["name"] for tool in read["tools"]] == ["search_memory", "remember_fact"]


def test_it_may_call_the_tools(custom: Service, user: str) -> None:
    custom.turn("I like jazz.", user=user, wait_for_memory=True)
    turn = custom.turn("tools", user=user)
    assert "I like jazz." in turn["reply"]
    assert turn["usage"] == {"input_tokens": 7, "output_tokens": 0}


def test_its_reply_is_streamed_as_one_token(custom: Service, user: str) -> None:
    events = stream(custom, "hello", user=user)
    assert names(events) == ["turn", "memory", "token", "message", "done"]
    assert data_of(events, "token") == {"text": "You said hello"}


def test_what_it_raises_is_502_without_its_words(custom: Service, user: str) -> None:
    body = {"user_id": user, "thread_id": "t1", "message": "raise", "turn_id": "raised"}
    error = refused(custom.http.post("/api/agent", json=body), 502, "model_unavailable")
    assert error["turn_id"] == "raised"
    assert "my_agents.nodes:echo raised RuntimeError" in error["message"]
    assert "secret" not in error["message"]
    assert custom.get("/api/turns/raised", user_id=user)["state"] == "unfinished"


def test_one_that_takes_too_long_is_504(custom: Service, user: str) -> None:
    body = {"user_id": user, "thread_id": "t1", "message": "sleep"}
    assert refused(custom.http.post("/api/agent", json=body), 504, "model_timeout")["turn_id"]


@pytest.mark.parametrize(
    "message",
    [
        *("none", "text", "list", "empty", "no words", "reply number", "reply list", "calls text", "calls number"),
        *("calls unnamed", "calls without dict", "calls no json", "usage text", "usage list", "usage words"),
        "usage endless",
    ],
)
def test_what_is_no_answer_is_502(custom: Service, user: str, message: str) -> None:
    body = {"user_id": user, "thread_id": "t1", "message": message}
    assert refused(custom.http.post("/api/agent", json=body), 502, "model_unavailable")["turn_id"]


def test_what_no_store_can_hold_is_mended(custom: Service, user: str) -> None:
    assert custom.turn("surrogate", user=user)["reply"] == "half ?"


def test_the_rest_of_the_contract_holds(custom: Service, user: str) -> None:
    body = {"user_id": user, "thread_id": "t1", "message": ""}
    assert fields(custom.http.post("/api/agent", json=body)) == ["message"]
    turn = custom.turn("My name is Ada.", user=user, wait_for_memory=True)
    assert turn["memory"]["update"]["changes"][0]["after"] == "Ada"


def test_a_compiled_graph_is_called_as_a_node(tmp_path: Path) -> None:
    with service(tmp_path, **settings_for(tmp_path, "my_agents.nodes:graph")) as running:
        turn = check_turn(running.turn("hello"))
        assert (turn["reply"], turn["model"]) == ("Graph heard hello", "graph-1")


@pytest.mark.parametrize(
    "agent",
    [
        *("my_agents.missing:echo", "nowhere:echo", "my_agents.nodes:missing", "my_agents.nodes:number"),
        *("my_agents.nodes:blocking", "my_agents.nodes", "my_agents/nodes.py:echo"),
        *("my_agents.broken:echo", "my_agents.raising:echo"),
    ],
)
def test_a_wrong_agent_stops_the_start_with_a_sentence(tmp_path: Path, agent: str) -> None:
    said = stopped_start(tmp_path, **settings_for(tmp_path, agent))
    assert "AGENT" in said
