"""Everything in flight at once while a user is erased: afterwards nothing of it is found, and nobody else has lost any.

Whoever was too late hears of it with 409 `user_erased`; whoever came after the erasure starts afresh.
"""

import itertools
import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from pymongo import MongoClient

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.running import Service, model_settings, service, until
from tests.service.support.scripts import learning

ANSWERS = {200, 201, 202, 204, 404, 409}
"""Done before it, or too late; 404: what is to be changed is gone."""
ROUNDS = 3
AT_ONCE = 24


@pytest.fixture(params=["embedded", "mongo"])
def running(request: pytest.FixtureRequest, tmp_path: Path, fake: FakeOpenAI) -> Iterator[Service]:
    settings = model_settings(fake.url, EMBEDDING_MODEL="fake-embed", SUMMARY_EVERY="1", WINDOW="1")
    fake.chat_seconds = 0.05
    if request.param == "embedded":
        with service(tmp_path, **settings) as made:
            yield made
        return
    url = request.getfixturevalue("mongodb_url")
    name = f"recollect_test_{uuid4().hex[:12]}"
    with service(tmp_path, **settings, MONGODB_URL=url, MONGODB_DATABASE=name) as made:
        yield made
    with MongoClient[dict[str, object]](url) as client:
        client.drop_database(name)


def writers(running: Service, user: str) -> list[Callable[[int], httpx.Response]]:
    """Return every way in which something of a user is written, each with a number that tells its calls apart."""

    def turn(number: int) -> httpx.Response:
        said = f"my city{number} is Paris"
        body = {"user_id": user, "thread_id": f"t{number % 4}", "message": said, "wait_for_memory": number % 3 == 0}
        return httpx.post(f"{running.url}/api/agent", json=body, timeout=60)

    def exchange(number: int) -> httpx.Response:
        said, answer = {"content": f"my tram{number} goes to Paris"}, {"content": "It does."}
        body = {"user_id": user, "thread_id": f"t{number % 4}", "user": said, "assistant": answer}
        return httpx.post(f"{running.url}/api/exchanges", json=body, timeout=60)

    def fact(number: int) -> httpx.Response:
        return httpx.put(f"{running.url}/api/users/{user}/facts/by-key/k{number}", json={"value": "Paris"}, timeout=60)

    def note(number: int) -> httpx.Response:
        body = {"user_id": user, "content": f"Note {number} on Paris."}
        return httpx.post(f"{running.url}/api/memory", json=body, timeout=60)

    def document(number: int) -> httpx.Response:
        body = {"user_id": user, "text": f"Chapter {number} on Paris. " * 300, "title": "Paris", "source": f"s{number}"}
        return httpx.post(f"{running.url}/api/documents", json=body, timeout=60)

    def imported(number: int) -> httpx.Response:
        lines = [
            {
                "user_id": user,
                "thread_id": f"t{number % 4}",
                "role": role,
                "content": f"{number}/{line} of Paris",
                "timestamp": 1_700_000_000 + line,
            }
            for line, role in enumerate(("user", "assistant") * 20)
        ]
        content = "\n".join(map(json.dumps, lines))
        return httpx.post(f"{running.url}/api/import", params={"learn": "true"}, content=content, timeout=60)

    def learned(number: int) -> httpx.Response:
        body = {"user_id": user, "content": f"my street{number} is Rivoli"}
        return httpx.post(f"{running.url}/api/memory/add", json=body, timeout=60)

    def archived(number: int) -> httpx.Response:
        path = f"{running.url}/api/threads/t{number % 4}/archive"
        return httpx.post(path, params={"user_id": user}, timeout=60)

    return [turn, turn, exchange, fact, note, document, imported, learned, archived]


def nothing_of(running: Service, user: str) -> None:
    """Nothing is found of the user; points and documents fit together."""
    doctored = running.get("/api/admin/doctor")
    assert doctored["healthy"], doctored
    assert user not in [each["user_id"] for each in doctored["users"]]
    assert running.get("/api/threads", user_id=user)["items"] == []
    assert running.get("/api/documents", user_id=user)["items"] == []
    assert running.get(f"/api/users/{user}/facts")["items"] == []
    stats = running.get("/memory-stats", user_id=user)
    assert not any(stats[name] for name in ("threads", "turns", "messages", "facts", "documents", "points", "pending"))


@pytest.mark.slow
def test_nothing_comes_back_whatever_was_in_flight(running: Service, fake: FakeOpenAI, user: str) -> None:
    fake.on_chat = learning
    other = f"{user}-other"
    running.turn("my city is Rome", user=other, wait_for_memory=True)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for round_ in range(ROUNDS):
            kinds = itertools.cycle(writers(running, user))
            calls: list[Future[httpx.Response]] = [
                pool.submit(next(kinds), 100 * round_ + number) for number in range(2 * AT_ONCE)
            ]
            others = [pool.submit(writers(running, other)[0], 100 * round_ + number) for number in range(4)]
            until(lambda calls=calls, round_=round_: sum(call.done() for call in calls) >= 3 + 5 * round_, 60)
            erased = [running.http.delete(f"/api/users/{user}")]
            answers = [call.result(120) for call in calls]
            odd = [(answer.request.url.path, answer.text) for answer in answers if answer.status_code not in ANSWERS]
            assert odd == [], running.log[-20_000:]
            late = [answer for answer in answers if answer.status_code == 409]
            assert {answer.json()["error"]["code"] for answer in late} <= {"user_erased", "update_pending"}
            # Turns after the first erasure began afresh: with nothing more in flight, the second ends it.
            erased.append(running.http.delete(f"/api/users/{user}"))
            assert [answer.status_code for answer in erased] == [200, 200], [answer.text for answer in erased]
            assert all(set(answer.json()["remaining"].values()) == {0} for answer in erased)
            assert [answer.result(60).status_code for answer in others] == [200] * 4
            nothing_of(running, user)
    until(lambda: running.get("/memory-stats", user_id=other)["pending"] == 0, 60)
    stats = running.get("/memory-stats", user_id=other)
    assert stats["turns"] == 1 + 4 * ROUNDS
    after = running.turn("my dog is Rex", user=user, thread="t1")
    assert after["memory"]["facts"] == {}
    assert after["memory"]["hits"] == []
    assert running.get("/api/admin/doctor")["healthy"]
    assert "Traceback" not in running.log


def test_a_thread_that_is_deleted_meanwhile_stays_gone(running: Service, fake: FakeOpenAI, user: str) -> None:
    fake.on_chat = learning
    turn = writers(running, user)[0]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        calls = [pool.submit(turn, number) for number in range(AT_ONCE)]
        until(lambda: sum(call.done() for call in calls) >= 4, 60)
        assert running.http.delete("/api/threads/t1", params={"user_id": user}).status_code in {204, 404}
        answers = [call.result(120) for call in calls]
    assert {answer.status_code for answer in answers} <= {200, 409}
    until(lambda: running.http.delete("/api/threads/t1", params={"user_id": user}).status_code == 404, 60)
    assert running.get("/api/threads/t1/messages", user_id=user)["items"] == []
    assert running.get("/memory-stats", user_id=user, session_id="t1")["points"] == 0
    assert running.get("/api/threads/t2/messages", user_id=user)["items"] != []
    until(lambda: running.get("/api/admin/doctor")["healthy"], 30)
