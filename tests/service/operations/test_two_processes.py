"""Services on MongoDB: one that is killed, and two that share a database, each with its own DATA_DIR."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from pymongo import MongoClient
from pymongo.database import Database

from recollect.memory.values.turn import derived_id
from tests.fakes.openai_answers import Answer, Body, extraction_tool
from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.running import Service, model_settings, service, until
from tests.service.support.scripts import facts, hits, learning, message_of, post, posting, prompt, texts

Document = dict[str, Any]
FIELDS = {
    "user_id",
    "thread_id",
    "session_id",
    "role",
    "name",
    "content",
    "metadata",
    "timestamp",
    "message_pair_id",
}


@pytest.fixture(scope="module")
def database(mongodb_url: str) -> Iterator[Database[Document]]:
    """Yield a database of these tests' own, dropped afterwards."""
    with MongoClient[Document](mongodb_url, tz_aware=True) as client:
        name = f"recollect_test_{uuid4().hex[:12]}"
        yield client[name]
        client.drop_database(name)


@pytest.fixture(scope="module")
def shared_model() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as made:
        yield made


@pytest.fixture
def fake(shared_model: FakeOpenAI) -> Iterator[FakeOpenAI]:
    shared_model.requests.clear()
    shared_model.on_chat = learning
    yield shared_model
    shared_model.recover()
    shared_model.chat_seconds = 0.0


@pytest.fixture(scope="module")
def settings(mongodb_url: str, database: Database[Document], shared_model: FakeOpenAI) -> dict[str, str]:
    return model_settings(
        shared_model.url, MONGODB_URL=mongodb_url, MONGODB_DATABASE=database.name, THREAD_WAIT_SECONDS="60"
    )


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, settings: dict[str, str]) -> Iterator[tuple[Service, Service]]:
    with ExitStack() as stack:
        one, other = (
            stack.enter_context(service(tmp_path_factory.mktemp(name), **settings)) for name in ("one", "other")
        )
        yield one, other


def said(running: Service, user: str, thread: str = "t1") -> list[str]:
    return [content for role, content in texts(running, user=user, thread=thread) if role == "user"]


@pytest.mark.slow  # A killed process is waited for until its lease ends.
def test_a_killed_service_on_mongodb_finds_its_turn_its_update_and_its_facts(
    tmp_path: Path, settings: dict[str, str], database: Database[Document], fake: FakeOpenAI, user: str
) -> None:
    with service(tmp_path, **settings) as running:
        turn = running.turn(f"my city is Paris, says {user}", user=user, turn_id="one")
        running.kill()
        running.start()
        settled = running.settled("one", user=user, seconds=60)
        assert settled["reply"] == turn["reply"]
        assert settled["memory"]["update"]["status"] == "done"
        assert [change["after"] for change in settled["memory"]["update"]["changes"]] == ["Paris"]
        assert facts(running, user=user) == {"city": "Paris"}
        assert len(texts(running, user=user)) == 2
        fake.hang()
        chats = len(fake.chats)
        lost = posting(running, "my dog is Rex", user=user, turn_id="two")
        until(lambda: len(fake.chats) == chats + 1)
        running.kill()
        with pytest.raises(httpx.TransportError):
            lost.result(10)
        fake.release()
        running.start()
        assert running.get("/api/turns/two", user_id=user)["state"] == "unfinished"
        assert len(texts(running, user=user)) == 3
        running.turn("my dog is Rex", user=user, turn_id="two")
        running.settled("two", user=user, seconds=60)
        assert facts(running, user=user) == {"city": "Paris", "dog": "Rex"}
        assert any("Paris" in hit["content"] for hit in hits(running, "city Paris", user=user, thread="t2"))
        assert running.stop() == 0
        assert "Rex" not in running.log
        assert settings["MONGODB_URL"] not in running.log
    check_documents(database, user)


def check_documents(database: Database[Document], user: str) -> None:
    """Check the schema as the field knows it."""
    stored = list(database["conversations"].find({"user_id": user, "thread_id": "t1"}).sort("position", 1))
    assert [(document["message_pair_id"], document["role"]) for document in stored] == [
        (turn_id, role) for turn_id in ("one", "two") for role in ("user", "assistant")
    ]
    for document in stored:
        assert set(document) >= FIELDS
        assert document["session_id"] == document["thread_id"] == "t1"
        assert document["_id"] == derived_id(user, document["message_pair_id"], document["role"])
        assert document["timestamp"].tzinfo is not None
    assert [document["timestamp"] for document in stored] == sorted(document["timestamp"] for document in stored)
    assert stored[2]["content"] == "my dog is Rex"
    indexes = [list(index["key"]) for index in database["conversations"].list_indexes()]
    assert ["user_id", "thread_id", "timestamp"] in indexes
    assert ["session_id", "timestamp"] in indexes
    known = {document["key"]: document for document in database["user_facts"].find({"user_id": user})}
    assert {key: document["value"] for key, document in known.items()} == {"city": "Paris", "dog": "Rex"}
    assert known["city"]["evidence"] == "my city is Paris"
    assert known["city"]["turn_id"] == "one"


def test_turns_of_one_thread_run_in_their_order_of_arrival_across_processes(
    pair: tuple[Service, Service], database: Database[Document], fake: FakeOpenAI, user: str
) -> None:
    def in_line() -> int:
        return sum(len(thread["tickets"]) for thread in database["thread_queue"].find())

    until(lambda: in_line() == 0)
    fake.hang()
    answers = list[Any]()
    for number in range(10):
        running = pair[number % 3 % 2]
        answers.append(posting(running, f"Number {number}.", user=user, memory={"window": 50}))
        until(lambda number=number: in_line() == number + 1)
    until(lambda: len(fake.chats) == 1)
    fake.release()
    assert [answer.result(60).status_code for answer in answers] == [200] * 10
    stored = [content for _, content in texts(pair[0], user=user)]
    assert stored[::2] == [f"Number {number}." for number in range(10)]
    assert [prompt(body) for body in fake.chats] == [stored[: 2 * place + 1] for place in range(10)]
    assert texts(pair[1], user=user) == texts(pair[0], user=user)
    until(lambda: in_line() == 0)


def test_a_turn_sent_to_both_at_once_is_stored_and_learned_once(
    pair: tuple[Service, Service], fake: FakeOpenAI, user: str
) -> None:
    for round_number in range(3):
        turn_id, message = f"turn{round_number}", f"my pet{round_number} is cat, says {user}"
        asked = [posting(pair[place % 2], message, user=user, turn_id=turn_id, stream=place > 1) for place in range(4)]
        answers = [answer.result(60) for answer in asked]
        assert [answer.status_code for answer in answers] == [200] * 4
        settled = pair[0].settled(turn_id, user=user, seconds=60)
        assert settled["memory"]["update"]["status"] == "done"
        assert len(settled["memory"]["update"]["changes"]) == 1
        assert pair[1].get(f"/api/turns/{turn_id}", user_id=user) == settled
        assert [prompt(body)[-1] for body in fake.chats].count(message) == 1
        assert [message_of(body) for body in fake.extractions].count(message) == 1
    assert said(pair[0], user) == [f"my pet{number} is cat, says {user}" for number in range(3)]
    assert facts(pair[1], user=user) == {f"pet{number}": "cat" for number in range(3)}


def test_a_users_updates_run_one_after_another_across_processes(
    pair: tuple[Service, Service], fake: FakeOpenAI, user: str
) -> None:
    at_once: list[int] = []

    def counted(body: Body) -> Answer | None:
        if extraction_tool(body) is not None and user in message_of(
            body
        ):  # It was under way until now, and all before it have ended.
            at_once.append(len([one for one in fake.extractions if user in message_of(one)]) - len(at_once))
        return learning(body)

    fake.on_chat = counted
    fake.chat_seconds = 0.2
    asked = [
        posting(pair[number % 2], f"my n{number} is v{number}, says {user}", user=user, thread=f"t{number}")
        for number in range(8)
    ]
    turns = [answer.result(60).json()["turn_id"] for answer in asked]
    for turn_id in turns:
        assert pair[0].settled(turn_id, user=user, seconds=60)["memory"]["update"]["status"] == "done"
    assert at_once == [1] * 8
    assert facts(pair[1], user=user) == {f"n{number}": f"v{number}" for number in range(8)}


@pytest.mark.slow  # As above.
def test_when_a_process_dies_the_other_goes_on_after_the_lease(
    pair: tuple[Service, Service], tmp_path: Path, settings: dict[str, str], fake: FakeOpenAI, user: str
) -> None:
    def reply_then_hang(body: Body) -> Answer | None:
        if extraction_tool(body) is None:
            fake.hang()
        return learning(body)

    survivor = pair[0]
    with service(tmp_path, **settings) as dying:
        fake.on_chat = reply_then_hang
        assert dying.turn(f"my pet is cat, says {user}", user=user, turn_id="one")["reply"]
        until(lambda: len(fake.extractions) == 1)  # It holds the claim …
        held = posting(dying, "It holds the thread.", user=user, turn_id="two")
        until(lambda: len(fake.chats) == 2)  # … and the thread.
        dying.kill()
        with pytest.raises(httpx.TransportError):
            held.result(10)
    fake.on_chat = learning
    fake.release()
    following = post(survivor, "The next one.", user=user)
    assert following.status_code == 200
    settled = survivor.settled("one", user=user, seconds=60)
    assert settled["memory"]["update"]["status"] == "done"
    assert facts(survivor, user=user) == {"pet": "cat"}
    assert said(survivor, user) == [f"my pet is cat, says {user}", "It holds the thread.", "The next one."]
    assert survivor.turn("It holds the thread.", user=user, turn_id="two")["reply"] == "All right."
    assert len(texts(survivor, user=user)) == 6


def test_both_follow_a_change_of_the_embedder(
    tmp_path_factory: pytest.TempPathFactory,
    fake: FakeOpenAI,
    settings: dict[str, str],
    database: Database[Document],
) -> None:
    own = {**settings, "EMBEDDING_MODEL": "lexical", "MONGODB_DATABASE": f"{database.name}_embedders"}
    with ExitStack() as opened:
        opened.callback(database.client.drop_database, own["MONGODB_DATABASE"])
        one, two = (opened.enter_context(service(tmp_path_factory.mktemp(name), **own)) for name in ("one", "two"))
        one.turn("I saw number 7 today.", wait_for_memory=True)
        for line in one.http.post("/api/admin/embedder/prepare", json={"model": "fake-embed"}).text.splitlines():
            assert "error" not in line
        two.turn("I saw number 8 today.", wait_for_memory=True)
        one.http.post("/api/admin/embedder/switch")

        def follows() -> bool:
            status = two.get("/api/admin/embedder")
            return status["serving"]["model"] == "fake-embed" and status["serving"]["points"] >= 2

        until(follows)
        body = {"user_id": "ada", "query": "Which number 8 did I see?", "kinds": ["episode"]}
        assert "number 8" in two.http.post("/api/memory/search", json=body).json()["hits"][0]["content"]
        assert one.http.post("/api/admin/embedder/drop").status_code == 200
        until(lambda: two.get("/api/admin/embedder")["other"] is None)
        until(lambda: not [item for item in (two.data_dir / "index").iterdir() if "lexical" in item.name])
