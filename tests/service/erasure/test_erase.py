"""Erasing over HTTP: receipts, what is gone, turns in flight, and what comes afterwards."""

import json
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from tests.fakes.openai_answers import Answer, Body, extraction_tool
from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.commands import recollect
from tests.service.support.locked import caller, key_caller, owner_token, said
from tests.service.support.running import Service, model_settings, service, until
from tests.service.support.scripts import events, facts, hits, learning, posting, texts

HOLDERS = {
    "keys",
    "sessions",
    "work",
    "client_records",
    "conversations",
    "facts",
    "threads",
    "documents",
    "index",
    "terminal",
    "query_cache",
}


def erase(running: Service, user: str) -> dict[str, Any]:
    """Erase a user, which must succeed: the receipt. Nothing remains."""
    answer = running.http.delete(f"/api/users/{user}")
    assert answer.status_code == 200, answer.text
    receipt: dict[str, Any] = answer.json()
    assert set(receipt) == {"erasure_id", "erased_at", "counts", "remaining"}
    assert receipt["remaining"] == dict.fromkeys(HOLDERS, 0)
    assert set(receipt["counts"]) == HOLDERS
    return receipt


def whole(running: Service) -> None:
    found = running.get("/api/admin/doctor")["totals"]
    assert (found["missing"], found["orphaned"], found["wrong_fingerprint"]) == (0, 0, 0), found


def test_a_user_is_erased_and_starts_afresh(served: Service, model: FakeOpenAI, user: str) -> None:
    model.on_chat = learning
    for number in range(3):
        served.turn(f"my city{number} is Paris", user=user, thread=f"t{number % 2}", wait_for_memory=True)
    served.turn("my city is Rome", user=f"{user}2", wait_for_memory=True)
    served.http.put(f"/api/threads/t0/summary?user_id={user}", json={"summary": "They live in Paris."})
    served.http.post("/api/documents", json={"user_id": user, "text": "A note on Paris.", "title": "Paris"})
    receipt = erase(served, user)
    counts = receipt["counts"]
    assert (counts["conversations"], counts["facts"], counts["threads"], counts["documents"]) == (6, 3, 1, 1)
    assert counts["index"] >= 9
    assert served.get(f"/api/erasures/{receipt['erasure_id']}") == receipt
    assert user not in json.dumps(receipt)
    assert facts(served, user=user) == {}
    assert served.get("/api/threads", user_id=user)["items"] == []
    assert served.get("/api/documents", user_id=user)["items"] == []
    assert hits(served, "Paris", user=user, thread="other") == []
    assert facts(served, user=f"{user}2") == {"city": "Rome"}
    again = served.turn("my dog is Rex", user=user, thread="t0", turn_id="fresh", wait_for_memory=True)
    assert again["memory"]["facts"] == {}
    assert facts(served, user=user) == {"dog": "Rex"}
    assert {hit["content"] for hit in hits(served, "my dog is Rex", user=user, thread="t5")} >= {"my dog is Rex"}
    whole(served)
    assert erase(served, user)["counts"]["facts"] == 1


def test_an_unknown_user_gets_zeros_and_an_unknown_erasure_is_404(offline: Service, user: str) -> None:
    receipt = erase(offline, user)
    assert set(receipt["counts"].values()) == {0}
    assert offline.http.get("/api/erasures/unknown").status_code == 404
    assert offline.http.delete("/api/users/a%20b").status_code == 422


def test_a_thread_is_erased_alone(served: Service, model: FakeOpenAI, user: str) -> None:
    model.on_chat = learning
    served.turn("my city is Paris", user=user, thread="t1", wait_for_memory=True)
    served.turn("my dog is Rex", user=user, thread="t2", wait_for_memory=True)
    assert served.http.delete(f"/api/threads/t1?user_id={user}").status_code == 204
    assert served.http.delete(f"/api/threads/t1?user_id={user}").status_code == 404
    assert served.http.delete(f"/api/threads/unknown?user_id={user}").status_code == 404
    assert texts(served, user=user, thread="t1") == []
    assert len(texts(served, user=user, thread="t2")) == 2
    assert facts(served, user=user) == {"city": "Paris", "dog": "Rex"}
    assert {hit["thread_id"] for hit in hits(served, "Paris dog Rex", user=user, thread="t9")} <= {"t2", None}
    served.turn("my city is Rome", user=user, thread="t1")
    whole(served)


@pytest.mark.parametrize("path", ["/api/users/{user}", "/api/threads/t1?user_id={user}"])
def test_a_turn_in_flight_ends_at_once_and_its_late_answer_is_lost(
    served: Service, model: FakeOpenAI, user: str, path: str
) -> None:
    model.hang()
    plain = posting(served, "my city is Paris", user=user, turn_id="plain")
    until(lambda: len(model.chats) == 1)
    assert served.http.delete(path.format(user=user)).status_code in {200, 204}, "no model is waited for"
    lost = plain.result(10)
    assert lost.status_code == 409
    error = lost.json()["error"]
    assert (error["code"], error["turn_id"]) == ("user_erased", "plain")
    # Ask for this turn again, while the model still works on the erased one.
    model.on_chat = learning
    repeat = posting(served, "my city is Paris", user=user, turn_id="plain", wait_for_memory=True)
    until(lambda: len(texts(served, user=user)) == 1)
    model.release()
    assert repeat.result(30).status_code == 200
    assert [content for _, content in texts(served, user=user)] == ["my city is Paris", "All right."]
    assert facts(served, user=user) == {"city": "Paris"}
    whole(served)


def test_a_stream_in_flight_ends_with_the_event_error(served: Service, model: FakeOpenAI, user: str) -> None:
    model.hang()
    streamed = posting(served, "my city is Paris", user=user, turn_id="one", stream=True)
    until(lambda: len(model.chats) == 1)
    erase(served, user)
    seen = events(streamed.result(10).text)
    model.release()
    assert [name for name, _ in seen][-1] == "error"
    assert (seen[-1][1]["error"]["code"], seen[-1][1]["error"]["turn_id"]) == ("user_erased", "one")
    assert texts(served, user=user) == []


def test_what_is_being_learned_teaches_nothing(served: Service, model: FakeOpenAI, user: str) -> None:
    def reply_then_hang(body: Body) -> Answer | None:
        if extraction_tool(body) is None:
            model.hang()
        return learning(body)

    model.on_chat = reply_then_hang
    served.turn("my city is Paris", user=user)
    until(lambda: len(model.extractions) == 1)
    receipt = erase(served, user)
    assert receipt["counts"]["conversations"] == 2
    model.on_chat = learning
    model.release()
    served.turn("my dog is Rex", user=user, wait_for_memory=True)
    assert facts(served, user=user) == {"dog": "Rex"}
    whole(served)


def test_whoever_erased_sees_the_receipt_and_a_users_own_key_goes_too(tmp_path: Path) -> None:
    with (
        service(tmp_path, AUTH="api_key") as running,
        key_caller(running, "service") as one,
        key_caller(running, "service") as other,
        key_caller(running, "user:ada") as own,
        caller(running, owner_token(running)) as admin,
    ):
        said(own, "My name is Ada.")
        assert own.delete("/api/users/bob").status_code == 404
        erased = one.delete("/api/users/ada")
        assert erased.status_code == 200, erased.text
        assert (erased.json()["counts"]["keys"], erased.json()["remaining"]["keys"]) == (1, 0)
        path = f"/api/erasures/{erased.json()['erasure_id']}"
        assert [client.get(path).status_code for client in (one, other, admin, own)] == [200, 404, 200, 401]
        assert admin.get(path).json() == erased.json()


def test_the_command_asks_first_and_shows_the_receipt(tmp_path: Path) -> None:
    with service(tmp_path) as running:
        running.turn("My name is Ada.", wait_for_memory=True)
        refused = recollect(running, "erase", "--user", "ada")
        assert refused.returncode == 1
        assert "Erase everything of ada" in refused.stderr
        assert len(texts(running)) == 2
        erased = recollect(running, "erase", "--user", "ada", "--yes")
        assert erased.returncode == 0, erased.stderr
        assert "conversations" in erased.stdout
        assert texts(running) == []
        running.turn("My name is Bob.", user="bob", wait_for_memory=True)
        assert running.stop() == 0
        alone = recollect(running, "erase", "--user", "bob", "--yes", "--json")
        assert alone.returncode == 0, alone.stderr
        receipt = json.loads(alone.stdout)
        assert (receipt["counts"]["conversations"], set(receipt["remaining"].values())) == (2, {0})
        assert recollect(running, "erase", "--user", "a b", "--yes").returncode != 0


def test_no_id_is_in_tombstones_and_receipts(mongodb_url: str, tmp_path: Path, fake: FakeOpenAI, user: str) -> None:
    name = f"recollect_test_{user.replace('-', '_')}"
    with MongoClient[dict[str, Any]](mongodb_url) as client:
        try:
            with service(
                tmp_path, **model_settings(fake.url, MONGODB_URL=mongodb_url, MONGODB_DATABASE=name)
            ) as running:
                running.turn("my city is Paris", user=user, wait_for_memory=True)
                receipt = erase(running, user)
                assert receipt["counts"]["conversations"] == 2
                assert facts(running, user=user) == {}
                collections = client[name].list_collection_names()
                assert {"erasures", "tombstones"} <= set(collections)
                stored = {each: str(client[name][each].find().to_list()) for each in collections}
            left = {each for each, text in stored.items() if user in text or "Paris" in text}
            assert left == set()
        finally:
            client.drop_database(name)
