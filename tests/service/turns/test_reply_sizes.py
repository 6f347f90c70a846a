"""Replies up to MAX_REPLY_CHARACTERS are kept whole everywhere; longer ones leave a turn that can be repeated."""

import json
from pathlib import Path

import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.export_of import exported
from tests.service.support.running import Service, model_settings, service
from tests.service.support.scripts import events, post
from tests.service.support.shapes import refused

MOST = 1_000_000


@pytest.mark.parametrize(
    "letters", ["żółty 日本 ", *(pytest.param(each, marks=pytest.mark.slow) for each in ("plain words ", "😀"))]
)
def test_a_reply_of_the_most_characters_is_returned_stored_and_imported_whole(
    served: Service, model: FakeOpenAI, offline: Service, user: str, letters: str
) -> None:
    reply = (letters * MOST)[: MOST - 1] + "."
    whole = {"choices": [{"index": 0, "message": {"role": "assistant", "content": reply}, "finish_reason": "stop"}]}
    model.script(json.dumps({"id": "c", "model": "m", **whole}, ensure_ascii=False).encode())
    turn = served.turn("Tell me all.", user=user, turn_id="long", wait_for_memory=True)
    assert turn["reply"] == reply
    assert served.get("/api/turns/long", user_id=user)["reply"] == reply
    lines = exported(served, user)
    assert offline.http.post("/api/import", content=lines).json()["failed"] == []
    assert offline.get("/api/turns/long", user_id=user)["reply"] == reply
    asked = {"user_id": f"{user}2", "thread_id": "t", "timestamp": 1}
    said = [{**asked, "role": "user", "content": "All?"}, {**asked, "role": "assistant", "content": reply}]
    plain = "\n".join(json.dumps(line) for line in said)
    assert offline.http.post("/api/import", content=plain).json()["failed"] == []
    _, answered = offline.get("/api/threads/t/messages", user_id=f"{user}2")["items"]
    assert answered["content"] == reply


@pytest.mark.parametrize("stream", [False, True])
def test_a_longer_reply_is_an_error_and_its_turn_is_repeatable(tmp_path: Path, fake: FakeOpenAI, stream: bool) -> None:
    with service(tmp_path, **model_settings(fake.url, MAX_REPLY_CHARACTERS="1000")) as running:
        fake.script("word " * 201)
        answer = post(running, "Tell me all.", turn_id="one", stream=stream)
        if stream:
            name, data = events(answer.text)[-1]
            assert (name, data["error"]["code"], data["error"]["turn_id"]) == ("error", "model_unavailable", "one")
        else:
            assert refused(answer, 502, "model_unavailable")["turn_id"] == "one"
        assert running.get("/api/turns/one", user_id="ada")["state"] == "unfinished"
        fake.script("x" * 1_000)
        assert running.turn("Tell me all.", turn_id="one")["reply"] == "x" * 1_000


def test_an_agents_reply_is_bounded_too(tmp_path: Path) -> None:
    code = "async def agent(state):\n    return {'reply': 'x' * len(state['message']) * 2}\n"
    (tmp_path / "chatty.py").write_text(code)
    with service(tmp_path, AGENT="chatty:agent", MAX_REPLY_CHARACTERS="20") as running:
        refused(post(running, "Hello there."), 502, "model_unavailable")
        assert len(running.turn("0123456789")["reply"]) == 20
