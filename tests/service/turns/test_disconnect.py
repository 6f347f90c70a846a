"""A client that goes away costs nothing of its turn."""

import httpx
import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.running import Service, until
from tests.service.support.scripts import facts, hits, learning, message_of, texts

REPLY = " ".join(f"word{number}" for number in range(30))


def finished(running: Service, turn_id: str, user: str) -> bool:
    answer = running.http.get(f"/api/turns/{turn_id}", params={"user_id": user})
    return answer.status_code == 200 and answer.json()["reply"] is not None


def check_whole(running: Service, model: FakeOpenAI, user: str, message: str) -> None:
    """Check that the turn "gone" is stored, learned from and findable, at one call each."""
    until(lambda: finished(running, "gone", user))
    turn = running.settled("gone", user=user)
    assert turn["reply"] == REPLY
    assert turn["memory"]["update"]["status"] == "done"
    assert texts(running, user=user) == [("user", message), ("assistant", REPLY)]
    assert facts(running, user=user) == {"pet": "cat"}
    assert len(model.chats) == 1
    assert [message_of(body) for body in model.extractions].count(message) == 1
    assert not any(request.abandoned for request in model.requests)
    again = running.turn(message, user=user, turn_id="gone")
    assert again["reply"] == REPLY
    assert len(model.chats) == 1
    assert message in {hit["content"] for hit in hits(running, "the cat", user=user)}


def test_a_client_that_leaves_mid_stream_loses_nothing(served: Service, model: FakeOpenAI, user: str) -> None:
    said = f"my pet is cat, says {user}"
    model.on_chat = learning
    model.script(REPLY)
    model.piece_seconds = 0.03
    body = {"user_id": user, "thread_id": "t1", "message": said, "turn_id": "gone", "stream": True}
    with (
        httpx.Client(base_url=served.url, timeout=30) as client,
        client.stream("POST", "/api/agent", json=body) as answer,
    ):
        for line in answer.iter_lines():
            if line == "event: token":
                break
    assert not finished(served, "gone", user), "it left while the model was still talking"
    check_whole(served, model, user, said)


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_while_the_model_thinks_loses_nothing(
    served: Service, model: FakeOpenAI, user: str, stream: bool
) -> None:
    said = f"my pet is cat, says {user}"
    model.on_chat = learning
    model.script(REPLY)
    model.hang()
    body = {"user_id": user, "thread_id": "t1", "message": said, "turn_id": "gone", "stream": stream}
    with httpx.Client(base_url=served.url, timeout=0.5) as client, pytest.raises(httpx.ReadTimeout):
        client.post("/api/agent", json=body)
    until(lambda: len(model.chats) == 1)
    assert not finished(served, "gone", user)
    model.release()
    check_whole(served, model, user, said)


def test_a_waiting_turn_whose_client_left_still_runs(served: Service, model: FakeOpenAI, user: str) -> None:
    model.on_chat = learning
    model.hang()
    with httpx.Client(base_url=served.url, timeout=0.5) as client:
        for number in range(3):
            body = {"user_id": user, "thread_id": "t1", "message": f"Number {number}.", "turn_id": f"n{number}"}
            with pytest.raises(httpx.ReadTimeout):
                client.post("/api/agent", json=body)
    model.release()
    until(lambda: all(finished(served, f"n{number}", user) for number in range(3)))
    said = [content for role, content in texts(served, user=user) if role == "user"]
    assert said == ["Number 0.", "Number 1.", "Number 2."]
