"""A client's own tools beside the agent's: what is called, what is stored, and what the model is given afterwards."""

import json
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletion

from tests.fakes.openai_answers import Body
from tests.fakes.openai_server import FakeOpenAI, call
from tests.service.support.chats import WEATHER, Chats, assistant, error_of, turn_id_of, user
from tests.service.support.lessons import add, extractions_of, teach
from tests.service.support.running import Service
from tests.service.support.scripts import texts

Json = dict[str, Any]

RAIN = "It rains."


def both(*asked: Json) -> Json:
    """Return one message that makes all of these calls."""
    return {"content": None, "tool_calls": [item for message in asked for item in message["tool_calls"]]}


def calls_of(answer: ChatCompletion) -> list[tuple[str, Any]]:
    calls = answer.choices[0].message.tool_calls or ()
    functions = [item.function for item in calls if item.type == "function"]
    return [(function.name, json.loads(function.arguments)) for function in functions]


def as_message(answer: ChatCompletion) -> Json:
    """Return the answer as the client puts it into its history."""
    return answer.choices[0].message.model_dump(exclude_none=True)


def results(answer: ChatCompletion, *found: str) -> list[Json]:
    calls = answer.choices[0].message.tool_calls or ()
    return [{"role": "tool", "tool_call_id": item.id, "content": text} for item, text in zip(calls, found, strict=True)]


def check_complete(chat: Body) -> None:
    """Check that each call in what the model was given has its result behind it, as every provider wants it."""
    open_calls = set[str]()
    for message in chat["messages"]:
        if message["role"] == "tool":
            open_calls.remove(message["tool_call_id"])
            continue
        assert not open_calls
        open_calls = {item["id"] for item in message.get("tool_calls") or ()}
    assert not open_calls


def offered(chat: Body) -> list[str]:
    return [tool["function"]["name"] for tool in chat.get("tools") or ()]


def test_a_round_of_tools_ends_in_a_stored_turn(served: Service, model: FakeOpenAI, chats: Chats) -> None:
    teach(model, {"I live in Oslo. Does it rain?": [add("Oslo", key="city")]})
    asked = user("I live in Oslo. Does it rain?")
    model.script(call("get_weather", city="Oslo"))
    first = chats.ask(asked, tools=[WEATHER])
    assert (first.choices[0].finish_reason, first.choices[0].message.content) == ("tool_calls", None)
    assert calls_of(first) == [("get_weather", {"city": "Oslo"})]
    assert offered(model.chats[-1]) == ["search_memory", "remember_fact", "get_weather"]
    assert texts(served, user=chats.user) == []
    assert served.get("/api/threads", user_id=chats.user)["items"] == []
    model.script("Yes, take an umbrella.")
    second = chats.ask(asked, as_message(first), *results(first, RAIN), tools=[WEATHER])
    assert second.choices[0].finish_reason == "stop"
    check_complete(model.chats[-1])
    assert model.chats[-1]["messages"][-1]["content"] == RAIN
    assert texts(served, user=chats.user) == [
        ("user", "I live in Oslo. Does it rain?"),
        ("assistant", "Yes, take an umbrella."),
    ]
    update = served.settled(turn_id_of(second), user=chats.user)["memory"]["update"]
    assert [change["after"] for change in update["changes"]] == ["Oslo"]
    (extraction,) = extractions_of(model, "I live in Oslo. Does it rain?")
    assert RAIN not in json.dumps(extraction)


def test_where_both_are_called_the_own_are_run_and_the_clients_returned(
    served: Service, model: FakeOpenAI, chats: Chats
) -> None:
    served.turn("I like warm rain.", user=chats.user, wait_for_memory=True)
    remembered = {"key": "city", "value": "Oslo", "statement": "The user lives in Oslo.", "evidence": "in Oslo"}
    model.script(
        call("search_memory", query="rain"),
        both(call("remember_fact", **remembered), call("get_weather", city="Oslo")),
    )
    asked = user("How is it in Oslo?")
    first = chats.ask(asked, tools=[WEATHER])
    assert calls_of(first) == [("get_weather", {"city": "Oslo"})]
    assert first.usage is not None
    assert first.usage.prompt_tokens == 20
    model.script("Warm rain, as you like it.")
    second = chats.ask(asked, as_message(first), *results(first, RAIN), tools=[WEATHER])
    sent = model.chats[-1]
    check_complete(sent)
    told = [message["content"] for message in sent["messages"] if message["role"] == "tool"]
    assert len(told) == 3
    assert "I like warm rain." in told[0]
    assert told[1].startswith("Noted")
    assert told[2] == RAIN
    assert second.choices[0].message.content == "Warm rain, as you like it."
    update = served.settled(turn_id_of(second), user=chats.user)["memory"]["update"]
    assert [change["after"] for change in update["changes"]] == ["Oslo"]


def test_without_what_the_agent_did_the_conversation_is_still_complete(model: FakeOpenAI, chats: Chats) -> None:
    model.script(both(call("search_memory", query="rain"), call("get_weather", city="Oslo")))
    asked = user("How is it?")
    first = chats.ask(asked, tools=[WEATHER])
    # The agent's part was kept for the thread t1.
    chats.ask(asked, as_message(first), *results(first, RAIN), thread="t2", tools=[WEATHER])
    check_complete(model.chats[-1])
    assert len([message for message in model.chats[-1]["messages"] if message["role"] == "tool"]) == 1


def test_several_rounds_of_several_calls(served: Service, model: FakeOpenAI, chats: Chats) -> None:
    weather = [
        {**item, "id": f"w{place}"} for place, item in enumerate(call("get_weather", city="Oslo")["tool_calls"] * 2)
    ]
    model.script({"content": "Two cities.", "tool_calls": weather}, call("get_weather", city="Rome"), "All wet.")
    messages = [user("Where does it rain?")]
    for found in ((RAIN, RAIN), (RAIN,)):
        answer = chats.ask(*messages, tools=[WEATHER])
        messages += [as_message(answer), *results(answer, *found)]
    assert answer.choices[0].message.content is None
    assert messages[1]["content"] == "Two cities."
    final = chats.ask(*messages, tools=[WEATHER])
    check_complete(model.chats[-1])
    assert final.choices[0].message.content == "All wet."
    assert texts(served, user=chats.user) == [("user", "Where does it rain?"), ("assistant", "All wet.")]


def test_the_next_turn_may_bring_the_rounds_of_the_last(served: Service, model: FakeOpenAI, chats: Chats) -> None:
    model.script(call("get_weather", city="Oslo"), "It rains there.", "Because of the sea.")
    messages = [user("Weather in Oslo?")]
    first = chats.ask(*messages, tools=[WEATHER])
    messages += [as_message(first), *results(first, RAIN)]
    messages += [assistant(chats.text(*messages, tools=[WEATHER])), user("Why?")]
    chats.ask(*messages, tools=[WEATHER])
    sent = model.chats[-1]
    check_complete(sent)
    assert [message["role"] for message in sent["messages"]] == [
        *("system", "user", "assistant", "tool", "assistant", "user"),
    ]
    assert len(texts(served, user=chats.user)) == 4


def test_a_stateless_round_of_tools(served: Service, model: FakeOpenAI, chats: Chats) -> None:
    model.script(both(call("search_memory", query="x"), call("get_weather", city="Oslo")), "It rains.")
    asked = user("Weather?")
    first = chats.ask(asked, thread=None, tools=[WEATHER])
    second = chats.ask(asked, as_message(first), *results(first, RAIN), thread=None, tools=[WEATHER])
    assert second.choices[0].message.content == "It rains."
    check_complete(model.chats[-1])
    assert served.get("/api/threads", user_id=chats.user)["items"] == []


def test_arguments_that_are_no_json_come_back_as_they_are(model: FakeOpenAI, chats: Chats) -> None:
    model.script({"content": None, "tool_calls": [{"id": "c1", "name": "get_weather", "arguments": '{"city": '}]})
    answer = chats.ask(user("Weather?"), tools=[WEATHER])
    (called,) = answer.choices[0].message.tool_calls or []
    assert called.type == "function"
    assert called.function.arguments == '{"city": '


def test_the_agents_rounds_are_bounded_and_the_clients_tools_stay(model: FakeOpenAI, chats: Chats) -> None:
    model.script(*[call("search_memory", query="more")] * 5, call("get_weather", city="Oslo"))
    answer = chats.ask(user("Search for ever."), tools=[WEATHER])
    assert calls_of(answer) == [("get_weather", {"city": "Oslo"})]
    assert offered(model.chats[-1]) == ["get_weather"]


def test_a_provider_that_takes_no_tools_says_so(model: FakeOpenAI, chats: Chats) -> None:
    model.fail(400, times=1, path="/chat/completions")
    with pytest.raises(openai.BadRequestError) as raised:
        chats.ask(user("Weather?"), tools=[WEATHER])
    assert error_of(raised.value)["code"] == "invalid_request"
    chats.ask(user("Weather?"))
    assert offered(model.chats[-1]) == ["search_memory", "remember_fact"], "the agent's own are still offered"


def test_a_failed_round_stores_nothing(served: Service, model: FakeOpenAI, chats: Chats) -> None:
    model.fail(500, times=-1, path="/chat/completions")
    with pytest.raises(openai.InternalServerError):
        chats.ask(user("Weather?"), tools=[WEATHER])
    model.recover()
    assert texts(served, user=chats.user) == []
    chats.ask(user("Weather?"), tools=[WEATHER])
    assert [text for _, text in texts(served, user=chats.user)] == ["Weather?", "All right."]
