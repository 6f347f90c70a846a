"""Checks `POST /api/context`: what an agent elsewhere is given is what a turn would have been given."""

from typing import Any

import pytest

from recollect.memory.mem_agent import MemoryAgent
from recollect.memory.values.errors import InvalidRequest
from recollect.memory.values.mem_config import MemoryConfig
from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.lessons import add, chats_of, teach
from tests.service.support.running import Service
from tests.service.support.shapes import HIT, MESSAGE, check, refused

FIELDS = {"block", "facts", "notes", "summary", "window", "hits", "degraded", "tokens", "timings_ms"}


def context(running: Service, user: str, message: str, *, thread: str = "t1", **memory: Any) -> dict[str, Any]:
    body = {"user_id": user, "thread_id": thread, "message": message, "memory": memory}
    answer = running.http.post("/api/context", json=body)
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    assert set(shown) == FIELDS
    return shown


@pytest.mark.parametrize("memory", [{}, {"window": 0, "score_threshold": -1, "top_k": 3, "scope": "user"}])
def test_the_block_is_the_turns_byte_for_byte(
    served: Service, model: FakeOpenAI, user: str, memory: dict[str, Any]
) -> None:
    first = f"I am {user}, from Oslo, and like tea."
    teach(model, {first: [add(user, key="name"), add("Oslo", key="city"), add("tea", key=None)]})
    served.turn(first, user=user, wait_for_memory=True)
    message = f"Where from, asks {user}?"
    given = context(served, user, message, **memory)
    turn = served.turn(message, user=user, memory=memory)
    (chat,) = chats_of(model, message)
    system, *said, _ = chat["messages"]
    assert given["block"]
    assert str(system["content"]).endswith(f"\n\n{given['block']}")
    assert str(system["content"]).count("<memory>") == 1
    assert [(one["role"], one["content"]) for one in given["window"]] == [(one["role"], one["content"]) for one in said]
    assert given["facts"] == turn["memory"]["facts"] == {"name": user, "city": "Oslo"}
    assert [hit["id"] for hit in given["hits"]] == [hit["id"] for hit in turn["memory"]["hits"]]
    assert (given["summary"], given["degraded"]) == (None, [])


def test_it_shows_window_hits_and_tokens(offline: Service, user: str) -> None:
    offline.turn("I keep bees in Bergen.", user=user, wait_for_memory=True)
    given = context(offline, user, "bees", score_threshold=-1, window=0)
    assert "I keep bees in Bergen." in [check(HIT, hit)["content"] for hit in given["hits"]]
    given = context(offline, user, "bees")
    assert [check(MESSAGE, message)["role"] for message in given["window"]] == ["user", "assistant"]
    assert given["tokens"]["window"] >= len("I keep bees in Bergen.") // 4
    assert given["tokens"]["block"] == -(-len(given["block"]) // 4)
    assert 0 < given["timings_ms"]["recall"] <= given["timings_ms"]["total"]


def test_nobody_and_nothing_are_empty_and_stay_so(offline: Service, user: str) -> None:
    given = context(offline, user, "Who am I?")
    assert (given["block"], given["facts"], given["window"], given["hits"]) == ("", {}, [], [])
    assert offline.get("/api/threads", user_id=user)["items"] == []
    offline.turn("My name is Ada.", user=user, wait_for_memory=True)
    before = offline.get("/memory-stats", user_id=user)
    assert context(offline, user, "My name is Bob, not Ada.", thread="t2")["facts"] == {"name": "Ada"}
    assert offline.get("/memory-stats", user_id=user) == before
    assert context(offline, user, "Who am I?", enabled=False)["block"] == ""


def test_bad_requests_name_their_fields(offline: Service, user: str) -> None:
    good = {"user_id": user, "thread_id": "t1", "message": "Hi"}
    wrongs: list[tuple[dict[str, Any], str]] = [
        ({"message": ""}, "message"),
        ({"message": "x" * 200_001}, "message"),
        ({"thread_id": "a b"}, "thread_id"),
        ({"memory": {"window": 51}}, "memory.window"),
        ({"memory": {"kinds": []}}, "memory.kinds"),
        ({"stream": True}, "stream"),
    ]
    for wrong, field in wrongs:
        answer = offline.http.post("/api/context", json={**good, **wrong})
        assert field in str(refused(answer, 422, "invalid_request")["details"])


async def test_the_library_has_it_too() -> None:
    async with MemoryAgent("ada", "t1", MemoryConfig(data_dir=":memory:")) as agent:  # pyright: ignore[reportArgumentType] - texts are taken too
        assert (await agent.context("Hi"))["block"] == ""
        await agent.update_facts_and_embeddings("My name is Ada.", "Hello, Ada!")
        given = await agent.context("Who am I?", window=0, score_threshold=-1)
        assert given["facts"] == {"name": "Ada"}
        assert "My name is Ada." in [hit["content"] for hit in given["hits"]]
        wrongs: list[dict[str, Any]] = [{"window": 51}, {"top_k": True}, {"timezone": "Mars"}, {"domains": [""]}]
        wrongs.append({"kinds": ["fact"]})
        for wrong in wrongs:
            with pytest.raises(InvalidRequest, match="memory"):
                await agent.context("Hi", **wrong)
