"""`langgraph dev` with an OpenAI-compatible model: tools, embeddings, and a failure that the next run does not show."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.openai_server import FakeOpenAI, call
from tests.service.support.running import model_settings
from tests.studio.running import Studio, studio

pytestmark = pytest.mark.slow


@pytest.fixture
def model() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as fake:
        yield fake


@pytest.fixture
def running(tmp_path: Path, model: FakeOpenAI) -> Iterator[Studio]:
    with studio(tmp_path, **model_settings(model.url, EMBEDDING_MODEL="fake-embed")) as started:
        yield started


def test_tools_search_and_failures_from_run_to_run(running: Studio, model: FakeOpenAI) -> None:
    place = running.thread()
    model.script(
        call("remember_fact", key="drink", value="tea", statement="Drinks tea.", evidence="I drink tea"), "Noted."
    )
    first = running.run(place, "I drink tea every morning.")

    assert first.nodes[3:] == ["agent", "tools", "agent", "save_turn", "update_memory"]
    assert dict(first.updates)["tools"]["tool_results"][0]["name"] == "remember_fact"
    assert [(change["key"], change["after"]) for change in first.state["update"]["changes"]] == [("drink", "tea")]

    model.script(call("search_memory", query="tea"), "You drink tea.")
    second = running.run(place, "What do I drink?", memory={"window": 0})
    found = dict(second.updates)["tools"]["tool_results"]

    assert "every morning" in second.state["hits"][0]["content"]
    assert "every morning" in found[0]["content"]
    assert second.state["facts"] == {"drink": "tea"}
    assert second.state["proposals"] == []

    model.fail(500, times=-1, path="/embeddings")
    third = running.run(place, "Do I drink tea?", memory={"window": 0})

    assert third.state["degraded"] == ["search_memories"]
    assert third.state["hits"] == []
    assert third.state["update"]["status"] == "pending"

    model.recover()
    fourth = running.run(place, "And coffee?")
    cleared = {name: fourth.state[name] for name in ("degraded", "hits", "tool_calls", "tool_results", "exchange")}

    assert cleared == {"degraded": [], "hits": [], "tool_calls": [], "tool_results": [], "exchange": []}
    assert len(fourth.state["window"]) == 6
    assert len({run.state["turn_id"] for run in (first, second, third, fourth)}) == 4
    assert [word for word in ("BlockingError", "Blocking call", "Traceback") if word in running.log] == []


def test_a_run_whose_model_fails_leaves_nothing_to_the_next(running: Studio, model: FakeOpenAI) -> None:
    place = running.thread()
    model.fail(400, times=-1, path="/chat/completions")
    said = running.failure(place, {"user_id": "ada", "thread_id": "t1", "message": "Hello?"})
    model.recover()
    run = running.run(place, "Are you there?")

    assert "Model" in said
    assert run.state["reply"] == "All right."
    assert run.state["window"] == []
    assert "BlockingError" not in running.log


def test_a_message_is_stored_before_the_model_is_asked_or_refused(running: Studio, model: FakeOpenAI) -> None:
    place = running.thread()
    model.fail(400, times=-1, path="/chat/completions")
    running.failure(place, {"user_id": "ada", "thread_id": "t1", "message": "Hello?"})
    stored = running.http.get("/api/threads/t1/messages", params={"user_id": "ada"}).json()["items"]
    assert [item["content"] for item in stored] == ["Hello?"]

    model.recover()
    repeated = running.run(place, "Hello?")
    assert repeated.state["turn_id"] == stored[0]["turn_id"]
    assert repeated.state["reply"] == "All right."

    asked = len(model.chats)
    for wrong in ({"message": "a\x00b"}, {"turn_id": "a/b"}, {"user_id": "a/b"}, {"memory": {"windows": 1}}):
        assert "InvalidRequest" in running.failure(
            running.thread(), {"user_id": "ada", "thread_id": "t2", "message": "Hi.", **wrong}
        )
    assert len(model.chats) == asked
    assert running.http.get("/api/threads/t2/messages", params={"user_id": "ada"}).json()["items"] == []
