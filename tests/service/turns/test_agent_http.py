from uuid import UUID

import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.lessons import add, teach
from tests.service.support.running import Service
from tests.service.support.shapes import check_turn, fields, refused


def test_a_turn_has_exactly_the_contracts_shape(offline: Service, user: str) -> None:
    turn = check_turn(offline.turn("Hi, I'm Ada.", user=user, thread="t1", turn_id="one"))
    assert (turn["turn_id"], turn["user_id"], turn["thread_id"]) == ("one", user, "t1")
    assert turn["model"] == "offline"
    assert turn["memory"]["update"]["status"] in {"pending", "done"}
    assert turn["timings_ms"]["total"] >= turn["timings_ms"]["agent"] >= 0


def test_changes_refusals_and_hits_have_the_contracts_shape(served: Service, model: FakeOpenAI, user: str) -> None:
    lives = add("Oslo", key="city", evidence="I live in Oslo")
    teach(model, {"I live in Oslo.": [lives, add("Oslo", key="job", evidence="I am a nurse")]})
    first = check_turn(served.turn("I live in Oslo.", user=user, wait_for_memory=True))
    update = first["memory"]["update"]
    assert (update["status"], update["reason"], update["model"]) == ("done", None, "fake-chat")
    (change,) = update["changes"]
    assert change == {
        "decision": "add",
        "fact_id": change["fact_id"],
        "key": "city",
        "before": None,
        "after": "Oslo",
        "evidence": "I live in Oslo",
        "reason": None,
    }
    (refusal,) = update["refused"]
    assert refusal == {
        "decision": "add",
        "fact_id": None,
        "key": "job",
        "value": "Oslo",
        "evidence": "I am a nurse",
        "reason": "the quote is not in the user's message",
    }
    second = check_turn(served.turn("Where do I live in Oslo?", user=user, memory={"window": 0}))
    assert second["memory"]["facts"] == {"city": "Oslo"}
    hit = second["memory"]["hits"][0]
    assert (hit["content"], hit["role"], hit["kind"]) == ("I live in Oslo.", "user", "episode")
    assert (hit["thread_id"], hit["turn_id"]) == ("t1", first["turn_id"])
    assert hit["id"] == hit["message_id"]
    assert second["usage"] == {"input_tokens": 10, "output_tokens": 2}
    assert (second["model"], second["reply"]) == ("fake-chat", "All right.")


def test_a_turn_id_is_generated_where_none_is_given(offline: Service, user: str) -> None:
    absent = offline.turn("Hello.", user=user)["turn_id"]
    null = offline.turn("Hello.", user=user, turn_id=None)["turn_id"]
    assert absent != null
    assert UUID(absent)
    assert UUID(null)


def test_query_and_session_id_are_other_names(offline: Service, user: str) -> None:
    answer = offline.http.post("/api/agent", json={"user_id": user, "session_id": "s", "query": "Hello."})
    turn = check_turn(answer.json())
    assert turn["thread_id"] == "s"
    messages = offline.get("/api/threads/s/messages", user_id=user)["items"]
    assert messages[0]["content"] == "Hello."


@pytest.mark.parametrize(("alias", "value"), [("query", "Hello."), ("session_id", "t1"), ("query", None)])
def test_both_names_at_once_are_refused_and_named(offline: Service, user: str, alias: str, value: str | None) -> None:
    body = {"user_id": user, "thread_id": "t1", "message": "Hello.", alias: value}
    assert fields(offline.http.post("/api/agent", json=body)) == [alias]
    assert offline.get("/api/threads/t1/messages", user_id=user)["items"] == []


def test_metadata_is_kept_with_the_users_message(offline: Service, user: str) -> None:
    metadata = {"a.b": 1, "$c": [None, True, 1.5, {"ü": "é"}], "": "empty"}
    offline.turn("Hello.", user=user, metadata=metadata)
    asked, answered = offline.get("/api/threads/t1/messages", user_id=user)["items"]
    assert asked["metadata"] == metadata
    assert answered["metadata"] == {}


def test_two_users_with_the_same_ids_never_meet(offline: Service, user: str) -> None:
    other = f"{user}-other"
    mine = offline.turn("My name is Ada.", user=user, turn_id="same", wait_for_memory=True)
    theirs = offline.turn("My name is Bob.", user=other, turn_id="same", wait_for_memory=True)
    assert (mine["user_id"], theirs["user_id"]) == (user, other)
    asked = offline.turn("What is my name?", user=user, memory={"window": 0, "scope": "user", "score_threshold": -1})
    assert "Ada" in asked["reply"]
    assert "Bob" not in str(asked)


def test_a_finished_turn_is_read_back_as_it_was_answered(offline: Service, user: str) -> None:
    answered = offline.turn("My name is Ada.", user=user, turn_id="read", wait_for_memory=True)
    assert check_turn(offline.get("/api/turns/read", user_id=user)) == answered


def test_another_users_turn_is_not_found(offline: Service, user: str) -> None:
    offline.turn("Hello.", user=user, turn_id="mine")
    foreign = offline.http.get("/api/turns/mine", params={"user_id": f"{user}-other"})
    unknown = offline.http.get("/api/turns/never", params={"user_id": user})
    assert refused(foreign, 404, "not_found") == refused(unknown, 404, "not_found")
    assert refused(unknown, 404, "not_found")["turn_id"] is None
