"""A client's functions in responses: open rounds, their results, and references to what was said before."""

import json
from typing import Any

import openai
import pytest
from openai.types.responses import Response

from tests.fakes.openai_server import FakeOpenAI, call
from tests.service.support.chats import given
from tests.service.support.lessons import add, teach
from tests.service.support.responses import ask, fate_of, stored
from tests.service.support.running import Service
from tests.service.support.scripts import texts

Json = dict[str, Any]

WEATHER: Json = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "strict": True,
}
RAIN = "It rains."


def result_of(answer: Response, text: str = RAIN) -> list[Json]:
    return [
        {"type": "function_call_output", "call_id": item.call_id, "output": text}
        for item in answer.output
        if item.type == "function_call"
    ]


def roles(model: FakeOpenAI) -> list[str]:
    return [message["role"] for message in model.chats[-1]["messages"]]


def test_a_round_is_kept_open_and_its_turn_stored_with_the_answer(
    served: Service, model: FakeOpenAI, client: openai.OpenAI, user: str
) -> None:
    teach(model, {"I live in Oslo. Does it rain?": [add("Oslo", key="city")]})
    model.script(call("get_weather", city="Oslo"))
    first = ask(client, user, "I live in Oslo. Does it rain?", tools=[WEATHER], tool_choice="auto")
    (asked,) = first.output
    assert asked.type == "function_call"
    assert (asked.name, json.loads(asked.arguments)) == ("get_weather", {"city": "Oslo"})
    assert fate_of(first) == {**fate_of(first), "stored": False, "turn_id": None, "reason": None}
    assert stored(served, user, first) == []
    assert first.tools[0].type == "function"
    model.script("Yes, take an umbrella.")
    second = ask(client, user, result_of(first), previous_response_id=first.id, tools=[WEATHER])
    assert second.output_text == "Yes, take an umbrella."
    assert roles(model) == ["system", "user", "assistant", "tool"]
    assert fate_of(second)["stored"] is True
    assert stored(served, user, second) == [
        ("user", "I live in Oslo. Does it rain?"),
        ("assistant", "Yes, take an umbrella."),
    ]
    update = served.settled(second.id.removeprefix("resp_"), user=user)["memory"]["update"]
    assert [change["after"] for change in update["changes"]] == ["Oslo"]


def test_what_the_agent_did_itself_stays_in_an_open_round(
    served: Service, model: FakeOpenAI, client: openai.OpenAI, user: str
) -> None:
    remembered = {"key": "city", "value": "Oslo", "statement": "The user lives in Oslo.", "evidence": "in Oslo"}
    model.script(call("remember_fact", **remembered), call("get_weather", city="Oslo"), "Warm rain.")
    first = ask(client, user, "How is it in Oslo?", tools=[WEATHER])
    second = ask(client, user, result_of(first), previous_response_id=first.id, tools=[WEATHER])
    assert roles(model) == ["system", "user", "assistant", "tool", "assistant", "tool"]
    update = served.settled(second.id.removeprefix("resp_"), user=user)["memory"]["update"]
    assert [change["after"] for change in update["changes"]] == ["Oslo"]


def test_a_client_that_sends_everything_again_stays_in_the_rounds_thread(
    served: Service, model: FakeOpenAI, client: openai.OpenAI, user: str
) -> None:
    model.script(call("get_weather", city="Oslo"), "It rains there.")
    question: Json = {"role": "user", "content": "Weather?"}
    first = ask(client, user, [question], tools=[WEATHER])
    again = [question, *(item.model_dump(exclude_none=True) for item in first.output), *result_of(first)]
    second = ask(client, user, again, tools=[WEATHER])
    assert roles(model) == ["system", "user", "assistant", "tool"]
    assert fate_of(second)["thread_id"] == fate_of(first)["thread_id"]
    assert len(stored(served, user, second)) == 2


def test_references_name_what_was_said_before(
    served: Service, model: FakeOpenAI, client: openai.OpenAI, user: str
) -> None:
    model.script(call("get_weather", city="Oslo"), "It rains there.", "Because of the sea.")
    question: Json = {"role": "user", "content": "Weather?"}
    first = ask(client, user, [question], tools=[WEATHER], conversation="c1")
    called = {"type": "item_reference", "id": first.output[0].id}
    second = ask(client, user, result_of(first), previous_response_id=first.id, tools=[WEATHER])
    answered = {"type": "item_reference", "id": second.output[0].id}
    client.responses.delete(first.id, extra_query={"user": user})  # as after its 24 hours
    ask(client, user, [question, called, *result_of(first), answered, {"role": "user", "content": "Why?"}])
    assert roles(model) == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert given(model.chats[-1])[-2:] == ["It rains there.", "Why?"]


def test_results_of_no_call_are_refused(model: FakeOpenAI, client: openai.OpenAI, user: str) -> None:
    answer = ask(client, user, "Hello.")
    output = {"type": "function_call_output", "call_id": "c9", "output": RAIN}
    with pytest.raises(openai.BadRequestError):
        ask(client, user, [output], previous_response_id=answer.id)


def test_calls_are_streamed(served: Service, model: FakeOpenAI, client: openai.OpenAI, user: str) -> None:
    model.script({"content": "Let me look.", "tool_calls": call("get_weather", city="Oslo")["tool_calls"]})
    tools: Any = [WEATHER]
    with client.responses.stream(model="fake-chat", input="Weather?", tools=tools, extra_body={"user": user}) as stream:
        events = list(stream)
        whole = stream.get_final_response()
    kinds = list(dict.fromkeys(event.type for event in events if event.type.startswith("response.function_call")))
    assert kinds == ["response.function_call_arguments.delta", "response.function_call_arguments.done"]
    assert [item.type for item in whole.output] == ["message", "function_call"]
    model.script("It rains.")
    final = ask(client, user, result_of(whole), previous_response_id=whole.id, tools=[WEATHER])
    assert len(stored(served, user, final)) == 2


def test_a_kept_response_is_read_and_deleted(
    served: Service, model: FakeOpenAI, client: openai.OpenAI, user: str
) -> None:
    teach(model, {"I live in Oslo. Does it rain?": [add("Oslo", key="city")]})
    model.script(call("get_weather", city="Oslo"), "It rains.")
    whose: Json = {"extra_headers": {"X-Memory-User": user}}
    question = "I live in Oslo. Does it rain?"
    first = ask(client, user, question, tools=[WEATHER], metadata={"a": "b"}, conversation="c1")
    retrieve: Any = client.responses.retrieve
    read: Response = retrieve(first.id, **whose)
    assert (read.id, read.output, read.metadata) == (first.id, first.output, {"a": "b"})
    second = ask(client, user, result_of(first), previous_response_id=first.id, tools=[WEATHER])
    read = retrieve(second.id, **whose)
    assert (read.id, read.output_text, read.previous_response_id) == (second.id, "It rains.", first.id)
    items = list(client.responses.input_items.list(second.id, order="asc", limit=2, **whose))
    assert [item.type for item in items] == ["message", "function_call", "function_call_output"]
    served.settled(second.id.removeprefix("resp_"), user=user)
    assert served.get(f"/api/users/{user}/facts")["facts"] == {"city": "Oslo"}
    client.responses.delete(second.id, **whose)
    assert served.get(f"/api/users/{user}/facts")["facts"] == {}
    assert texts(served, user=user, thread="c1") == []
    for gone in (second.id, "resp_none", "none"):
        with pytest.raises(openai.NotFoundError):
            retrieve(gone, **whose)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first.id, extra_query={"user": "somebody-else"})
    with pytest.raises(openai.BadRequestError):
        client.responses.retrieve(first.id)


def test_open_rounds_are_exported_and_erased_with_the_user(
    served: Service, model: FakeOpenAI, client: openai.OpenAI, user: str
) -> None:
    model.script(call("get_weather", city="Oslo"), "It rains.")
    first = ask(client, user, "Weather?", tools=[WEATHER])
    exported = served.http.get(f"/api/users/{user}/export").content
    receipt = served.http.delete(f"/api/users/{user}").json()
    assert receipt["counts"]["client_records"] == 1
    with pytest.raises(openai.BadRequestError):
        ask(client, user, result_of(first), previous_response_id=first.id, tools=[WEATHER])
    headers = {"Content-Type": "application/x-ndjson"}
    brought = served.http.post("/api/import", content=exported, headers=headers).json()
    assert (brought["imported"], brought["failed"]) == (1, [])
    final = ask(client, user, result_of(first), previous_response_id=first.id, tools=[WEATHER])
    assert stored(served, user, final) == [("user", "Weather?"), ("assistant", "It rains.")]


def test_a_conversation_is_made_read_and_deleted(
    served: Service, model: FakeOpenAI, client: openai.OpenAI, user: str
) -> None:
    teach(model, {"I live in Oslo.": [add("Oslo", key="city")]})
    whose: Json = {"extra_headers": {"X-Memory-User": user}}
    made = client.conversations.create(metadata={"topic": "rain"}, **whose)
    assert client.conversations.retrieve(made.id, **whose) == made
    assert list(client.conversations.items.list(made.id, **whose)) == []
    said = [ask(client, user, text, conversation=made.id) for text in ("I live in Oslo.", "Two.", "Three.")]
    served.settled(said[0].id.removeprefix("resp_"), user=user)
    for order, expected in (
        ("asc", ["I live in Oslo.", "Two.", "Three."]),
        ("desc", ["Three.", "Two.", "I live in Oslo."]),
    ):
        for limit in (1, 2, 3, 50):
            wanted: Any = {"order": order, "limit": limit, **whose}
            items: Any = client.conversations.items.list(made.id, **wanted)
            found = [item for item in items if item.role == "user"]
            assert [item.content[0].text for item in found] == expected, (order, limit)
    client.conversations.delete(made.id, **whose)
    assert served.get(f"/api/users/{user}/facts")["facts"] == {}
    with pytest.raises(openai.NotFoundError):
        client.conversations.retrieve(made.id, **whose)
