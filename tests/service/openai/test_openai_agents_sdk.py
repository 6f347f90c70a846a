"""The OpenAI Agents SDK with only its client's base URL changed."""

from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
from agents import Agent, OpenAIResponsesModel, RunConfig, Runner, function_tool

from tests.fakes.openai_server import FakeOpenAI, call
from tests.service.support.running import Service
from tests.service.support.scripts import texts

UNTRACED = RunConfig(tracing_disabled=True)


@function_tool
def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"It rains in {city}."


@pytest.fixture
async def agent(served: Service, model: FakeOpenAI, user: str) -> "AsyncIterator[Agent[Any]]":
    """Yield an agent whose model is `served`, for `user`."""
    whose = {"X-Memory-User": user}
    async with openai.AsyncOpenAI(
        base_url=f"{served.url}/v1", api_key="unused", max_retries=0, default_headers=whose
    ) as client:
        answering = OpenAIResponsesModel(model="fake-chat", openai_client=client)
        yield Agent(name="Weather", instructions="Be brief.", model=answering, tools=[get_weather])


async def streamed(agent: "Agent[Any]", said: Any, **options: Any) -> Any:
    """Return a streamed run that has ended, and the kinds of its raw events."""
    run = Runner.run_streamed(agent, said, run_config=UNTRACED, **options)
    kinds = [event.data.type async for event in run.stream_events() if event.type == "raw_response_event"]
    return run, kinds


async def test_runs_in_a_conversation(served: Service, model: FakeOpenAI, agent: "Agent[Any]", user: str) -> None:
    model.script("Hello, you.", call("get_weather", city="Oslo"), "Yes, it does.")
    first = await Runner.run(agent, "Hello.", conversation_id="t1", run_config=UNTRACED)
    assert first.final_output == "Hello, you."
    second = await Runner.run(agent, "Does it rain in Oslo?", conversation_id="t1", run_config=UNTRACED)
    assert second.final_output == "Yes, it does."
    assert [text for _, text in texts(served, user=user)] == [
        *("Hello.", "Hello, you.", "Does it rain in Oslo?", "Yes, it does."),
    ]
    results = [message["content"] for message in model.chats[-1]["messages"] if message["role"] == "tool"]
    assert results == ["It rains in Oslo."]


async def test_runs_that_follow_a_response(served: Service, model: FakeOpenAI, agent: "Agent[Any]", user: str) -> None:
    model.script(call("get_weather", city="Oslo"), "Yes, it does.", "The sea.")
    first, kinds = await streamed(agent, "Does it rain in Oslo?", auto_previous_response_id=True)
    assert (first.final_output, kinds[0], kinds[-1]) == ("Yes, it does.", "response.created", "response.completed")
    second = await Runner.run(agent, "Why?", previous_response_id=first.last_response_id, run_config=UNTRACED)
    assert second.final_output == "The sea."
    threads = served.get("/api/threads", user_id=user)["items"]
    assert [thread["turns"] for thread in threads] == [2]


async def test_a_whole_history_may_be_sent(served: Service, model: FakeOpenAI, agent: "Agent[Any]", user: str) -> None:
    model.script(call("get_weather", city="Oslo"), "Yes, it does.")
    done = await Runner.run(agent, "Does it rain in Oslo?", run_config=UNTRACED)
    assert done.final_output == "Yes, it does."
    threads = served.get("/api/threads", user_id=user)["items"]
    assert [thread["turns"] for thread in threads] == [1]
