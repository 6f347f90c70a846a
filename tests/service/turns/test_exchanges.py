"""Checks `POST /api/exchanges`: what an agent elsewhere heard and said is a turn like one of the own agent's."""

from pathlib import Path
from typing import Any

import pytest

from tests.service.support.running import Service, service
from tests.service.support.scripts import facts
from tests.service.support.shapes import check_turn, refused

Json = dict[str, Any]


def body(user: str, said: str, reply: str | None = "Noted.", *, thread: str = "t1", **more: Any) -> Json:
    assistant = None if reply is None else {"content": reply}
    return {"user_id": user, "thread_id": thread, "user": {"content": said}, "assistant": assistant, **more}


def store(running: Service, given: Json | list[Json]) -> Json:
    answer = running.http.post("/api/exchanges", json=given)
    assert answer.status_code == 200, answer.text
    shown: Json = answer.json()
    return shown


def messages(running: Service, user: str, thread: str = "t1") -> list[Json]:
    found: list[Json] = running.get(f"/api/threads/{thread}/messages", user_id=user)["items"]
    return found


def searched(running: Service, user: str, query: str) -> list[str]:
    given = {"user_id": user, "query": query, "kinds": ["episode"], "score_threshold": -1.0}
    return [hit["content"] for hit in running.http.post("/api/memory/search", json=given).json()["hits"]]


def test_it_is_stored_indexed_learned_from_and_undone(offline: Service, user: str) -> None:
    turn = store(offline, body(user, "My name is Ada.", "Hello, Ada!", turn_id="one", wait_for_memory=True))
    check_turn(turn)
    assert (turn["reply"], turn["model"], turn["memory"]["update"]["status"]) == ("Hello, Ada!", "exchange", "done")
    assert offline.get("/api/turns/one", user_id=user) == turn
    assert [one["content"] for one in messages(offline, user)] == ["My name is Ada.", "Hello, Ada!"]
    assert facts(offline, user=user) == {"name": "Ada"}
    assert set(searched(offline, user, "Ada")) == {"My name is Ada.", "Hello, Ada!"}
    assert offline.turn("Who am I?", user=user)["memory"]["window"] == 1
    undone = offline.http.post("/api/turns/one/undo", params={"user_id": user}).json()["undone"]
    assert [change["key"] for change in undone] == ["name"]
    assert facts(offline, user=user) == {}


def test_a_repeat_is_the_stored_turn_and_another_content_a_conflict(offline: Service, user: str) -> None:
    given = body(user, "I live in Oslo.", turn_id="same", messages=[{"role": "tool", "content": "12 degrees"}])
    first = store(offline, given)
    assert store(offline, given)["turn_id"] == first["turn_id"] == "same"
    assert len(messages(offline, user)) == 2
    for wrong in (
        body(user, "I live in Rome.", turn_id="same", messages=given["messages"]),
        body(user, "I live in Oslo.", "Other.", turn_id="same", messages=given["messages"]),
        body(user, "I live in Oslo.", None, turn_id="same", messages=given["messages"]),
        body(user, "I live in Oslo.", turn_id="same"),
        body(user, "I live in Oslo.", turn_id="same", messages=given["messages"], thread="t2"),
    ):
        error = refused(offline.http.post("/api/exchanges", json=wrong), 409, "turn_conflict")
        assert error["turn_id"] == "same"
    assert len(messages(offline, user)) == 2
    # The own agent's repeat of the same turn is the stored one too.
    assert offline.turn("I live in Oslo.", user=user, turn_id="same")["reply"] == "Noted."


def test_a_turn_may_have_no_reply(offline: Service, user: str) -> None:
    turn = store(offline, body(user, "My name is Bob.", None, turn_id="quiet", wait_for_memory=True))
    assert turn["reply"] is None
    assert "state" not in turn
    assert turn["memory"]["update"]["status"] == "done"
    assert [one["content"] for one in messages(offline, user)] == ["My name is Bob."]
    assert facts(offline, user=user) == {"name": "Bob"}


def test_only_the_users_further_messages_are_evidence(offline: Service, user: str) -> None:
    further = [
        {"role": "assistant", "content": "I live in Bergen."},
        {"role": "tool", "content": "My name is Mallory.", "name": "lookup"},
        {"role": "user", "content": "I work as a nurse.", "name": "Eve", "metadata": {"n": 1}},
    ]
    given = body(user, "Look it up for me, please.", messages=further, turn_id="group", wait_for_memory=True)
    turn = store(offline, given)
    assert facts(offline, user=user) == {"occupation": "nurse"}
    assert [(one["role"], one["content"]) for one in turn["messages"]] == [
        (one["role"], one["content"]) for one in further
    ]
    assert turn["messages"][2]["metadata"] == {"n": 1}
    assert [one["role"] for one in messages(offline, user)[0]["messages"]] == ["assistant", "tool", "user"]
    given = {"user_id": user, "thread_id": "t1", "message": "And now?"}
    window = offline.http.post("/api/context", json=given).json()["window"]
    assert [one["content"] for one in window] == [
        *("Look it up for me, please.", "I live in Bergen.", "I work as a nurse.", "Noted.")
    ]
    assert offline.turn("And now?", user=user)["memory"]["window"] == 1


FURTHER = [
    {"role": "user", "content": "The zebra is called Zoe.", "name": "Eve"},
    {"role": "assistant", "content": "Zebras sleep standing."},
    {"role": "tool", "content": "zebra: 3 results"},
    {"role": "system", "content": "Speak of a zebra politely."},
]


def points(running: Service, user: str) -> int:
    found: int = running.get("/memory-stats", user_id=user)["points"]
    return found


def test_what_people_and_agents_further_said_is_found(tmp_path: Path) -> None:
    with service(tmp_path) as running:
        store(running, body("u", "Let us talk.", messages=FURTHER, turn_id="one", wait_for_memory=True))
        given = {"user_id": "u", "query": "zebra", "kinds": ["episode"], "score_threshold": -1.0}
        hits = running.http.post("/api/memory/search", json=given).json()["hits"]
        assert {hit["content"] for hit in hits} == {
            *("Let us talk.", "The zebra is called Zoe.", "Zebras sleep standing.", "Noted.")
        }
        (eve,) = [hit for hit in hits if hit["name"] == "Eve"]
        assert (eve["role"], eve["turn_id"]) == ("user", "one")
        assert points(running, "u") == 4
        assert running.get("/api/admin/doctor")["healthy"]
        assert running.http.post("/api/admin/reindex", json={}).status_code == 200
        again = running.http.post("/api/memory/search", json=given).json()["hits"]
        assert [(hit["id"], hit["score"]) for hit in again] == [(hit["id"], hit["score"]) for hit in hits]
        running.stop()
        running.start()
        assert running.get("/api/admin/doctor")["healthy"]
        assert running.http.delete("/api/threads/t1", params={"user_id": "u"}).status_code == 204
        assert points(running, "u") == 0
        report = running.get("/api/admin/doctor")
        assert (report["healthy"], report["users"]) == (True, [])


def test_what_is_not_to_be_learned_is_found_all_the_same(offline: Service, user: str) -> None:
    turn = store(offline, body(user, "My name is Carol.", learn=False, wait_for_memory=True))
    update = turn["memory"]["update"]
    assert (update["status"], update["reason"], update["changes"]) == ("skipped", "not_learned", [])
    assert facts(offline, user=user) == {}
    assert "My name is Carol." in searched(offline, user, "Carol")


def test_order_is_of_arrival_and_dates_are_kept(offline: Service, user: str) -> None:
    store(offline, body(user, "This came first."))
    old = {"content": "This is older.", "created_at": "2021-03-04T05:06:07Z", "name": "Ada", "metadata": {"a": 1}}
    store(offline, {**body(user, ""), "user": old})
    shown = messages(offline, user)
    assert [one["content"] for one in shown] == ["This came first.", "Noted.", "This is older.", "Noted."]
    assert shown[2]["created_at"] == shown[3]["created_at"] == "2021-03-04T05:06:07.000Z"
    assert (shown[2]["name"], shown[2]["metadata"]) == ("Ada", {"a": 1})


def test_several_are_stored_in_order(offline: Service, user: str) -> None:
    given = [body(user, f"Message {number}.", turn_id=f"many-{number}") for number in range(100)]
    items = store(offline, given)["items"]
    assert [item["turn_id"] for item in items] == [one["turn_id"] for one in given]
    said = [one["content"] for one in offline.get("/api/threads/t1/messages", user_id=user, limit=200)["items"]]
    assert said[::2] == [f"Message {number}." for number in range(100)]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"user": {"content": ""}}, "user.content"),
        ({"user": {"content": "x" * 200_001}}, "user.content"),
        ({"user": {"content": "x", "name": ""}}, "user.name"),
        ({"assistant": {"content": ""}}, "assistant.content"),
        ({"messages": [{"role": "judge", "content": "x"}]}, "messages.0.role"),
        ({"messages": [{"role": "tool", "content": "x"}] * 101}, "messages"),
        ({"turn_id": "a b"}, "turn_id"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_an_array_is_checked_whole(offline: Service, user: str, wrong: Json, field: str) -> None:
    good = body(user, "Fine.")
    error = refused(offline.http.post("/api/exchanges", json={**good, **wrong}), 422, "invalid_request")
    assert [detail["field"] for detail in error["details"]] == [field]
    error = refused(offline.http.post("/api/exchanges", json=[good, {**good, **wrong}]), 422, "invalid_request")
    assert [detail["field"] for detail in error["details"]] == [f"1.{field}"]
    assert messages(offline, user) == []


def test_an_array_has_1_to_100(offline: Service, user: str) -> None:
    for wrong in ([], [body(user, "Hi.")] * 101, None, "x"):
        refused(offline.http.post("/api/exchanges", json=wrong), 422, "invalid_request")
    assert messages(offline, user) == []


def test_it_is_exported_imported_and_erased_with_its_further_messages(offline: Service, user: str) -> None:
    further = [{"role": "user", "content": "I keep zebras.", "name": "Eve"}]
    store(offline, body(user, "Hear them out.", messages=further, turn_id="kept", wait_for_memory=True))
    store(offline, body(user, "Is anybody there?", None, turn_id="quiet", wait_for_memory=True))
    before = {turn_id: offline.get(f"/api/turns/{turn_id}", user_id=user) for turn_id in ("kept", "quiet")}
    exported = offline.http.get(f"/api/users/{user}/export")
    assert "zebras" in exported.text
    assert offline.http.delete(f"/api/users/{user}").status_code == 200
    assert offline.http.get("/api/turns/kept", params={"user_id": user}).status_code == 404
    answer = offline.http.post("/api/import", content=exported.content)
    assert answer.status_code == 200, answer.text
    for turn_id, turn in before.items():
        assert offline.get(f"/api/turns/{turn_id}", user_id=user) == turn
    assert "I keep zebras." in searched(offline, user, "zebras")
    assert points(offline, user) == 4


def test_what_was_answered_survives_a_kill(tmp_path: Path) -> None:
    with service(tmp_path) as running:
        given = body("u", "My name is Ada.", turn_id="one", messages=[{"role": "user", "content": "I live in Oslo."}])
        store(running, given)
        running.kill()
        running.start()
        assert running.settled("one", user="u")["memory"]["update"]["status"] == "done"
        assert facts(running, user="u") == {"name": "Ada", "location": "Oslo"}
        assert store(running, given)["turn_id"] == "one"
        assert len(messages(running, "u")) == 2
        assert running.get("/api/admin/doctor")["healthy"]
