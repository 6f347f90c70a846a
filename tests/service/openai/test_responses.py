"""Responses with OpenAI's own Python client: plain and streaming, in threads, and what is kept of them."""

import json
from collections.abc import Sequence
from typing import Any

import openai
import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.chats import error_of, given, instructions
from tests.service.support.responses import ask, fate_of, stored
from tests.service.support.running import Service
from tests.service.support.scripts import texts

Json = dict[str, Any]


def test_a_text_becomes_a_turn_of_a_new_thread(
    served: Service, model: FakeOpenAI, client: openai.OpenAI, user: str
) -> None:
    model.script("Hello, Ada.")
    answer = ask(client, user, "Hi, I'm Ada.", instructions="Be brief.", metadata={"from": "a test"})
    assert answer.output_text == "Hello, Ada."
    assert answer.status == "completed"
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.total_tokens) == (10, 2, 12)
    fate = fate_of(answer)
    assert fate == {**fate, "stored": True, "user_id": user, "reason": None}
    assert answer.id == f"resp_{fate['turn_id']}"
    assert answer.output[0].id == f"msg_{fate['turn_id']}"
    assert answer.metadata == {"from": "a test"}
    assert "Be brief." in instructions(model.chats[-1])
    assert stored(served, user, answer) == [("user", "Hi, I'm Ada."), ("assistant", "Hello, Ada.")]
    messages = served.get(f"/api/threads/{fate['thread_id']}/messages", user_id=user)["items"]
    assert messages[0]["metadata"] == {"from": "a test"}


def test_a_response_goes_on_in_the_thread_of_the_one_before(
    served: Service, model: FakeOpenAI, client: openai.OpenAI, user: str
) -> None:
    first = ask(client, user, "One.", instructions="Only now.")
    second = ask(client, user, "Two.", previous_response_id=first.id)
    assert second.previous_response_id == first.id
    assert given(model.chats[-1]) == ["One.", "All right.", "Two."]
    assert "Only now." not in instructions(model.chats[-1])
    assert fate_of(second)["thread_id"] == fate_of(first)["thread_id"]
    same = ask(client, user, "Two.", previous_response_id=second.id)
    assert same.id != second.id, "the same words again are a new turn"
    assert len(stored(served, user, same)) == 6


def test_a_response_may_go_on_from_an_older_one(
    served: Service, model: FakeOpenAI, client: openai.OpenAI, user: str
) -> None:
    first = ask(client, user, "One.")
    ask(client, user, "Two.", previous_response_id=first.id)
    ask(client, user, "Other.", previous_response_id=first.id)
    assert given(model.chats[-1]) == ["One.", "All right.", "Other."]


def test_a_conversation_is_a_thread(served: Service, model: FakeOpenAI, client: openai.OpenAI, user: str) -> None:
    answer = ask(client, user, "One.", conversation="talk-1")
    assert fate_of(answer)["thread_id"] == "talk-1"
    assert answer.conversation is not None
    assert answer.conversation.id == "talk-1"
    ask(client, user, "One.", conversation={"id": "talk-1"})
    assert given(model.chats[-1]) == ["One.", "All right.", "One."]
    assert len(texts(served, user=user, thread="talk-1")) == 4


def test_a_whole_history_may_be_sent(served: Service, model: FakeOpenAI, client: openai.OpenAI, user: str) -> None:
    picture = "data:image/png;base64,AAAA"
    items: Sequence[Json] = [
        {"role": "developer", "content": "Answer in rhyme."},
        {"role": "user", "content": "Before."},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "What is this?"},
                {"type": "input_image", "image_url": picture, "detail": "low"},
            ],
        },
    ]
    answer = ask(client, user, items)
    sent = model.chats[-1]["messages"]
    assert "Answer in rhyme." in sent[0]["content"]
    assert [message["content"] for message in sent[1:3]] == ["Before.", "Yes."]
    image = {"type": "image_url", "image_url": {"url": picture, "detail": "low"}}
    assert sent[3]["content"] == [{"type": "text", "text": "What is this?"}, image]
    assert stored(served, user, answer)[0] == ("user", "What is this?")


def test_nothing_is_kept_of_what_the_client_does_not_want_stored(
    served: Service, model: FakeOpenAI, client: openai.OpenAI, user: str
) -> None:
    first = ask(client, user, "One.")
    answer = ask(client, user, "Two.", previous_response_id=first.id, store=False)
    assert given(model.chats[-1]) == ["One.", "All right.", "Two."]
    unkept = {"stored": False, "user_id": user, "thread_id": None, "turn_id": None, "reason": "store_false"}
    assert fate_of(answer) == unkept
    assert len(stored(served, user, first)) == 2
    with pytest.raises(openai.BadRequestError):
        ask(client, user, "Three.", previous_response_id=answer.id)


def test_parameters_are_passed_on(model: FakeOpenAI, client: openai.OpenAI, user: str) -> None:
    schema = {"type": "json_schema", "name": "one", "schema": {"type": "object"}, "strict": True}
    model.script('{"a": 1}')
    ask(
        client,
        user,
        "As JSON.",
        text={"format": schema, "verbosity": "low"},
        max_output_tokens=50,
        reasoning={"effort": "low"},
        temperature=0.5,
    )
    sent = model.chats[-1]
    assert sent["response_format"]["json_schema"] == {"name": "one", "schema": {"type": "object"}, "strict": True}
    assert (sent["verbosity"], sent["reasoning_effort"], sent["temperature"]) == ("low", "low", 0.5)
    assert sent["max_completion_tokens"] == 50


def test_the_events_come_in_their_order(served: Service, model: FakeOpenAI, client: openai.OpenAI, user: str) -> None:
    model.script("One two three.")
    with client.responses.stream(model="fake-chat", input="Count.", extra_body={"user": user}) as stream:
        events = list(stream)
        whole = stream.get_final_response()
    kinds = [event.type for event in events]
    assert list(dict.fromkeys(kinds)) == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert kinds.count("response.output_text.delta") > 1
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert whole.output_text == "One two three."
    assert whole.usage is not None
    fate = fate_of(whole)
    assert (fate["stored"], whole.id) == (True, f"resp_{fate['turn_id']}")
    assert stored(served, user, whole)[1] == ("assistant", "One two three.")


def test_a_failure_amid_a_stream_is_its_last_event(served: Service, model: FakeOpenAI, user: str) -> None:
    model.script(" ".join(f"word{number}" for number in range(400)))
    model.piece_seconds = 0.02
    body: Json = {"input": "Tell me a story.", "stream": True, "user": user}
    with served.http.stream("POST", "/v1/responses", json=body, timeout=30) as answer:
        lines = answer.iter_lines()
        next(line for line in lines if line == "event: response.output_text.delta")
        model.hang()
        model.cut()
        events: list[Json] = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    assert [event["type"] for event in events[-2:]] == ["response.output_text.delta", "response.failed"]
    failed: Json = events[-1]["response"]
    assert (failed["status"], failed["output"], failed["error"]["code"]) == ("failed", [], "server_error")
    assert failed["error"]["message"].endswith(".")
    assert failed["memory"]["stored"] is False
    model.recover()


def test_a_failure_before_a_stream_is_a_plain_status(model: FakeOpenAI, client: openai.OpenAI, user: str) -> None:
    model.fail(500, times=-1, path="/chat/completions")
    with pytest.raises(openai.InternalServerError):
        client.responses.create(model="fake-chat", input="Hello.", stream=True, extra_body={"user": user})


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("background", {"background": True}),
        ("tools[0].type", {"tools": [{"type": "web_search"}]}),
        ("previous_response_id", {"previous_response_id": "resp_none"}),
        ("previous_response_id", {"previous_response_id": "resp_none", "conversation": "t1"}),
        ("prompt", {"prompt": {"id": "p1"}}),
        ("input", {"input": []}),
        ("input", {"input": [{"role": "assistant", "content": "Alone."}]}),
        ("input[0].id", {"input": [{"type": "item_reference", "id": "msg_none"}]}),
        ("input[0].type", {"input": [{"type": "web_search_call", "id": "ws_1", "status": "completed"}]}),
        ("input[0].content[0].image_url", {"input": [{"role": "user", "content": [{"type": "input_image"}]}]}),
        ("text.format.type", {"text": {"format": {"type": "xml"}}}),
        ("conversation", {"conversation": "a b"}),
    ],
)
def test_wrong_fields_are_named(client: openai.OpenAI, user: str, field: str, fields: Json) -> None:
    said = fields.pop("input", "Hello.")
    with pytest.raises(openai.BadRequestError) as raised:
        ask(client, user, said, **fields)
    assert error_of(raised.value)["param"] == field


def test_no_user_is_400(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        client.responses.create(model="fake-chat", input="Hello.")
    assert error_of(raised.value)["param"] == "user"
