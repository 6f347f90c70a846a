"""Streamed completions by OpenAI's own Python client, and as they are on the wire."""

import json
from typing import Any

import httpx
import openai
import pytest

from tests.fakes.openai_server import FakeOpenAI, call
from tests.service.support.chats import WEATHER, Chats, hits_of, turn_id_of, user
from tests.service.support.running import Service, until
from tests.service.support.scripts import facts, learning, texts

Json = dict[str, Any]

REPLY = "One two three\nfour — “five” 😀."


def lines_of(running: Service, **body: Any) -> list[str]:
    """Return the data of each event; nothing else but comments is on the wire."""
    with running.http.stream("POST", "/v1/chat/completions", json={"stream": True, **body}) as answer:
        assert answer.headers["content-type"].partition(";")[0] == "text/event-stream"
        lines = [line for line in answer.iter_lines() if line and not line.startswith(":")]
    assert all(line.startswith("data: ") for line in lines)
    return [line.removeprefix("data: ") for line in lines]


def hello(text: str, user: str, **more: Any) -> Json:
    return {"messages": [{"role": "user", "content": text}], "user": user, "memory_id": "t1", **more}


def test_the_chunks_make_the_reply(served: Service, model: FakeOpenAI, chats: Chats) -> None:
    model.script(REPLY)
    chunks = list(chats.stream(user("Count.")))
    first, *middle, last = chunks
    assert (first.choices[0].delta.role, first.choices[0].delta.content) == ("assistant", "")
    assert "".join(chunk.choices[0].delta.content or "" for chunk in middle) == REPLY
    assert len(middle) > 3
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None] * (len(chunks) - 1) + ["stop"]
    assert len({(chunk.id, chunk.created, chunk.model, chunk.object) for chunk in chunks}) == 1
    assert hits_of(last) == []
    assert not [chunk for chunk in chunks[:-1] if "memory_hits" in (chunk.model_extra or {})]
    assert all(chunk.usage is None for chunk in chunks)
    assert served.settled(turn_id_of(last), user=chats.user)["reply"] == REPLY


def test_the_usage_comes_last_where_it_is_asked_for(model: FakeOpenAI, chats: Chats) -> None:
    *chunks, last = list(chats.stream(user("Count."), stream_options={"include_usage": True}))
    assert last.choices == []
    assert last.usage is not None
    assert (last.usage.prompt_tokens, last.usage.completion_tokens, last.usage.total_tokens) == (10, 2, 12)
    assert hits_of(last) == []
    assert all(chunk.usage is None for chunk in chunks)
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_the_stream_on_the_wire_ends_with_done(served: Service, model: FakeOpenAI, user: str) -> None:
    lines = lines_of(served, **hello("Hi.", user))
    assert lines[-1] == "[DONE]"
    assert all(json.loads(line)["object"] == "chat.completion.chunk" for line in lines[:-1])
    assert "usage" not in json.loads(lines[0])


def test_hits_are_in_the_last_chunk(served: Service, model: FakeOpenAI, chats: Chats) -> None:
    served.turn("My favourite tea is oolong.", user=chats.user, thread="old", wait_for_memory=True)
    wishes: list[Json] = [{}, {"stream_options": {"include_usage": True}}]
    for options in wishes:
        last = list(chats.stream(user("Which tea is my favourite?"), memory_scope="user", **options))[-1]
        assert hits_of(last)[0]["content"] == "My favourite tea is oolong."


def test_calls_of_tools_are_streamed_and_nothing_is_stored(served: Service, model: FakeOpenAI, chats: Chats) -> None:
    spoken = {**call("get_weather", city="Oslo"), "content": "Let me see."}
    model.script(spoken)
    chunks = list(chats.stream(user("Rain in Oslo?"), tools=[WEATHER]))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Let me see."
    (called,) = [item for chunk in chunks for item in chunk.choices[0].delta.tool_calls or ()]
    assert (called.index, called.id, called.type) == (0, "call_get_weather", "function")
    assert called.function is not None
    assert (called.function.name, json.loads(called.function.arguments or "")) == ("get_weather", {"city": "Oslo"})
    assert chunks[-1].choices[0].finish_reason == "tool_calls"
    assert texts(served, user=chats.user) == []


def test_the_helper_of_the_client_puts_it_together(model: FakeOpenAI, chats: Chats) -> None:
    model.script(call("get_weather", city="Oslo"))
    messages: Any = [user("Rain?")]
    tools: Any = [WEATHER]
    with chats.client.chat.completions.stream(
        model="fake-chat", messages=messages, user=chats.user, tools=tools, extra_body={"memory_id": "t1"}
    ) as stream:
        whole = stream.get_final_completion()
    (called,) = whole.choices[0].message.tool_calls or []
    assert json.loads(called.function.arguments) == {"city": "Oslo"}


@pytest.mark.parametrize(("status", "shown"), [(500, 502), (400, 502), (401, 502)])
def test_what_fails_before_the_first_word_is_a_plain_status(
    served: Service, model: FakeOpenAI, chats: Chats, status: int, shown: int
) -> None:
    model.fail(status, times=-1, path="/chat/completions")
    with pytest.raises(openai.APIStatusError) as raised:
        chats.stream(user("Hello."))
    assert raised.value.status_code == shown


def test_a_failure_amid_the_stream_is_an_error_chunk(served: Service, model: FakeOpenAI, user: str) -> None:
    model.script("These words never come to their end.")
    model.piece_seconds = 0.1
    body = {"stream": True, **hello("Speak.", user)}
    heard = list[str]()
    with served.http.stream("POST", "/v1/chat/completions", json=body) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: "):
                heard.append(line.removeprefix("data: "))
            if len(heard) == 3:
                model.hang()
                model.cut()
    assert "[DONE]" not in heard
    error = json.loads(heard[-1])["error"]
    assert (error["type"], error["code"]) == ("server_error", "model_unavailable")
    assert set(error) == {"message", "type", "param", "code"}
    model.recover()


def test_the_client_raises_what_fails_amid_the_stream(model: FakeOpenAI, chats: Chats) -> None:
    model.script("These words never come to their end.")
    model.piece_seconds = 0.1
    with chats.stream(user("Speak.")) as chunks:
        next(chunks)
        next(chunks)
        model.hang()
        model.cut()
        with pytest.raises(openai.APIError):
            list(chunks)


def test_a_client_that_leaves_mid_stream_loses_nothing(served: Service, model: FakeOpenAI, user: str) -> None:
    said = f"my pet is cat, says {user}"
    reply = " ".join(f"word{number}" for number in range(30))
    model.on_chat = learning
    model.script(reply)
    model.piece_seconds = 0.03
    body = {"stream": True, **hello(said, user)}
    with (
        httpx.Client(base_url=served.url, timeout=30) as client,
        client.stream("POST", "/v1/chat/completions", json=body, headers={"Idempotency-Key": "gone"}) as answer,
    ):
        for line in answer.iter_lines():
            if '"content":"word' in line:
                break
    assert texts(served, user=user) == [("user", said)], "it left while the model was still talking"
    until(lambda: len(texts(served, user=user)) == 2)
    assert served.settled("gone", user=user)["reply"] == reply
    assert facts(served, user=user) == {"pet": "cat"}


async def test_the_asynchronous_client_streams_too(served: Service, model: FakeOpenAI, user: str) -> None:
    async with openai.AsyncOpenAI(base_url=f"{served.url}/v1", api_key="unused", max_retries=0) as client:
        chunks = await client.chat.completions.create(
            model="fake-chat",
            user=user,
            messages=[{"role": "user", "content": "Hi."}],
            stream=True,
            extra_body={"memory_id": "t1"},
        )
        said = [chunk.choices[0].delta.content or "" async for chunk in chunks]
    assert "".join(said) == "All right."
