"""Turns of one thread run in their order of arrival, one at a time; a repeated turn_id is one turn."""

import asyncio
import http.client
import json
import socket
from typing import Any

import httpx
import pytest

from tests.fakes.openai_answers import extraction_tool
from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.running import Service, until
from tests.service.support.scripts import events, learning, message_of, post, posting, prompt, texts

TURNS = 50


def users_messages(running: Service, user: str) -> list[str]:
    return [content for role, content in texts(running, user=user) if role == "user"]


def status_of(connection: socket.socket) -> int:
    """Return the status of the next response, read whole."""
    answer = http.client.HTTPResponse(connection)
    answer.begin()
    answer.read()
    return answer.status


def check_windows(model: FakeOpenAI, stored: list[tuple[str, str]]) -> None:
    """Check that each prompt is a prefix of the stored order: reply k saw exactly the k turns before it."""
    flat = [content for _, content in stored]
    prompts = [prompt(body) for body in model.chats]
    assert prompts == [flat[: 2 * place + 1] for place in range(len(prompts))]


async def test_fifty_turns_at_once_are_stored_one_after_another(served: Service, model: FakeOpenAI, user: str) -> None:
    async with httpx.AsyncClient(base_url=served.url, timeout=60, limits=httpx.Limits(max_connections=None)) as client:

        async def ask(number: int) -> dict[str, Any]:
            body = {"user_id": user, "thread_id": "t1", "message": f"Number {number}.", "memory": {"window": 50}}
            answer = await client.post("/api/agent", json=body)
            assert answer.status_code == 200, answer.text
            shown: dict[str, Any] = answer.json()
            return shown

        answers = await asyncio.gather(*(ask(number) for number in range(TURNS)))
    stored = texts(served, user=user)
    assert [role for role, _ in stored] == ["user", "assistant"] * TURNS
    order = [content for role, content in stored if role == "user"]
    assert sorted(order) == sorted(f"Number {number}." for number in range(TURNS))
    assert [answers[int(message[7:-1])]["memory"]["window"] for message in order] == list(range(TURNS))
    check_windows(model, stored)


def test_turns_are_stored_in_the_order_in_which_they_arrived(served: Service, model: FakeOpenAI, user: str) -> None:
    model.hang()
    first = posting(served, "First.", user=user)
    until(lambda: len(model.chats) == 1)
    connections = [socket.create_connection(("127.0.0.1", served.port), timeout=60) for _ in range(TURNS)]
    for connection in connections:  # Accepted beforehand: of new connections nobody knows the order.
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert status_of(connection) == 200
    served.get("/health")  # Now none of them is being read any more.
    for number, connection in enumerate(connections):
        body: dict[str, Any] = {"user_id": user, "thread_id": "t1", "message": f"Number {number}."}
        body |= {"memory": {"window": 0, "top_k": 0}}
        if number % 3:
            body["turn_id"] = f"turn{number}"
        content = json.dumps(body).encode()
        head = "POST /api/agent HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
    model.release()
    assert first.result(60).status_code == 200
    for connection in connections:
        assert status_of(connection) == 200
        connection.close()
    assert users_messages(served, user) == ["First.", *(f"Number {number}." for number in range(TURNS))]


def test_different_threads_run_side_by_side(served: Service, model: FakeOpenAI, user: str) -> None:
    model.hang()
    answers = [posting(served, "Hello.", user=user, thread=f"t{number}") for number in range(8)]
    answers += [posting(served, "Hello.", user=f"{user}-{number}") for number in range(8)]
    until(lambda: len(model.chats) == 16)
    model.release()
    assert [answer.result(60).status_code for answer in answers] == [200] * 16


def test_a_repeat_of_a_finished_turn_is_answered_at_once(served: Service, model: FakeOpenAI, user: str) -> None:
    model.on_chat = learning
    first = served.turn("my pet is cat", user=user, turn_id="one", wait_for_memory=True)
    model.hang()
    busy = posting(served, "Busy.", user=user)
    until(lambda: len(model.chats) == 2)
    again = served.turn("my pet is cat", user=user, turn_id="one")
    assert again == first
    streamed = events(post(served, "my pet is cat", user=user, turn_id="one", stream=True).text)
    assert [name for name, _ in streamed] == ["turn", "memory", "message", "done"]
    assert streamed[2][1] == first
    assert not busy.done()
    model.release()
    assert busy.result(60).status_code == 200
    assert [prompt(body)[-1] for body in model.chats] == ["my pet is cat", "Busy."]


def test_the_same_turn_at_once_plain_and_streaming_is_one_turn(served: Service, model: FakeOpenAI, user: str) -> None:
    said = f"my pet is cat, says {user}"
    model.on_chat = learning
    model.script("One reply for all.")
    model.hang()
    plain = [posting(served, said, user=user, turn_id="one") for _ in range(4)]
    streams = [posting(served, said, user=user, turn_id="one", stream=True) for _ in range(4)]
    until(lambda: len(model.chats) == 1)
    # Some may come before and some after the reply: both are repeats.
    model.release()
    shown = [answer.result(60) for answer in plain]
    assert [answer.status_code for answer in shown] == [200] * 4
    told = [events(answer.result(60).text) for answer in streams]
    bodies = [answer.json() for answer in shown] + [dict(stream)["message"] for stream in told]
    assert {body["reply"] for body in bodies} == {"One reply for all."}
    for stream in told:
        names = [name for name, _ in stream]
        assert (names[:2], names[-2:]) == (["turn", "memory"], ["message", "done"])
        tokens = "".join(data["text"] for name, data in stream if name == "token")
        assert tokens in {"", "One reply for all."}
    served.settled("one", user=user)
    assert len(model.chats) == 1
    assert [message_of(body) for body in model.extractions].count(said) == 1
    assert texts(served, user=user) == [("user", said), ("assistant", "One reply for all.")]


def test_a_repeat_with_another_thread_or_message_is_refused(served: Service, model: FakeOpenAI, user: str) -> None:
    model.hang()
    running = posting(served, "Hello.", user=user, turn_id="one")
    until(lambda: len(model.chats) == 1)
    for wanted in ("running", "finished"):
        for thread, message in (("t2", "Hello."), ("t1", "Good bye.")):
            refused = post(served, message, user=user, thread=thread, turn_id="one")
            assert (refused.status_code, refused.json()["error"]["code"]) == (409, "turn_conflict"), wanted
        model.release()
        assert running.result(60).status_code == 200
    assert len(model.chats) == 1
    assert texts(served, user=user, thread="t2") == []


def test_repeats_of_a_failing_turn_share_its_error_and_can_be_sent_again(
    served: Service, model: FakeOpenAI, user: str
) -> None:
    said = f"my pet is cat, says {user}"
    model.fail(400, times=-1, path="chat")
    model.hang()
    answers = [posting(served, said, user=user, turn_id="one") for _ in range(3)]
    until(lambda: len(model.chats) >= 1)
    model.release()
    for answer in (waiting.result(60) for waiting in answers):
        assert (answer.status_code, answer.json()["error"]["code"]) == (502, "model_unavailable")
        assert answer.json()["error"]["turn_id"] == "one"
    assert users_messages(served, user) == [said]
    model.recover()
    model.on_chat = learning
    again = served.turn(said, user=user, turn_id="one", wait_for_memory=True)
    assert again["memory"]["update"]["status"] == "done"
    assert len(texts(served, user=user)) == 2
    assert [message_of(body) for body in model.extractions].count(said) == 1


@pytest.mark.parametrize("stream", [False, True])
def test_a_failed_turn_lets_the_next_one_of_its_thread_run(
    served: Service, model: FakeOpenAI, user: str, stream: bool
) -> None:
    model.on_chat = lambda body: None if extraction_tool(body) else 400
    failed = post(served, "Hello.", user=user, turn_id="one", stream=stream)
    if stream:
        assert events(failed.text)[-1][0] == "error"
    else:
        assert failed.status_code == 502
    model.on_chat = None
    following = served.turn("Again.", user=user)
    assert following["memory"]["window"] == 0
    assert prompt(model.chats[-1]) == ["Again."]
