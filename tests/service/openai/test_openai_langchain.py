"""LangChain's ChatOpenAI with only its base URL changed."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from tests.fakes.openai_server import FakeOpenAI, call
from tests.service.support.chats import given, instructions
from tests.service.support.running import Service
from tests.service.support.scripts import texts

TOOL_CALL = {"city": "Oslo"}


@tool
def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"It rains in {city}."


@pytest.fixture
def langchain(served: Service, model: FakeOpenAI, user: str) -> Iterator[ChatOpenAI]:
    """Yield a ChatOpenAI whose user is `user`, in the thread t1."""
    with httpx.Client() as http:
        yield ChatOpenAI(
            model="fake-chat",
            base_url=f"{served.url}/v1",
            api_key=SecretStr("unused"),
            http_client=http,
            max_retries=0,
            temperature=0.2,
            extra_body={"user": user, "memory_id": "t1"},
        )


def untyped(model: ChatOpenAI) -> Any:
    """LangChain types some of its methods only in part."""
    return model


def answer_of(model: Any, *messages: BaseMessage) -> AIMessage:
    """Return what the model says."""
    answer = model.invoke(list(messages))
    assert isinstance(answer, AIMessage)
    return answer


def test_an_invocation_is_a_turn(served: Service, model: FakeOpenAI, langchain: ChatOpenAI, user: str) -> None:
    model.script("Hello Ada.", "Ada.")
    first = answer_of(langchain, SystemMessage("Be brief."), HumanMessage("I'm Ada."))
    assert (first.content, first.response_metadata["finish_reason"]) == ("Hello Ada.", "stop")
    assert first.usage_metadata is not None
    assert first.usage_metadata["total_tokens"] == 12
    answer_of(langchain, SystemMessage("Be brief."), HumanMessage("I'm Ada."), first, HumanMessage("Who am I?"))
    assert "Be brief." in instructions(model.chats[-1])
    assert model.chats[-1]["temperature"] == 0.2
    assert given(model.chats[-1]) == ["I'm Ada.", "Hello Ada.", "Who am I?"]
    assert [text for _, text in texts(served, user=user)] == ["I'm Ada.", "Hello Ada.", "Who am I?", "Ada."]


def test_a_stream(model: FakeOpenAI, langchain: ChatOpenAI) -> None:
    model.script("One two three.")
    chunks = list(langchain.stream("Count."))
    assert "".join(str(chunk.text) for chunk in chunks) == "One two three."
    assert len(chunks) > 3


def test_bound_tools(served: Service, model: FakeOpenAI, langchain: ChatOpenAI, user: str) -> None:
    model.script(call("get_weather", **TOOL_CALL), "Yes.")
    bound = untyped(langchain).bind_tools([get_weather])
    asked = HumanMessage("Does it rain in Oslo?")
    called = answer_of(bound, asked)
    assert [(item["name"], item["args"]) for item in called.tool_calls] == [("get_weather", TOOL_CALL)]
    results = [
        ToolMessage(get_weather.invoke(item["args"]), tool_call_id=item["id"] or "") for item in called.tool_calls
    ]
    assert answer_of(bound, asked, called, *results).content == "Yes."
    assert given(model.chats[-1])[-1] == "It rains in Oslo."
    assert [text for _, text in texts(served, user=user)] == ["Does it rain in Oslo?", "Yes."]


def test_structured_output(model: FakeOpenAI, langchain: ChatOpenAI) -> None:
    schema = {"title": "City", "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    model.script('{"name": "Oslo"}')
    structured = untyped(langchain).with_structured_output(schema, method="json_schema")
    assert structured.invoke("Which city?") == {"name": "Oslo"}
    assert model.chats[-1]["response_format"]["type"] == "json_schema"


@pytest.fixture
def responses(served: Service, model: FakeOpenAI, user: str) -> Iterator[ChatOpenAI]:
    """Yield a ChatOpenAI of OpenAI's newer wire, whose user is `user`, in the thread t1."""
    with httpx.Client() as http:
        yield ChatOpenAI(
            model="fake-chat",
            base_url=f"{served.url}/v1",
            api_key=SecretStr("unused"),
            http_client=http,
            max_retries=0,
            use_responses_api=True,
            extra_body={"user": user, "memory_id": "t1"},
        )


def test_responses_are_turns_plain_and_streaming(
    served: Service, model: FakeOpenAI, responses: ChatOpenAI, user: str
) -> None:
    model.script("Hello Ada.", "One two three.")
    first = answer_of(responses, SystemMessage("Be brief."), HumanMessage("I'm Ada."))
    assert first.text == "Hello Ada."
    assert first.usage_metadata is not None
    assert first.usage_metadata["total_tokens"] == 12
    assert "Be brief." in instructions(model.chats[-1])
    pieces = list(untyped(responses).stream([HumanMessage("I'm Ada."), first, HumanMessage("Count.")]))
    assert "".join(piece.text for piece in pieces) == "One two three."
    assert given(model.chats[-1]) == ["I'm Ada.", "Hello Ada.", "Count."]
    assert [text for _, text in texts(served, user=user)] == ["I'm Ada.", "Hello Ada.", "Count.", "One two three."]


def test_responses_with_tools(served: Service, model: FakeOpenAI, responses: ChatOpenAI, user: str) -> None:
    model.script(call("get_weather", **TOOL_CALL), "Yes, it does.")
    bound = untyped(responses).bind_tools([get_weather])
    question = HumanMessage("Does it rain in Oslo?")
    asked = answer_of(bound, question)
    (called,) = asked.tool_calls
    assert (called["name"], called["args"]) == ("get_weather", TOOL_CALL)
    result = ToolMessage("It rains in Oslo.", tool_call_id=called["id"] or "")
    assert answer_of(bound, question, asked, result).text == "Yes, it does."
    assert [text for _, text in texts(served, user=user)] == ["Does it rain in Oslo?", "Yes, it does."]


def test_responses_may_follow_the_one_before(
    served: Service, model: FakeOpenAI, responses: ChatOpenAI, user: str
) -> None:
    following = responses.model_copy(update={"use_previous_response_id": True})
    first = answer_of(following, HumanMessage("One."))
    answer_of(following, HumanMessage("One."), first, HumanMessage("Two."))
    assert given(model.chats[-1]) == ["One.", "All right.", "Two."]
    assert len(texts(served, user=user)) == 4
