"""Two services on one MongoDB: a turn is answered anew by either of them, and texts teach through both."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pymongo import MongoClient

from tests.fakes.openai_server import FakeOpenAI
from tests.service.facts.test_memory_add import decided, learn
from tests.service.support.facts_of import FactsOf
from tests.service.support.running import Service, model_settings, service, until
from tests.service.support.scripts import learning, posting, texts
from tests.service.support.shapes import refused
from tests.service.turns.test_regenerate import anew, found, posting_anew


@pytest.fixture
def pair(tmp_path: Path, mongodb_url: str, fake: FakeOpenAI) -> Iterator[tuple[Service, Service]]:
    database = f"recollect_anew_{uuid4().hex[:8]}"
    settings = model_settings(fake.url, MONGODB_URL=mongodb_url, MONGODB_DATABASE=database, THREAD_WAIT_SECONDS="60")
    with MongoClient[dict[str, Any]](mongodb_url) as client, ExitStack() as stack:
        stack.callback(client.drop_database, database)
        folders = [tmp_path / name for name in ("one", "other")]
        for folder in folders:
            folder.mkdir()
        one, other = (stack.enter_context(service(folder, **settings)) for folder in folders)
        yield one, other


def test_either_process_answers_anew_in_the_threads_order(pair: tuple[Service, Service], fake: FakeOpenAI) -> None:
    one, other = pair
    fake.on_chat = learning
    fake.script("The old pineapple answer.")
    one.turn("my city is Oslo", turn_id="last", wait_for_memory=True)
    fake.script("The new cucumber answer.")
    new = anew(other, "last", "ada")
    assert [change["after"] for change in new["memory"]["update"]["changes"]] == ["Oslo"]
    assert one.get("/api/turns/last", user_id="ada")["reply"] == "The new cucumber answer."
    assert FactsOf(one, "ada").known() == {"city": "Oslo"}
    assert "The new cucumber answer." in found(other, "the new cucumber answer", "ada")

    asked = len(fake.chats)
    fake.hang()
    answering = posting_anew(one, "last", "ada")
    until(lambda: len(fake.chats) == asked + 1)
    following = posting(other, "my dog is Rex", turn_id="next", wait_for_memory=True)
    fake.release()
    assert answering().status_code == 200
    assert following.result(60).json()["memory"]["window"] == 1
    refused(posting_anew(one, "last", "ada")(), 409, "not_last_turn")
    assert [content for _, content in texts(other)] == ["my city is Oslo", "All right.", "my dog is Rex", "All right."]
    assert FactsOf(other, "ada").known() == {"city": "Oslo", "dog": "Rex"}

    assert decided(learn(one, "ada", "my city is Rome")) == [("update", "city", "Oslo", "Rome")]
    assert decided(learn(other, "ada", "my city is Bergen")) == [("update", "city", "Rome", "Bergen")]
    written = one.http.post("/api/memory", json={"user_id": "ada", "content": "Likes tea.", "tags": ["x"]}).json()
    assert other.get("/api/memory", user_id="ada", tag="x")["items"] == [written]
    stats = other.get("/memory-stats", user_id="ada")
    assert {name: stats[name] for name in ("users", "threads", "turns", "messages", "facts", "pending")} == {
        **{"users": 1, "threads": 1, "turns": 2, "messages": 4},
        **{"facts": 3, "pending": 0},
    }
    assert other.get("/memory-stats", user_id="ada", session_id="t1")["turns"] == 2
