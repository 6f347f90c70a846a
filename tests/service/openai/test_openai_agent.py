"""The door with an agent of the user's own behind it, with documents, and with an erasure in between."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.fakes.openai_server import FakeOpenAI, call
from tests.service.support.chats import WEATHER, Chats, assistant, hits_of, system, user
from tests.service.support.documents_of import add
from tests.service.support.running import Service, service
from tests.service.support.scripts import texts

Json = dict[str, Any]

AGENT = """
import json


async def ask(state: dict) -> dict:
    if state["tool_results"]:
        return {"reply": json.dumps(state["tool_results"])}
    if any(tool["function"]["name"] == "get_weather" for tool in state["tools"]):
        return {"tool_calls": [{"id": "w1", "name": "get_weather", "args": {"city": "Oslo"}}]}
    said = [[message["role"], message["content"]] for message in state["window"]]
    return {"reply": json.dumps(said), "usage": {"input_tokens": 1, "output_tokens": 2}}
"""


@pytest.fixture(scope="module")
def own_agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder: Path = tmp_path_factory.mktemp("own")
    (folder / "my_agent.py").write_text(AGENT, encoding="utf-8")
    with service(folder, AGENT="my_agent:ask") as running:
        yield running


@pytest.fixture
def asked(own_agent: Service, user: str) -> Iterator[Chats]:
    with openai.OpenAI(base_url=f"{own_agent.url}/v1", api_key="unused", max_retries=0) as client:
        yield Chats(client, user)


def test_an_own_agent_reads_the_clients_history(own_agent: Service, asked: Chats) -> None:
    answer = asked.ask(system("Be brief."), user("Past."), assistant("Yes."), user("Now."), model=openai.omit)
    said = json.loads(answer.choices[0].message.content or "")
    assert said == [["system", "Be brief."], ["user", "Past."], ["assistant", "Yes."]]
    assert answer.model == "my_agent:ask"
    chunks = list(asked.stream(user("Streamed."), model="offline", stream_options={"include_usage": True}))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1]).startswith("[")
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 3
    assert len(texts(own_agent, user=asked.user)) == 4


def test_an_own_agent_calls_the_clients_tools(own_agent: Service, asked: Chats) -> None:
    first = asked.ask(user("Rain?"), model="offline", tools=[WEATHER])
    assert first.choices[0].finish_reason == "tool_calls"
    result = {"role": "tool", "tool_call_id": "w1", "content": "It rains."}
    message = first.choices[0].message.model_dump(exclude_none=True)
    second = asked.ask(user("Rain?"), message, result, model="offline", tools=[WEATHER])
    assert json.loads(second.choices[0].message.content or "") == [
        {"id": "w1", "name": "get_weather", "content": "It rains."}
    ]
    assert len(texts(own_agent, user=asked.user)) == 2


def test_domains_choose_the_documents(served: Service, model: FakeOpenAI, chats: Chats) -> None:
    add(served, chats.user, "Oolong is a tea from Fujian.", title="Tea", domain="drinks")
    add(served, chats.user, "Oolong is also a racing horse.", title="Horse", domain="sports")
    asked: list[tuple[Json, Json, set[str]]] = [
        ({"memory_domains": ["drinks"]}, {}, {"Oolong is a tea from Fujian."}),
        ({}, {"X-Memory-Domains": "sports, music"}, {"Oolong is also a racing horse."}),
        ({"memory_domains": ["drinks"]}, {"X-Memory-Domains": "sports"}, {"Oolong is a tea from Fujian."}),
    ]
    for place, (fields, headers, found) in enumerate(asked):
        hits = hits_of(chats.ask(user("What is oolong?"), thread=f"t{place}", headers=headers, **fields))
        assert {hit["content"] for hit in hits if hit["role"] == "document"} == found


def test_an_erasure_drops_what_waits_for_the_clients_results(served: Service, model: FakeOpenAI, chats: Chats) -> None:
    both = call("get_weather", city="Oslo")
    both["tool_calls"] += call("search_memory", query="x")["tool_calls"]
    model.script(both)
    first = chats.ask(user("Rain?"), tools=[WEATHER])
    assert served.http.delete(f"/api/users/{chats.user}").status_code == 200
    result = {"role": "tool", "tool_call_id": "call_get_weather", "content": "It rains."}
    message = first.choices[0].message.model_dump(exclude_none=True)
    chats.ask(user("Rain?"), message, result, tools=[WEATHER])
    told = [item["content"] for item in model.chats[-1]["messages"] if item["role"] == "tool"]
    assert told == ["It rains."]


def test_an_erasure_ends_a_turn_that_is_stored_late(served: Service, model: FakeOpenAI, chats: Chats) -> None:
    model.script("One two three four five six.")
    model.piece_seconds = 0.2
    with chats.stream(user("Count."), tools=[WEATHER]) as chunks:
        next(chunks)
        assert served.http.delete(f"/api/users/{chats.user}").status_code == 200
        with pytest.raises(openai.APIError) as raised:
            list(chunks)
    assert "erased" in raised.value.message
    assert texts(served, user=chats.user) == []
