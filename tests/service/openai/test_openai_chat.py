"""Plain completions by OpenAI's own Python client."""

import json
from typing import Any

import openai
import pytest

from recollect.api.openai.answers import ChatCompletionAnswer, ModelAnswer, ModelsAnswer
from tests.fakes.openai_server import FakeOpenAI, call
from tests.service.support.chats import (
    WEATHER,
    Chats,
    assistant,
    error_of,
    given,
    hits_of,
    instructions,
    system,
    turn_id_of,
    user,
)
from tests.service.support.lessons import add, chats_of, extractions_of, teach
from tests.service.support.running import Service
from tests.service.support.scripts import facts, texts
from tests.service.support.shapes import ISO_TIME


def test_a_completion_is_a_turn(served: Service, model: FakeOpenAI, chats: Chats) -> None:
    teach(model, {"Hi, I'm Ada.": [add("Ada", key="name")]})
    model.script("Hello Ada.")
    answer = chats.ask(user("Hi, I'm Ada."))
    (choice,) = answer.choices
    assert (choice.index, choice.finish_reason, choice.message.role) == (0, "stop", "assistant")
    assert choice.message.content == "Hello Ada."
    assert (answer.model, hits_of(answer)) == ("fake-chat", [])
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (10, 2, 12)
    stored = served.settled(turn_id_of(answer), user=chats.user)
    assert (stored["reply"], stored["thread_id"]) == ("Hello Ada.", "t1")
    assert facts(served, user=chats.user) == {"name": "Ada"}
    assert '- "name": "Ada"' in instructions(chats_of(model, chats.text(user("Who?")) and "Who?")[-1])


def test_answers_are_as_they_are_described(served: Service, model: FakeOpenAI, user: str) -> None:
    body = {"messages": [{"role": "user", "content": "Weather?"}], "user": user, "memory_id": "t1", "tools": [WEATHER]}
    model.script("Fine.", call("get_weather", city="Oslo"))
    for finish in ("stop", "tool_calls"):
        answer = served.http.post("/v1/chat/completions", json={**body, "memory_id": finish})
        described = ChatCompletionAnswer.model_validate(answer.json(), strict=True, extra="forbid")
        assert described.choices[0].finish_reason == finish
    ModelsAnswer.model_validate(served.get("/v1/models"), strict=True, extra="forbid")
    ModelAnswer.model_validate(served.get("/v1/models/fake-chat"), strict=True, extra="forbid")


def test_content_may_come_in_parts(served: Service, model: FakeOpenAI, chats: Chats) -> None:
    chats.ask(user([{"type": "text", "text": "Look at this:"}, {"type": "text", "text": "a poem."}]))
    assert texts(served, user=chats.user)[0] == ("user", "Look at this:\na poem.")
    assert given(model.chats[-1]) == ["Look at this:\na poem."]


def test_images_are_shown_to_the_model_and_not_remembered(served: Service, model: FakeOpenAI, chats: Chats) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    chats.ask(user([{"type": "text", "text": "What is it?"}, image]))
    assert model.chats[-1]["messages"][-1]["content"] == [{"type": "text", "text": "What is it?"}, image]
    assert texts(served, user=chats.user)[0] == ("user", "What is it?")


def test_system_messages_are_kept(model: FakeOpenAI, chats: Chats) -> None:
    developer = {"role": "developer", "content": "Never swear."}
    chats.ask(
        system("Answer like a pirate."), developer, user("Hi."), assistant("Arr."), system("Be kind."), user("Hm?")
    )
    told = instructions(model.chats[-1])
    assert "Answer like a pirate." in told
    assert "Never swear." in told
    assert "long-term memory" in told
    assert [message["role"] for message in model.chats[-1]["messages"]] == [
        *("system", "user", "assistant", "system", "user"),
    ]
    assert model.chats[-1]["messages"][3]["content"] == "Be kind."


def test_parameters_are_passed_on_unchanged_and_others_ignored(model: FakeOpenAI, chats: Chats) -> None:
    passed: dict[str, Any] = {
        **{"temperature": 0.3, "top_p": 0.9, "max_tokens": 50, "seed": 7, "stop": ["END", "STOP"]},
        **{"presence_penalty": 0.5, "frequency_penalty": -0.5, "logit_bias": {"50256": -100}},
        **{"response_format": {"type": "json_object"}, "parallel_tool_calls": False, "reasoning_effort": "low"},
        "tools": [WEATHER],
        "tool_choice": "none",
    }
    model.script("{}")
    chats.ask(user("All of them."), **passed, store=True, metadata={"a": "b"}, service_tier="auto", verbosity="low")
    sent = model.chats[-1]
    assert {name: sent.get(name) for name in passed} == passed
    assert not {"store", "metadata", "service_tier", "verbosity", "user", "memory_id"} & set(sent)
    chats.ask(user("Another."), max_completion_tokens=9)
    assert (model.chats[-1]["max_completion_tokens"], "max_tokens" in model.chats[-1]) == (9, False)


def test_the_model_is_passed_on_where_the_provider_lists_it(model: FakeOpenAI, chats: Chats) -> None:
    assert chats.ask(user("Hi."), model="fake-embed").model == "fake-embed"
    assert model.chats[-1]["model"] == "fake-embed"
    with pytest.raises(openai.NotFoundError) as raised:
        chats.ask(user("Hi."), model="gpt-unknown")
    error = error_of(raised.value)
    assert (error["code"], error["param"], error["type"]) == ("model_not_found", "model", "invalid_request_error")


def test_the_models_are_listed(openai_of_served: openai.OpenAI) -> None:
    listed = list(openai_of_served.models.list())
    assert [item.id for item in listed] == ["fake-chat", "fake-embed"]
    assert {item.object for item in listed} == {"model"}
    assert openai_of_served.models.retrieve("fake-embed").id == "fake-embed"
    with pytest.raises(openai.NotFoundError) as raised:
        openai_of_served.models.retrieve("some/other")
    assert error_of(raised.value)["code"] == "model_not_found"


def test_the_offline_model_answers_too(offline: Service, user: str) -> None:
    with openai.OpenAI(base_url=f"{offline.url}/v1", api_key="unused", max_retries=0) as client:
        assert [item.id for item in client.models.list()] == ["offline"]
        chats = Chats(client, user)
        answer = chats.ask(
            {"role": "user", "content": "My name is Ada."}, model="offline", temperature=0.1, tools=[WEATHER]
        )
        assert (answer.model, answer.choices[0].finish_reason) == ("offline", "stop")
        served = chats.ask({"role": "user", "content": "What is my name?"}, model="offline")
        assert "Ada" in (served.choices[0].message.content or "")


def test_a_cut_answer_says_so(served: Service, model: FakeOpenAI, chats: Chats) -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": "Half a"}, "finish_reason": "length"}
    model.script({"id": "c", "object": "chat.completion", "created": 1, "model": "fake-chat", "choices": [choice]})
    answer = chats.ask(user("Long."), headers={"Idempotency-Key": "cut"}, max_tokens=2)
    assert answer.choices[0].finish_reason == "length"
    again = chats.ask(user("Long."), headers={"Idempotency-Key": "cut"})
    assert (again.choices[0].finish_reason, again.choices[0].message.content) == ("length", "Half a")


def test_hits_are_shown(served: Service, model: FakeOpenAI, chats: Chats) -> None:
    served.turn("My favourite tea is oolong.", user=chats.user, thread="old", wait_for_memory=True)
    answer = chats.ask(user("Which tea is my favourite?"), memory_scope="user")
    hits = hits_of(answer)
    assert {"user", "assistant"} >= {hit["role"] for hit in hits}
    best = hits[0]
    assert set(best) == {"role", "content", "created_at", "score"}
    assert (best["role"], best["content"]) == ("user", "My favourite tea is oolong.")
    assert ISO_TIME.fullmatch(best["created_at"])
    assert isinstance(best["score"], float)
    assert hits_of(chats.ask(user("Which tea is it?"), memory_scope="user", memory_top_k=0)) == []
    assert hits_of(chats.ask(user("Which tea?"), thread="t2", memory_scope="thread")) == []


def test_the_memorys_fields_may_be_headers(served: Service, model: FakeOpenAI, chats: Chats) -> None:
    served.turn("My favourite tea is oolong.", user=chats.user, thread="old", wait_for_memory=True)
    headers = {
        **{"X-Memory-User": chats.user, "X-Memory-Id": "t9", "X-Memory-Scope": "user", "X-Memory-Top-K": "1"},
        **{"X-Memory-Recency-Weight": "0.5", "X-Memory-Score-Threshold": "-1"},
    }
    answer = chats.ask(user("Which tea is my favourite?"), thread=None, headers=headers, user=openai.omit)
    assert len(hits_of(answer)) == 1
    assert texts(served, user=chats.user, thread="t9")[0] == ("user", "Which tea is my favourite?")
    chats.ask(
        user("Body first."), headers={**headers, "X-Memory-User": "somebody-else", "X-Memory-Id": "t8"}, thread="t7"
    )
    assert texts(served, user=chats.user, thread="t7")[0] == ("user", "Body first.")


def test_without_a_thread_nothing_is_stored_or_learned(served: Service, model: FakeOpenAI, chats: Chats) -> None:
    teach(model, {"I live in Oslo.": [add("Oslo", key="city")]})
    served.turn("I live in Oslo.", user=chats.user, wait_for_memory=True)
    history = (user("Hello."), assistant("Hi."))
    answer = chats.ask(*history, user("Where do I live? I like jazz."), thread=None)
    assert '"city": "Oslo"' in instructions(model.chats[-1])
    assert given(model.chats[-1]) == ["Hello.", "Hi.", "Where do I live? I like jazz."]
    assert "I live in Oslo." in [hit["content"] for hit in hits_of(answer)]
    # Keyed facts are given in any case, and are no hits.
    assert "fact" not in [hit["role"] for hit in hits_of(answer)]
    offered = [tool["function"]["name"] for tool in model.chats[-1]["tools"]]
    assert offered == ["search_memory"]
    assert served.get("/api/threads", user_id=chats.user)["items"][0]["turns"] == 1
    assert len(served.get("/api/threads", user_id=chats.user)["items"]) == 1
    found = served.http.get(f"/api/turns/{turn_id_of(answer)}", params={"user_id": chats.user})
    assert found.status_code == 404
    # Tests before this one may still be learned from.
    assert extractions_of(model, "Where do I live? I like jazz.") == []


def test_an_idempotency_key_is_the_turns_id(served: Service, model: FakeOpenAI, chats: Chats) -> None:
    model.script("Once.")
    headers = {"Idempotency-Key": "k1"}
    first = chats.ask(user("Hello."), headers=headers)
    assert turn_id_of(first) == "k1"
    assert chats.ask(user("Hello."), headers=headers).model_dump() == first.model_dump()
    assert [chunk.choices[0].delta.content for chunk in chats.stream(user("Hello."), headers=headers)][1] == "Once."
    for other in ({"thread": "t2"}, {}):
        with pytest.raises(openai.ConflictError) as raised:
            chats.ask(user("Hello." if other else "Other."), headers=headers, **other)
        assert error_of(raised.value)["code"] == "turn_conflict"
    assert len(chats_of(model, "Hello.")) == 1


def test_json_is_not_mixed_with_what_is_said_between_tools(model: FakeOpenAI, chats: Chats) -> None:
    model.script('{"a": 1}')
    text = chats.text(user("As JSON."), response_format={"type": "json_object"})
    assert json.loads(text) == {"a": 1}
    assert "tools" not in model.chats[-1]
