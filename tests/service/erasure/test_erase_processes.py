"""Two services on one MongoDB, each with an index of its own: what one erases, the other drops."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pymongo import MongoClient
from pymongo.database import Database

from tests.fakes.openai_answers import Answer, Body, extraction_tool
from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.running import Service, model_settings, service, until
from tests.service.support.scripts import facts, learning, posting, texts

Document = dict[str, Any]
FOLLOWED_WITHIN = 60
"""Seconds: what the contract allows another process's index."""


@pytest.fixture
def database(mongodb_url: str) -> Iterator[Database[Document]]:
    with MongoClient[Document](mongodb_url, tz_aware=True) as client:
        name = f"recollect_test_{uuid4().hex[:12]}"
        yield client[name]
        client.drop_database(name)


@pytest.fixture
def settings(mongodb_url: str, database: Database[Document], fake: FakeOpenAI) -> dict[str, str]:
    return model_settings(fake.url, MONGODB_URL=mongodb_url, MONGODB_DATABASE=database.name)


@pytest.fixture
def pair(tmp_path: Path, settings: dict[str, str]) -> Iterator[tuple[Service, Service]]:
    with ExitStack() as stack:
        for name in ("one", "other"):
            (tmp_path / name).mkdir()
        one, other = (stack.enter_context(service(tmp_path / name, **settings)) for name in ("one", "other"))
        yield one, other


def points(running: Service, user: str) -> int:
    count: int = running.get("/memory-stats", user_id=user)["points"]
    return count


def has_bytes(running: Service, word: str) -> bool:
    try:
        files = [path for path in running.data_dir.rglob("*") if path.is_file()]
        return any(word.encode() in path.read_bytes() for path in files)
    except FileNotFoundError:  # old files are just being removed
        return True


@pytest.mark.slow  # The other's sweep is waited for.
def test_the_other_drops_what_was_erased_and_keeps_what_came_later(pair: tuple[Service, Service], user: str) -> None:
    one, other = pair
    for number in range(3):
        other.turn(f"my city{number} is Paris", user=user, thread="t1", wait_for_memory=True)
    other.turn("my city is Rome", user=f"{user}2", wait_for_memory=True)
    assert points(other, user) >= 6
    receipt = one.http.delete(f"/api/users/{user}").json()
    assert receipt["counts"]["conversations"] == 6
    assert receipt["counts"]["work"] == 1
    assert set(receipt["remaining"].values()) == {0}
    until(lambda: points(other, user) == 0, FOLLOWED_WITHIN)
    until(lambda: not has_bytes(other, f"{user}/"), FOLLOWED_WITHIN)
    assert points(other, f"{user}2") > 0
    fresh = other.turn("my dog is Rex", user=user, wait_for_memory=True)
    assert (fresh["memory"]["facts"], fresh["memory"]["hits"]) == ({}, [])
    kept = points(other, user)
    assert kept == 3
    other.turn("my city is Rome", user=f"{user}2", thread="t2", wait_for_memory=True)
    one.http.delete(f"/api/threads/t2?user_id={user}2")
    until(lambda: other.get("/memory-stats", user_id=f"{user}2", session_id="t2")["points"] == 0, FOLLOWED_WITHIN)
    assert points(other, user) == kept, "what came after the erasure stays"


def test_who_comes_back_at_the_other_meets_nothing_of_before(pair: tuple[Service, Service], user: str) -> None:
    one, other = pair
    other.turn("my city is Paris", user=user, thread="t1", wait_for_memory=True)
    assert one.http.delete(f"/api/users/{user}").status_code == 200
    back = other.turn("Which city is mine?", user=user, thread="t2", memory={"scope": "user", "top_k": 50})
    assert back["memory"]["hits"] == []
    assert back["memory"]["facts"] == {}


def test_a_turn_in_flight_at_the_other_is_too_late(pair: tuple[Service, Service], fake: FakeOpenAI, user: str) -> None:
    one, other = pair
    fake.hang()
    lost = posting(other, "my city is Paris", user=user, turn_id="one")
    until(lambda: len(fake.chats) == 1)
    assert one.http.delete(f"/api/users/{user}").status_code == 200
    # This turn is begun again here, before the model answers there.
    again = posting(one, "my city is Paris", user=user, turn_id="one", wait_for_memory=True)
    until(lambda: len(fake.chats) == 2)
    fake.release()
    assert again.result(60).status_code == 200
    late = lost.result(60)
    assert (late.status_code, late.json()["error"]["code"]) == (409, "user_erased")
    assert [role for role, _ in texts(one, user=user)] == ["user", "assistant"]


def test_what_the_other_is_learning_teaches_nothing(
    pair: tuple[Service, Service], fake: FakeOpenAI, database: Database[Document], user: str
) -> None:
    def reply_then_hang(body: Body) -> Answer | None:
        if extraction_tool(body) is None:
            fake.hang()
        return learning(body)

    one, other = pair
    fake.on_chat = reply_then_hang
    other.turn("my city is Paris", user=user)
    until(lambda: len(fake.extractions) == 1)
    assert one.http.delete(f"/api/users/{user}").status_code == 200
    fake.on_chat = learning
    fake.release()
    one.turn("my dog is Rex", user=user, wait_for_memory=True)
    assert facts(other, user=user) == {"dog": "Rex"}
    until(lambda: one.get("/api/admin/doctor")["healthy"], 30)
    assert database["user_facts"].count_documents({"user_id": user}) == 1


@pytest.mark.slow  # An erasure is left alone for a minute before another process takes it over.
def test_another_process_ends_an_erasure_whose_process_is_gone(
    pair: tuple[Service, Service], database: Database[Document], user: str
) -> None:
    one, other = pair
    other.turn("my city is Paris", user=user, wait_for_memory=True)
    erased = one.http.delete(f"/api/users/{user}").json()
    # As if it had been killed right behind its first write.
    one.kill()
    subject = database["erasures"].find_one({"_id": erased["erasure_id"]}) or {}
    other.turn("my city is Rome", user=user, wait_for_memory=True)
    unfinished = {"user_id": user, "thread_id": None, "is_done": False}
    database["erasures"].update_one({"_id": erased["erasure_id"]}, {"$set": unfinished})
    database["tombstones"].update_one({"_id": subject["subject"]}, {"$set": {"erasing": [erased["erasure_id"]]}})
    database["tombstones"].update_one({"_id": "*raises"}, {"$inc": {"raises": 1}})

    def refusal() -> str | None:
        answer = other.http.post("/api/agent", json={"user_id": user, "thread_id": "t1", "message": "Hi."})
        return answer.json().get("error", {}).get("code")

    until(lambda: refusal() == "user_erased", 5)
    until(lambda: "pending" not in other.get(f"/api/erasures/{erased['erasure_id']}"), 120)
    assert texts(other, user=user) == []
    assert points(other, user) == 0
    assert other.turn("my city is Bern", user=user)["reply"]
    assert user not in str(database["erasures"].find().to_list())
