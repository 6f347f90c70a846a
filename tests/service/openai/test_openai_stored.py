"""A completion says what became of its turn: `X-Memory-Stored`, and `memory.stored` in the body or the last chunk."""

import json
from typing import Any

import pytest

from tests.fakes.openai_server import FakeOpenAI, call
from tests.service.support.chats import WEATHER, user
from tests.service.support.running import Service
from tests.service.support.scripts import texts

Json = dict[str, Any]


def asked(running: Service, whose: str, text: str, **more: Any) -> tuple[str | None, Json]:
    """Return the header and the body's `memory`; of a stream, what its last chunk says."""
    body = {"messages": [user(text)], "user": whose, **more}
    answer = running.http.post("/v1/chat/completions", json=body)
    assert answer.status_code == 200, answer.text
    header = answer.headers.get("X-Memory-Stored")
    if "stream" not in more:
        return header, answer.json()
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: ")]
    chunks = [json.loads(line) for line in lines if line != "[DONE]"]
    assert not [chunk for chunk in chunks[:-1] if "memory" in chunk]
    return header, chunks[-1]


@pytest.mark.parametrize(
    "form", [{}, {"stream": True}, {"stream": True, "stream_options": {"include_usage": True}}], ids=str
)
def test_a_turn_is_stored_where_a_thread_is_named(
    served: Service, model: FakeOpenAI, user: str, form: dict[str, Any]
) -> None:
    header, said = asked(served, user, "Hello.", memory_id="t1", **form)
    whole = served.get(f"/api/turns/{said['memory']['turn_id']}", user_id=user)
    assert whole["thread_id"] == "t1"
    kept = {"stored": True, "user_id": user, "thread_id": "t1", "turn_id": whole["turn_id"], "reason": None}
    assert (header, said["memory"]) == ("true", kept)
    header, said = asked(served, user, "Hello.", **form)
    unkept = {"stored": False, "user_id": user, "thread_id": None, "turn_id": None, "reason": "no_thread"}
    assert (header, said["memory"]) == ("false", unkept)
    assert len(texts(served, user=user)) == 2
    model.script(call("get_weather", city="Oslo"))
    header, said = asked(served, user, "Does it rain?", memory_id="t2", tools=[WEATHER], **form)
    assert (header, said["memory"]) == ("false", {**unkept, "thread_id": "t2", "reason": None})
    assert served.get("/api/threads", user_id=user)["items"][0]["thread_id"] == "t1"


@pytest.mark.parametrize("form", [{}, {"stream": True}], ids=str)
def test_a_stored_turn_that_is_asked_for_again_is_stored(offline: Service, user: str, form: dict[str, Any]) -> None:
    body = {"messages": [{"role": "user", "content": "I live in Oslo."}], "user": user, "memory_id": "t1"}
    for _ in range(2):
        headers = {"Idempotency-Key": "k1"}
        answer = offline.http.post("/v1/chat/completions", json={**body, **form}, headers=headers)
        assert answer.headers["X-Memory-Stored"] == "true"


def test_the_offline_model_says_that_nothing_is_kept(offline: Service, user: str) -> None:
    _, said = asked(offline, user, "I live in Oslo.")
    told = said["choices"][0]["message"]["content"]
    assert "nothing is kept" in told
    assert "Noted" not in told
    _, said = asked(offline, user, "I live in Oslo.", memory_id="t1")
    assert said["choices"][0]["message"]["content"] == "Noted: you live in Oslo."
