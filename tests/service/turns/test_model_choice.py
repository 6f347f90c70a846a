"""Requests choose the agent's model for one turn: its name, further instructions, parameters."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fakes.openai_server import FakeOpenAI, call
from tests.service.support.events import data_of, names, stream
from tests.service.support.lessons import chats_of
from tests.service.support.running import Service, model_settings, service
from tests.service.support.shapes import check_turn, fields, refused

CHOICE: dict[str, Any] = {
    "model": "other",
    "instructions": "Answer in verse.",
    "parameters": {"temperature": 0.5, "max_tokens": 70, "stop": ["END"], "seed": None},
}


NEVER = (
    *("messages", "tools", "tool_choice", "stream", "model", "base_url", "api_key"),
    *("extra_headers", "extra_body", "n", "user"),
)
"""Parameters that would change more than how the model speaks."""


@pytest.fixture(scope="module")
def choosing_model() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as fake:
        yield fake


@pytest.fixture(scope="module")
def choosing(tmp_path_factory: pytest.TempPathFactory, choosing_model: FakeOpenAI) -> Iterator[Service]:
    settings = model_settings(choosing_model.url, ALLOW_MODEL_CHOICE="true")
    choosing_model.models = ("fake-chat", "other")
    with service(tmp_path_factory.mktemp("choosing"), **settings) as running:
        yield running


@pytest.fixture
def chosen_model(choosing_model: FakeOpenAI) -> Iterator[FakeOpenAI]:
    choosing_model.requests.clear()
    yield choosing_model
    choosing_model.recover()


def post(running: Service, user: str, **more: Any) -> httpx.Response:
    return running.http.post("/api/agent", json={"user_id": user, "thread_id": "t1", "message": "Hello.", **more})


@pytest.mark.parametrize("name", CHOICE)
def test_without_leave_a_choice_is_refused_and_nothing_is_stored(offline: Service, user: str, name: str) -> None:
    error = refused(post(offline, user, turn_id="one", **{name: CHOICE[name]}), 422, "invalid_request")
    assert error["details"] == [{"field": name, "problem": "is taken only where ALLOW_MODEL_CHOICE is true"}]
    assert fields(post(offline, user, stream=True, **{name: CHOICE[name]})) == [name]
    assert offline.get("/api/threads/t1/messages", user_id=user)["items"] == []
    nothing = dict.fromkeys(CHOICE)
    assert post(offline, user, **nothing).status_code == 200


@pytest.mark.parametrize("streamed", [False, True])
def test_a_choice_reaches_the_model_and_no_other_call(
    choosing: Service, chosen_model: FakeOpenAI, user: str, streamed: bool
) -> None:
    chosen_model.script(call("search_memory", query="verse"), "A verse.")
    if streamed:
        turn = data_of(stream(choosing, "Sing.", user=user, **CHOICE), "message")
    else:
        turn = choosing.turn("Sing.", user=user, wait_for_memory=True, **CHOICE)
    assert (check_turn(turn)["reply"], turn["model"]) == ("A verse.", "other")
    assert choosing.get(f"/api/turns/{turn['turn_id']}", user_id=user)["model"] == "other"
    rounds = chats_of(chosen_model, "Sing.")
    assert len(rounds) == 2
    for asked in rounds:
        assert (asked["model"], asked["temperature"], asked["max_tokens"], asked["stop"]) == ("other", 0.5, 70, ["END"])
        assert "seed" not in asked
        system = asked["messages"][0]["content"]
        assert system.startswith("You are a helpful assistant")
        assert "\n\nAnswer in verse." in system
    choosing.turn("Plainly.", user=user)
    (plain,) = chats_of(chosen_model, "Plainly.")
    assert (plain["model"], "temperature" in plain, "verse." in plain["messages"][0]["content"]) == (
        *("fake-chat", False),
        False,
    )
    assert all(asked["model"] == "fake-chat" for asked in chosen_model.extractions)


@pytest.mark.parametrize(
    ("choice", "named"),
    [
        ({"model": "unlisted"}, ["model"]),
        ({"model": ""}, ["model"]),
        ({"model": "m" * 201}, ["model"]),
        ({"model": 5}, ["model"]),
        ({"instructions": ""}, ["instructions"]),
        ({"instructions": "x" * 20_001}, ["instructions"]),
        ({"instructions": "a\x00b"}, ["instructions"]),
        ({"parameters": []}, ["parameters"]),
        ({"parameters": {"temperature": 2.1}}, ["parameters.temperature"]),
        ({"parameters": {"temperature": True, "top_p": "1"}}, ["parameters.temperature", "parameters.top_p"]),
        ({"parameters": {"max_tokens": 0}}, ["parameters.max_tokens"]),
        ({"parameters": {"stop": ["x"] * 17}}, ["parameters.stop"]),
        ({"parameters": {"stop": ["a", 5]}}, ["parameters.stop"]),
        ({"parameters": {"logit_bias": {"x": 1}}}, ["parameters.logit_bias"]),
        ({"parameters": {"logit_bias": {"50": 101}}}, ["parameters.logit_bias"]),
        *(({"parameters": {name: "x"}}, [f"parameters.{name}"]) for name in NEVER),
    ],
)
def test_what_is_not_valid_is_named_and_asked_of_nobody(
    choosing: Service, chosen_model: FakeOpenAI, user: str, choice: dict[str, Any], named: list[str]
) -> None:
    assert fields(post(choosing, user, **choice)) == named
    assert chosen_model.chats == []
    assert choosing.get("/api/threads/t1/messages", user_id=user)["items"] == []


@pytest.mark.parametrize("streamed", [False, True])
def test_what_the_provider_refuses_is_the_callers_to_mend(
    choosing: Service, chosen_model: FakeOpenAI, user: str, streamed: bool
) -> None:
    chosen_model.fail(400, times=-1, path="chat")
    choice: dict[str, Any] = {"parameters": {"top_k": 5}}
    if streamed:
        events = stream(choosing, "Hello.", user=user, turn_id="one", **choice)
        assert names(events)[-1] == "error"
        error = data_of(events, "error")["error"]
    else:
        error = refused(post(choosing, user, turn_id="one", **choice), 422, "invalid_request")
    assert (error["code"], error["turn_id"], [one["field"] for one in error["details"]]) == (
        *("invalid_request", "one"),
        ["parameters"],
    )
    refused(post(choosing, user, turn_id="two", thread_id="t2"), 502, "model_unavailable")
    chosen_model.recover()
    assert check_turn(post(choosing, user, turn_id="one").json())["reply"] == "All right."


def test_the_offline_model_says_what_it_ignores(tmp_path: Path) -> None:
    with service(tmp_path, ALLOW_MODEL_CHOICE="true") as running:
        told = check_turn(running.turn("My name is Ada.", **CHOICE))
        events = stream(running, "What is my name?", user="ada", parameters={"top_p": 0.5})
        plain = running.turn("What is my name?")
    assert told["reply"].endswith("(The offline model ignores model, instructions and parameters.)")
    assert told["model"] == "offline"
    reply = data_of(events, "message")["reply"]
    assert reply == "".join(data["text"] for name, data in events if name == "token")
    assert reply == f"{plain['reply']} (The offline model ignores parameters.)"


def test_an_agent_of_ones_own_is_told_what_was_chosen(tmp_path: Path) -> None:
    code = "import json\nasync def agent(state):\n    return {'reply': json.dumps(state['choice'])}\n"
    (tmp_path / "choosy.py").write_text(code)
    with service(tmp_path, AGENT="choosy:agent", ALLOW_MODEL_CHOICE="true") as running:
        told = httpx.Response(200, text=running.turn("Hi.", **CHOICE)["reply"]).json()
        none = httpx.Response(200, text=running.turn("Hi again.")["reply"]).json()
    assert told == {**CHOICE, "parameters": {"temperature": 0.5, "max_tokens": 70, "stop": ["END"]}}
    assert none == {"model": None, "instructions": None, "parameters": {}}
