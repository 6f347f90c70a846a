from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fakes.openai_answers import Answer, Body, extraction_tool
from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.events import data_of, stream
from tests.service.support.lessons import add, chats_of, extractions_of, teach
from tests.service.support.running import Service, model_settings, service, until
from tests.service.support.shapes import ISO_TIME, check_turn, refused

CHAT = "/chat/completions"


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory, scripted_model: FakeOpenAI) -> Iterator[Service]:
    """Yield a service that waits two seconds for the model and one for the memory."""
    settings = model_settings(scripted_model.url, CHAT_TIMEOUT_SECONDS="2", MEMORY_WAIT_SECONDS="1")
    with service(tmp_path_factory.mktemp("impatient"), **settings) as running:
        yield running


def post(running: Service, user: str, message: str, thread: str = "t1", **fields: Any) -> httpx.Response:
    body = {"user_id": user, "thread_id": thread, "message": message, **fields}
    return running.http.post("/api/agent", json=body)


def stored(running: Service, user: str) -> list[str]:
    """Return the contents of the thread's messages."""
    return [item["content"] for item in running.get("/api/threads/t1/messages", user_id=user)["items"]]


def check_repeatable(running: Service, user: str, message: str, turn_id: str) -> None:
    """Check that the failed turn is stored unfinished; the same turn_id completes it and stores its message once."""
    assert stored(running, user) == [message]
    check_turn(running.get(f"/api/turns/{turn_id}", user_id=user), unfinished=True)
    assert running.turn(message, user=user, turn_id=turn_id)["reply"] == "All right."
    assert stored(running, user) == [message, "All right."]


@pytest.mark.parametrize("status", [500, 503, 429, 400, 401, 404])
def test_a_failing_model_is_502_and_the_turn_repeatable(
    served: Service, model: FakeOpenAI, user: str, status: int
) -> None:
    model.fail(status, times=-1, path=CHAT)
    error = refused(post(served, user, "Help me.", turn_id="kept"), 502, "model_unavailable")
    assert error["turn_id"] == "kept"
    assert "Help me" not in error["message"]
    assert model.url not in error["message"]
    model.recover()
    check_repeatable(served, user, "Help me.", "kept")


def test_a_generated_turn_id_is_told_in_the_error(served: Service, model: FakeOpenAI, user: str) -> None:
    model.drop(times=-1, path=CHAT)
    error = refused(post(served, user, "Help me."), 502, "model_unavailable")
    model.recover()
    check_repeatable(served, user, "Help me.", error["turn_id"])


@pytest.mark.parametrize(
    "answer",
    [b"<html>It works!</html>", b"", b"[]", {"choices": []}, {"choices": [{"index": 0}]}, {"content": ""}],
    ids=["html", "nothing", "list", "no choices", "no message", "no words"],
)
def test_garbage_is_502(served: Service, model: FakeOpenAI, user: str, answer: Answer) -> None:
    model.on_chat = lambda body: None if extraction_tool(body) else answer
    error = refused(post(served, user, "Help me.", turn_id="kept"), 502, "model_unavailable")
    assert error["turn_id"] == "kept"
    model.on_chat = None
    check_repeatable(served, user, "Help me.", "kept")


def test_a_reply_that_no_store_can_hold_loses_nothing(served: Service, model: FakeOpenAI, user: str) -> None:
    model.script("NUL \x00 and half of a pair \ud83d end.")
    turn = check_turn(served.turn("Speak.", user=user, turn_id="odd"))
    assert turn["reply"].startswith("NUL ")
    assert turn["reply"].endswith(" end.")
    assert stored(served, user) == ["Speak.", turn["reply"]]


def test_a_slow_model_is_504_and_the_turn_repeatable(impatient: Service, model: FakeOpenAI, user: str) -> None:
    model.hang()
    error = refused(post(impatient, user, "Help me.", turn_id="slow"), 504, "model_timeout")
    assert error["turn_id"] == "slow"
    model.release()
    check_repeatable(impatient, user, "Help me.", "slow")


def test_a_busy_thread_is_409_with_nothing_stored(tmp_path: Path, model: FakeOpenAI, user: str) -> None:
    settings = model_settings(model.url, THREAD_WAIT_SECONDS="0.5")
    with service(tmp_path, **settings) as running, ThreadPoolExecutor(2) as clients:
        model.hang()
        first = clients.submit(post, running, user, "First.")
        until(lambda: bool(chats_of(model, "First.")))
        for streamed in (False, True):
            busy = refused(post(running, user, "Second.", turn_id="second", stream=streamed), 409, "thread_busy")
            assert busy["turn_id"] is None
        refused(running.http.get("/api/turns/second", params={"user_id": user}), 404, "not_found")
        assert stored(running, user) == ["First."]
        elsewhere = clients.submit(post, running, user, "Elsewhere.", thread="t2")
        until(lambda: bool(chats_of(model, "Elsewhere.")))  # another thread of the same user is free
        model.release()
        assert (first.result().status_code, elsewhere.result().status_code) == (200, 200)
        assert running.turn("Second.", user=user, turn_id="second")["memory"]["window"] == 1


def test_waiting_for_memory_ends_in_pending(impatient: Service, model: FakeOpenAI, user: str) -> None:
    model.on_chat = lambda body: 503 if extraction_tool(body) else None
    turn = check_turn(impatient.turn("Hello from Oslo.", user=user, wait_for_memory=True))
    assert turn["memory"]["update"]["status"] == "pending"
    events = stream(impatient, "Hello again from Oslo.", user=user, wait_for_memory=True)
    assert data_of(events, "update")["status"] == "pending"
    model.on_chat = None
    assert impatient.settled(turn["turn_id"], user=user)["memory"]["update"]["status"] == "done"


def test_an_embedder_that_is_down_costs_the_search_alone(served: Service, model: FakeOpenAI, user: str) -> None:
    served.turn("I like jazz.", user=user, wait_for_memory=True)
    model.fail(503, times=-1, path="/embeddings")
    within = served.turn("Do I like jazz?", user=user)
    assert within["memory"]["degraded"] == []  # nothing lies beyond the window: the embedder is not asked
    message = f"I am {user}."
    teach(model, {message: [add(user, key="name")]})
    beyond = check_turn(served.turn(message, user=user, turn_id="beyond", memory={"window": 0}))
    assert beyond["memory"]["degraded"] == ["search_memories"]
    assert beyond["memory"]["hits"] == []
    assert beyond["reply"] == "All right."
    # The facts do not wait for the index.
    until(lambda: bool(served.get(f"/api/users/{user}/facts")["facts"]))
    assert served.get("/api/turns/beyond", user_id=user)["memory"]["update"]["status"] == "pending"
    model.recover()
    assert served.settled("beyond", user=user)["memory"]["update"]["status"] == "done"
    assert len(extractions_of(model, message)) == 1
    found = served.turn("Who am I?", user=user, memory={"window": 0, "score_threshold": -1, "top_k": 50})
    assert message in [hit["content"] for hit in found["memory"]["hits"]]


def test_an_extraction_outage_is_waited_for(served: Service, model: FakeOpenAI, user: str) -> None:
    message = f"I am {user}."
    model.on_chat = lambda body: 503 if extraction_tool(body) else None
    turn = served.turn(message, user=user, turn_id="taught")
    assert turn["reply"] == "All right."
    until(lambda: len(extractions_of(model, message)) >= 3)
    until(lambda: message in _found(served, user))  # the index does not wait for the facts
    pending = check_turn(served.get("/api/turns/taught", user_id=user))["memory"]["update"]
    why = "The model's provider is out of order or too busy (503)."
    assert (pending["status"], pending["reason"]) == ("pending", f"facts: {why}")
    facts = pending["steps"]["facts"]
    assert (facts["status"], facts["reason"]) == ("pending", why)
    assert facts["tries"] >= 2
    assert ISO_TIME.fullmatch(facts["next_try_at"])
    assert pending["steps"]["index"] == {"status": "done", "tries": 1, "reason": None, "next_try_at": None}
    teach(model, {message: [add(user, key="name")]})
    update = served.settled("taught", user=user)["memory"]["update"]
    assert (update["status"], update["reason"]) == ("done", None)
    assert served.get(f"/api/users/{user}/facts")["facts"] == {"name": user}


def _found(running: Service, user: str) -> list[str]:
    turn = running.turn("?", user=user, memory={"window": 0, "score_threshold": -1, "top_k": 50})
    return [hit["content"] for hit in turn["memory"]["hits"]]


def test_unreadable_extractions_fail_after_five_attempts_and_the_next_goes_on(
    served: Service, model: FakeOpenAI, user: str
) -> None:
    bad, good = f"Unreadable, says {user}.", f"Readable, says {user}."

    def gibberish(body: Body) -> Answer | None:
        asked = str(body["messages"])
        extracts = extraction_tool(body) is not None or "response_format" in body
        if extracts and bad in asked:
            return "I would rather chat about something else."
        if extracts and good in asked:
            return '{"decisions": [{"decision": "add", "key": "mood", "value": "readable", "evidence": "Readable"}]}'
        return None

    model.on_chat = gibberish
    served.turn(bad, user=user, turn_id="bad")
    served.turn(good, user=user, turn_id="good")
    why = "facts: The extraction model's answer could not be read as decisions."
    until(lambda: served.get("/api/turns/bad", user_id=user)["memory"]["update"]["reason"] == why)
    update = served.settled("bad", user=user, seconds=60)["memory"]["update"]
    assert (update["status"], update["reason"]) == ("failed", why)
    facts = update["steps"]["facts"]
    assert (facts["status"], facts["tries"], facts["next_try_at"]) == ("failed", 5, None)
    assert (update["changes"], update["refused"]) == ([], [])
    assert len(extractions_of(model, bad)) == 5
    assert served.settled("good", user=user, seconds=60)["memory"]["update"]["status"] == "done"
    assert served.get(f"/api/users/{user}/facts")["facts"] == {"mood": "readable"}
    assert bad in _found(served, user)  # failing to learn did not keep it from being found
