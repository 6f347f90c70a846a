"""Two services on one MongoDB: exchanges that both are given at once are stored and learned from once."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

import httpx
import pytest
from pymongo import MongoClient

from tests.service.support.running import Service, service

Json = dict[str, Any]
TIMES = 8


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, mongodb_url: str) -> Iterator[tuple[Service, Service]]:
    database = f"recollect_exchanges_{uuid4().hex[:8]}"
    with MongoClient[Json](mongodb_url) as client, ExitStack() as stack:
        stack.callback(client.drop_database, database)
        settings = {"MONGODB_URL": mongodb_url, "MONGODB_DATABASE": database}
        folders = [tmp_path_factory.mktemp(name) for name in ("one", "other")]
        one, other = (stack.enter_context(service(folder, **settings)) for folder in folders)
        yield one, other


def posted(pair: tuple[Service, Service], bodies: list[Json]) -> list[httpx.Response]:
    """Post all at once, half of them to each process."""

    def post(number: int) -> httpx.Response:
        return httpx.post(f"{pair[number % 2].url}/api/exchanges", json=bodies[number], timeout=60)

    with ThreadPoolExecutor(len(bodies)) as pool:
        return list(pool.map(post, range(len(bodies))))


def body(said: str, **more: Any) -> Json:
    further = [{"role": "user", "content": "I live in Oslo."}, {"role": "assistant", "content": "Oslo is cold."}]
    ids = {"user_id": "ada", "thread_id": "t1", "turn_id": "one"}
    whole = {"user": {"content": said}, "assistant": {"content": "Noted."}, "messages": further}
    return {**ids, **whole, "wait_for_memory": True, **more}


def test_the_same_turn_is_stored_and_learned_from_once(pair: tuple[Service, Service]) -> None:
    answers = posted(pair, [body("My name is Ada.")] * TIMES)
    assert [answer.status_code for answer in answers] == [200] * TIMES
    for running in pair:
        (said, reply) = running.get("/api/threads/t1/messages", user_id="ada")["items"]
        assert (said["content"], reply["content"], len(said["messages"])) == ("My name is Ada.", "Noted.", 2)
        turn = running.get("/api/turns/one", user_id="ada")
        assert [change["after"] for change in turn["memory"]["update"]["changes"]] == ["Ada", "Oslo"]
        assert running.get("/api/users/ada/facts")["facts"] == {"name": "Ada", "location": "Oslo"}


def test_of_different_exchanges_under_one_id_the_first_stays(pair: tuple[Service, Service]) -> None:
    bodies = [body(f"Number {number}.", user_id="bob") for number in range(TIMES)]
    answers = posted(pair, bodies)
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * (TIMES - 1)
    assert {answer.json()["error"]["code"] for answer in answers if answer.is_error} == {"turn_conflict"}
    (winner,) = [number for number, answer in enumerate(answers) if answer.is_success]
    said = pair[0].get("/api/threads/t1/messages", user_id="bob")["items"]
    assert said[0]["content"] == f"Number {winner}."
    assert len(said) == 2
