"""The tools that the agent uses: seen while it works, kept with the turn, and blank once their texts are removed."""

import json
from typing import Any

import pytest

from tests.fakes.openai_server import FakeOpenAI, call
from tests.service.support.events import data_of, names, stream
from tests.service.support.export_of import exported, lines, taken
from tests.service.support.lessons import add, teach
from tests.service.support.running import Service
from tests.service.support.shapes import check_turn
from tests.service.support.visitor import Visitor

QUESTION = "What do I like?"


def searched(served: Service, model: FakeOpenAI, user: str, query: str, **fields: Any) -> dict[str, Any]:
    """Return a turn whose agent has searched for `query`."""
    model.script(call("search_memory", query=query), "I have looked.")
    return check_turn(served.turn(QUESTION, user=user, **fields))


def tools_of(served: Service, user: str, turn_id: str) -> list[dict[str, Any]]:
    tools: list[dict[str, Any]] = check_turn(served.get(f"/api/turns/{turn_id}", user_id=user))["tools"]
    return tools


def test_calls_and_results_are_events_and_the_turn_keeps_them(served: Service, model: FakeOpenAI, user: str) -> None:
    served.turn("I like jazz.", user=user, wait_for_memory=True)
    model.script(call("search_memory", query="jazz"), "You like jazz.")
    events = stream(served, QUESTION, user=user, turn_id="asked")
    assert [name for name in names(events) if name != "token"] == [
        *("turn", "memory", "tool_call", "tool_result", "message", "done")
    ]
    called, answered = data_of(events, "tool_call"), data_of(events, "tool_result")
    assert called == {"id": "call_search_memory", "name": "search_memory", "args": {"query": "jazz"}}
    assert {**answered, "content": ""} == {"id": called["id"], "name": called["name"], "content": ""}
    assert "I like jazz." in [found["text"] for found in json.loads(answered["content"])["found"]]
    (use,) = check_turn(data_of(events, "message"))["tools"]
    assert use == {**called, "content": answered["content"], "ms": use["ms"], "error": None}
    assert use["ms"] > 0
    assert tools_of(served, user, "asked") == [use]
    again = stream(served, QUESTION, user=user, turn_id="asked")
    assert data_of(again, "message")["tools"] == [use]


def test_a_turn_without_tools_has_none(served: Service, user: str) -> None:
    turn = served.turn("Hello.", user=user)
    assert turn["tools"] == [] == tools_of(served, user, turn["turn_id"])


def test_failures_say_why(served: Service, model: FakeOpenAI, user: str) -> None:
    asked = [("1", "search_memory", '{"query": " "}'), ("2", "no_such", "{}")]
    asked += [(str(number), "search_memory", '{"query": "x"}') for number in range(3, 60)]
    items = [{"id": call_id, "name": name, "arguments": arguments} for call_id, name, arguments in asked]
    model.script({"content": None, "tool_calls": items}, "Done.")
    tools = served.turn("Try many.", user=user)["tools"]
    assert len(tools) == 50
    assert [use["error"] for use in tools[:3]] == ["Not done: query is empty.", "There is no such tool.", None]
    assert tools[-1]["error"] == "Not done: at most 10 calls at once."


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        ('{"query": "a\\u0000b\\ud800"}', {"query": "a?b?"}),
        ('{"query": NaN, "deep": ' + "[" * 500 + "]" * 500 + "}", None),
        (json.dumps({"query": "x" * 100_000, "more": "y" * 100_000}), None),
        (json.dumps({f"n{place}": "z" * 50 for place in range(500)}), {}),
        (json.dumps({"query": "<script>alert(1)</script>"}), {"query": "<script>alert(1)</script>"}),
    ],
    ids=["not storable", "deep", "long", "many", "markup"],
)
def test_hostile_arguments_are_kept_bounded_exported_and_shown_as_text(
    served: Service, model: FakeOpenAI, offline: Service, user: str, arguments: str, kept: dict[str, Any] | None
) -> None:
    model.script({"content": None, "tool_calls": [{"id": "1", "name": "odd", "arguments": arguments}]}, "Done.")
    turn = served.turn("Try.", user=user, wait_for_memory=True)
    (use,) = tools_of(served, user, turn["turn_id"])
    assert kept is None or use["args"] == kept
    assert len(json.dumps(use)) < 16_000
    assert taken(offline, exported(served, user))[2] == []
    assert tools_of(offline, user, turn["turn_id"]) == [use]
    with Visitor(served) as visitor:
        page = visitor.page(f"/users/{user}/turns/{turn['turn_id']}")
    assert "The tools that it used" in page
    assert "<script>alert" not in page


def test_forgetting_a_fact_blanks_what_tools_say_of_it(served: Service, model: FakeOpenAI, user: str) -> None:
    teach(model, {"I live in Oslo.": [add("Oslo", key="city", evidence="I live in Oslo")]})
    remember = {"key": "town", "value": "Oslo", "statement": "The user lives in Oslo.", "evidence": "I live in Oslo"}
    model.script(call("remember_fact", **remember), "Noted.")
    taught = served.turn("I live in Oslo.", user=user, wait_for_memory=True)["turn_id"]
    found = searched(served, model, user, "Where do I live?", thread="t2", memory={"scope": "user"})
    other = searched(served, model, user, "music", thread="t3", memory={"scope": "thread"})
    assert "Oslo" in json.dumps(found["tools"])
    for fact in served.get(f"/api/users/{user}/facts")["items"]:
        assert served.http.delete(f"/api/users/{user}/facts/{fact['id']}").status_code == 204
    for turn_id in (taught, found["turn_id"]):
        (use,) = tools_of(served, user, turn_id)
        assert (use["args"], use["content"], use["error"]) == ({}, "", None)
        assert use["name"] in {"remember_fact", "search_memory"}
    assert tools_of(served, user, other["turn_id"]) == other["tools"]
    turns = [line for line in lines(exported(served, user)) if line["type"] == "turn"]
    assert "Oslo" not in json.dumps([line["result"]["tools"] for line in turns])


def test_deleting_the_source_blanks_what_a_search_found_in_it(served: Service, model: FakeOpenAI, user: str) -> None:
    served.turn("The heliotrope concert was loud.", user=user, thread="t1", wait_for_memory=True)
    found = searched(served, model, user, "heliotrope concert", thread="t2", memory={"scope": "user"})
    assert "heliotrope concert was loud" in found["tools"][0]["content"]
    assert served.http.delete(f"/api/threads/t1?user_id={user}").is_success
    (use,) = tools_of(served, user, found["turn_id"])
    assert (use["args"], use["content"]) == ({}, "")


def test_a_regenerated_turn_has_its_new_answers_tools(served: Service, model: FakeOpenAI, user: str) -> None:
    turn = searched(served, model, user, "jazz", wait_for_memory=True)
    model.script("Without looking.")
    answer = served.http.post(f"/api/turns/{turn['turn_id']}/regenerate", params={"user_id": user}, json={})
    assert (answer.json()["reply"], answer.json()["tools"]) == ("Without looking.", [])
    assert tools_of(served, user, turn["turn_id"]) == []
