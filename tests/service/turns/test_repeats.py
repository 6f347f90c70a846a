from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.lessons import extractions_of
from tests.service.support.running import Service, until
from tests.service.support.shapes import check_turn, refused


def post(running: Service, user: str, message: str, thread: str = "t1", **fields: Any) -> httpx.Response:
    body = {"user_id": user, "thread_id": thread, "message": message, **fields}
    return running.http.post("/api/agent", json=body)


def asked(model: FakeOpenAI, message: str) -> int:
    """Return how many chat calls were made for this message."""
    return len([chat for chat in model.chats if chat["messages"][-1]["content"] == message])


def test_the_same_turn_id_returns_the_stored_result(served: Service, model: FakeOpenAI, user: str) -> None:
    model.script("The only answer.")
    first = served.turn("Tell me once.", user=user, turn_id="one", wait_for_memory=True)
    again = served.turn("Tell me once.", user=user, turn_id="one")
    differently = served.turn(
        "Tell me once.", user=user, turn_id="one", wait_for_memory=True, metadata={"a": 1}, memory={"enabled": False}
    )
    assert first == again == differently
    assert first["reply"] == "The only answer."
    assert asked(model, "Tell me once.") == 1
    assert len(extractions_of(model, "Tell me once.")) == 1
    assert len(served.get("/api/threads/t1/messages", user_id=user)["items"]) == 2


def test_a_repeat_after_newer_turns_keeps_its_place(served: Service, model: FakeOpenAI, user: str) -> None:
    for number in range(3):
        served.turn(f"Number {number}.", user=user, turn_id=f"n{number}")
    served.turn("Number 0.", user=user, turn_id="n0")
    messages = served.get("/api/threads/t1/messages", user_id=user)["items"]
    assert [message["turn_id"] for message in messages[::2]] == ["n0", "n1", "n2"]


def test_twice_at_once_is_one_call_and_one_answer(served: Service, model: FakeOpenAI, user: str) -> None:
    model.hang()
    with ThreadPoolExecutor(4) as clients:
        answers = [clients.submit(post, served, user, "At once.", turn_id="same") for _ in range(4)]
        until(lambda: asked(model, "At once.") == 1)
        unfinished = check_turn(served.get("/api/turns/same", user_id=user), unfinished=True)
        model.release()
        shown = [answer.result().json() for answer in answers]
    assert unfinished["memory"]["update"]["status"] == "pending"
    for turn in shown:
        check_turn(turn)
        turn["memory"].pop("update")
    assert shown == [shown[0]] * 4
    assert asked(model, "At once.") == 1
    assert len(served.get("/api/threads/t1/messages", user_id=user)["items"]) == 2


def test_an_unfinished_turn_shows_its_message_and_no_window_has_it(
    served: Service, model: FakeOpenAI, user: str
) -> None:
    model.fail(500, times=-1, path="/chat/completions")
    refused(post(served, user, "Lost words.", turn_id="lost"), 502, "model_unavailable")
    (message,) = served.get("/api/threads/t1/messages", user_id=user)["items"]
    assert (message["content"], message["turn_id"]) == ("Lost words.", "lost")
    check_turn(served.get("/api/turns/lost", user_id=user), unfinished=True)
    model.recover()
    later = served.turn("Next words.", user=user)
    assert later["memory"]["window"] == 0
    assert "Lost words." not in str(model.chats[-1]["messages"])
    found = served.turn("Lost words?", user=user, memory={"window": 0, "score_threshold": -1})["memory"]["hits"]
    assert "lost" not in [hit["turn_id"] for hit in found]
    # The repeat keeps its place: it is answered with what came before it alone.
    repeated = served.turn("Lost words.", user=user, turn_id="lost")
    assert repeated["memory"]["window"] == 0
    turns = [message["turn_id"] for message in served.get("/api/threads/t1/messages", user_id=user)["items"]]
    assert turns[:2] == ["lost", "lost"]
    assert len(turns) == 6


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("other", [{"message": "Other."}, {"thread_id": "t2"}])
def test_another_message_or_thread_is_a_conflict(
    served: Service, model: FakeOpenAI, user: str, other: dict[str, str], stream: bool
) -> None:
    body = {"user_id": user, "thread_id": "t1", "message": "Mine.", "turn_id": "taken"}
    repeat = {**body, **other, "stream": stream}
    model.hang()
    with ThreadPoolExecutor(1) as client:
        running = client.submit(post, served, user, "Mine.", turn_id="taken")
        until(lambda: asked(model, "Mine.") == 1)
        refused(served.http.post("/api/agent", json=repeat), 409, "turn_conflict")
        model.release()
        assert running.result().status_code == 200
    refused(served.http.post("/api/agent", json=repeat), 409, "turn_conflict")
    assert asked(model, "Other.") == 0
    assert len(served.get("/api/threads/t1/messages", user_id=user)["items"]) == 2
    assert served.get("/api/threads/t2/messages", user_id=user)["items"] == []


def test_a_conflict_with_an_unfinished_turn(served: Service, model: FakeOpenAI, user: str) -> None:
    model.fail(500, times=-1, path="/chat/completions")
    refused(post(served, user, "Mine.", turn_id="taken"), 502, "model_unavailable")
    refused(post(served, user, "Other.", turn_id="taken"), 409, "turn_conflict")
    refused(post(served, user, "Mine.", thread="t2", turn_id="taken"), 409, "turn_conflict")
    model.recover()
    assert served.turn("Mine.", user=user, turn_id="taken")["reply"] == "All right."


def test_the_same_turn_id_belongs_to_each_user_apart(served: Service, model: FakeOpenAI, user: str) -> None:
    served.turn("Mine.", user=user, turn_id="shared")
    served.turn("Theirs.", user=f"{user}-other", thread="t9", turn_id="shared")
    assert served.get("/api/turns/shared", user_id=user)["thread_id"] == "t1"


def test_a_repeat_of_a_running_turn_shares_its_error(served: Service, model: FakeOpenAI, user: str) -> None:
    model.fail(500, times=-1, path="/chat/completions")
    model.hang()
    with ThreadPoolExecutor(2) as clients:
        answers = [clients.submit(post, served, user, "Both fail.", turn_id="both") for _ in range(2)]
        until(lambda: asked(model, "Both fail.") == 1)
        model.release()
        errors = [refused(answer.result(), 502, "model_unavailable") for answer in answers]
    assert [error["turn_id"] for error in errors] == ["both", "both"]
    model.recover()
    before = asked(model, "Both fail.")
    assert served.turn("Both fail.", user=user, turn_id="both")["reply"] == "All right."
    assert asked(model, "Both fail.") == before + 1
    assert len(served.get("/api/threads/t1/messages", user_id=user)["items"]) == 2
