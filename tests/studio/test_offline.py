"""`langgraph dev` as it starts out of the box: no network, no key, no licence."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.studio.running import PROJECT, Studio, studio

FETCHES = {"load_window", "search_memories", "load_facts"}
PAGE = "https://smith.langchain.com"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    with studio(tmp_path_factory.mktemp("studio")) as started:
        yield started


def texts(messages: list[dict[str, Any]]) -> list[str]:
    return [message["content"] for message in messages]


def test_the_picture_shows_every_node(running: Studio) -> None:
    shown = running.client.assistants.get_graph("recollect")
    nodes = {node["id"] for node in shown["nodes"]}
    edges = {(edge["source"], edge["target"]) for edge in shown["edges"]}

    assert nodes == {*FETCHES, "agent", "tools", "save_turn", "update_memory", "__start__", "__end__"}
    assert {("__start__", fetch) for fetch in FETCHES} | {(fetch, "agent") for fetch in FETCHES} <= edges
    assert {("agent", "tools"), ("tools", "agent"), ("agent", "save_turn"), ("save_turn", "update_memory")} <= edges


def test_its_form_has_plain_fields_and_no_context(running: Studio) -> None:
    (assistant,) = running.client.assistants.search()
    schemas = running.http.get(f"/assistants/{assistant['assistant_id']}/schemas").json()
    asked, context = schemas["input_schema"], schemas["context_schema"]

    assert asked["required"] == ["user_id", "thread_id", "message"]
    assert {name: field["type"] for name, field in asked["properties"].items()} == {
        "user_id": "string",
        "thread_id": "string",
        "message": "string",
        "turn_id": "string",
        "metadata": "object",
        "memory": "object",
    }
    assert context["type"] == "object"
    assert not context.get("required")
    assert not context["properties"]


def test_a_run_shows_each_node_and_what_it_did_to_memory(running: Studio) -> None:
    run = running.run(running.thread(), "Hi, I'm Ada.", user_id="one")
    saved = dict(run.updates)["save_turn"]

    assert set(run.nodes[:3]) == FETCHES
    assert run.nodes[3:] == ["agent", "save_turn", "update_memory"]
    assert dict(run.updates)["agent"]["reply"] == run.state["reply"]
    assert saved["committed"] == run.state["turn_id"]
    assert saved["update"]["status"] in {"pending", "done"}
    assert {name: run.state[name] for name in ("window", "hits", "facts", "degraded", "model")} == {
        "window": [],
        "hits": [],
        "facts": {},
        "degraded": [],
        "model": "offline",
    }
    assert "Ada" in run.state["reply"]
    assert run.state["update"]["status"] == "done"
    assert [(change["key"], change["after"]) for change in run.state["update"]["changes"]] == [("name", "Ada")]


def test_a_second_run_is_a_new_turn_that_takes_nothing_over(running: Studio) -> None:
    place = running.thread()
    first = running.run(
        place, "Hi, I'm Ada.", user_id="two", turn_id="mine", metadata={"a": 1}, memory={"enabled": False}
    )
    second = running.run(place, "What is my name?", user_id="two")

    assert first.state["turn_id"] == "mine"
    assert first.state["update"]["reason"] == "disabled"
    assert second.state["turn_id"] not in {None, "", "mine"}
    assert texts(second.state["window"]) == ["Hi, I'm Ada.", first.state["reply"]]
    assert second.state["reply"] != first.state["reply"]
    assert second.state["update"]["status"] == "done"
    items = running.http.get("/api/threads/t1/messages", params={"user_id": "two"}).json()["items"]
    assert [item["metadata"] for item in items if item["role"] == "user"] == [{"a": 1}, {}]


def test_an_input_without_a_user_says_so(running: Studio) -> None:
    assert "InvalidRequest" in running.failure(running.thread(), {"message": "Hi"})  # LangGraph keeps the text back
    assert "The input needs user_id, thread_id." in running.log


def test_the_services_own_routes_share_the_memory(running: Studio) -> None:
    run = running.run(running.thread(), "Hi, I'm Ada.", user_id="three")
    body = {"user_id": "three", "thread_id": "t1", "message": "What is my name?", "wait_for_memory": True}
    answer = running.http.post("/api/agent", json=body).json()
    turn = running.http.get(f"/api/turns/{run.state['turn_id']}", params={"user_id": "three"}).json()
    items = running.http.get("/api/threads/t1/messages", params={"user_id": "three"}).json()["items"]
    later = running.run(running.thread(), "What is my name?", user_id="three", thread_id="t2")

    assert running.http.get("/health").json()["backends"] == {"documents": "sqlite", "index": "qdrant-edge"}
    assert running.http.get("/health/ready").json() == {"status": "ready", "down": []}
    assert answer["memory"]["window"] == 1
    assert answer["memory"]["facts"] == {"name": "Ada"}
    assert "Ada" in answer["reply"]
    assert (turn["reply"], turn["memory"]["update"]["status"]) == (run.state["reply"], "done")
    assert texts(items) == ["Hi, I'm Ada.", run.state["reply"], "What is my name?", answer["reply"]]
    assert later.state["facts"] == {"name": "Ada"}


def test_studios_page_reaches_langgraphs_routes_and_nothing_else(running: Studio) -> None:
    def search(origin: str) -> int:
        return running.http.post("/assistants/search", json={}, headers={"Origin": origin}).status_code

    asked = {"Origin": PAGE, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    preflight = running.http.options("/threads", headers=asked)
    refused = running.http.get("/api/threads/t1/messages?user_id=ada", headers={"Origin": PAGE})
    rebound = running.http.post("/assistants/search", json={}, headers={"Host": "evil.example"})

    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-origin"] in {"*", PAGE}
    assert search(PAGE) == 200
    foreign = ["http://localhost:3000", "http://127.0.0.1", "https://evil.example", f"{PAGE}:8443", "null"]
    assert {search(origin) for origin in (*foreign, PAGE.replace("https", "http"))} == {403}
    for path in ("/assistants/search", "/store/namespaces"):
        hidden = running.http.post(path, json={}, headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"})
        assert (hidden.status_code, hidden.json()["error"]["code"]) == (403, "foreign_origin")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "foreign_origin")
    assert (rebound.status_code, rebound.json()["error"]["code"]) == (421, "foreign_host")
    host = running.http.post("/assistants/search", json={}, headers={"Host": "smith.langchain.com"})
    assert (host.status_code, host.json()["error"]["code"]) == (421, "foreign_host")


def test_make_studio_starts_just_this() -> None:
    makefile = (PROJECT / "Makefile").read_text(encoding="utf-8")
    recipe = re.search(r"^studio:.*\n\t(.*)$", makefile, re.MULTILINE)

    assert recipe is not None
    assert recipe[1] == "@exec .venv/bin/langgraph dev $(ARGS)"


def test_nothing_blocked_the_loop(running: Studio) -> None:
    # Last in the file: the log of all that came before, its end included.
    running.stop()
    assert "Entered lifespan context" in running.log
    wrong = ("BlockingError", "Blocking call", "Application shutdown failed")
    assert [word for word in wrong if word in running.log] == []
