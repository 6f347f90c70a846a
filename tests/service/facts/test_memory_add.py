"""`POST /api/memory/add`: learning from a text that is no turn, at once."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.facts_of import FactsOf
from tests.service.support.lessons import add, extractions_of, teach
from tests.service.support.running import Service, model_settings, service, until
from tests.service.support.scripts import learning, posting
from tests.service.support.shapes import CHANGE, REFUSED, check, fields, refused

TEXT = "I live in Rome now, my dog is gone, and I am a nurse."
_posting = ThreadPoolExecutor(8, thread_name_prefix="adding")


def ask(running: Service, user: str, content: str, **more: Any) -> httpx.Response:
    body = {"user_id": user, "content": content, **more}
    return httpx.post(f"{running.url}/api/memory/add", json=body, timeout=60)


def learn(running: Service, user: str, content: str, **more: Any) -> dict[str, Any]:
    """Return a text that must be learned from: the answer."""
    answer = ask(running, user, content, **more)
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    assert set(shown) == {"model", "changes", "refused"}
    for change in shown["changes"]:
        check(CHANGE, change)
    for no in shown["refused"]:
        check(REFUSED, no)
    return shown


def decided(shown: dict[str, Any]) -> list[tuple[str, str | None, str | None, str | None]]:
    return [(one["decision"], one["key"], one["before"], one["after"]) for one in shown["changes"]]


def test_a_text_teaches_at_once_and_leaves_no_turn(served: Service, model: FakeOpenAI, user: str) -> None:
    ada = FactsOf(served, user)
    teach(
        model,
        {
            "I live in Oslo and have a dog.": [add("Oslo", key="city"), add("dog", key="pet")],
            TEXT: [
                add("Rome", key="city") | {"decision": "update"},
                {"decision": "delete", "key": "pet", "evidence": "my dog is gone"},
                add("nurse", key="job"),
                add("Paris", key="home", evidence="I live in Paris"),
            ],
        },
    )
    first = learn(served, user, "I live in Oslo and have a dog.")
    assert (first["model"], first["refused"]) == ("fake-chat", [])
    assert decided(first) == [("add", "city", None, "Oslo"), ("add", "pet", None, "dog")]
    second = learn(served, user, TEXT)
    assert decided(second) == [
        ("update", "city", "Oslo", "Rome"),
        ("delete", "pet", "dog", None),
        ("add", "job", None, "nurse"),
    ]
    assert [(no["key"], no["value"]) for no in second["refused"]] == [("home", "Paris")], "it quotes nothing"
    assert ada.known() == {"city": "Rome", "job": "nurse"}
    fact = ada.one("city")
    assert (fact["source"], fact["turn_id"], fact["thread_id"], fact["scope"]) == ("text", None, None, "user")
    assert (fact["evidence"], fact["id"]) == ("Rome", second["changes"][0]["fact_id"])
    assert served.get("/api/threads", user_id=user)["items"] == []
    assert [version["ended"]["by"] for version in ada.history(fact["id"]) if version["ended"]] == ["turn"]
    body = {"user_id": user, "query": "The user's city is Rome.", "kinds": ["fact"], "score_threshold": -1.0}
    found = {hit["content"] for hit in served.http.post("/api/memory/search", json=body).json()["hits"]}
    assert found == {item["statement"] for item in ada.items()}
    assert served.turn("Where do I live?", user=user)["memory"]["facts"] == {"city": "Rome", "job": "nurse"}


def test_the_same_text_again_only_confirms(served: Service, model: FakeOpenAI, user: str) -> None:
    teach(model, {TEXT: [add("Rome", key="city"), add("nurse", key=None)]})
    learn(served, user, TEXT)
    assert [decision for decision, *_ in decided(learn(served, user, TEXT))] == ["keep", "keep"]
    assert len(FactsOf(served, user).items()) == 2


def test_what_was_forgotten_may_be_told_again(served: Service, model: FakeOpenAI, user: str) -> None:
    ada = FactsOf(served, user)
    teach(model, {TEXT: [add("Rome", key="city")]})
    learn(served, user, TEXT)
    assert ada.ask("DELETE", f"/{ada.one('city')['id']}").status_code == 204
    assert ada.known() == {}
    learn(served, user, TEXT)
    assert ada.known() == {"city": "Rome"}


def test_with_a_thread_its_working_memory_counts(served: Service, model: FakeOpenAI, user: str) -> None:
    teach(model, {TEXT: [add("Rome", key="city", scope="thread"), add("nurse", key="job")]})
    learn(served, user, TEXT, thread_id="t1")
    scopes = {fact["key"]: (fact["scope"], fact["thread_id"]) for fact in FactsOf(served, user).items(thread_id="t1")}
    assert scopes == {"city": ("thread", "t1"), "job": ("user", "t1")}
    learn(served, f"{user}-2", TEXT)
    assert {fact["scope"] for fact in FactsOf(served, f"{user}-2").items()} == {"user"}, "no thread, no working memory"


def test_a_person_is_not_overruled(served: Service, model: FakeOpenAI, user: str) -> None:
    ada = FactsOf(served, user)
    ada.put("city", value="Bergen")
    teach(model, {TEXT: [add("Rome", key="city")]})
    shown = learn(served, user, TEXT)
    assert (shown["changes"], len(shown["refused"])) == ([], 1)
    assert ada.known() == {"city": "Bergen"}


def test_it_waits_for_what_a_turn_is_teaching(served: Service, model: FakeOpenAI, user: str) -> None:
    teach(model, {"I live in Oslo.": [add("Oslo", key="city")], TEXT: [add("Rome", key="city")]})
    model.chat_seconds = 0.3
    turn = served.turn("I live in Oslo.", user=user)
    assert turn["memory"]["update"]["status"] == "pending"
    shown = learn(served, user, TEXT)
    assert decided(shown) == [("update", "city", "Oslo", "Rome")]
    assert served.settled(turn["turn_id"], user=user)["memory"]["update"]["status"] == "done"
    assert FactsOf(served, user).known() == {"city": "Rome"}


def test_turns_wait_for_a_text(served: Service, model: FakeOpenAI, user: str) -> None:
    teach(model, {"I live in Oslo.": [add("Oslo", key="city")], TEXT: [add("Rome", key="city")]})
    model.hang()
    adding = _posting.submit(ask, served, user, TEXT)
    until(lambda: len(extractions_of(model, TEXT)) == 1)
    turning = posting(served, "I live in Oslo.", user=user, wait_for_memory=True)
    model.release()
    assert decided(adding.result(60).json()) == [("add", "city", None, "Rome")]
    changes = turning.result(60).json()["memory"]["update"]["changes"]
    assert [(one["before"], one["after"]) for one in changes] == [("Rome", "Oslo")]


def test_many_texts_at_once_teach_one_after_another(served: Service, model: FakeOpenAI, user: str) -> None:
    said = [f"My city is place{number}." for number in range(6)]
    model.on_chat = learning
    waiting = [_posting.submit(ask, served, user, text) for text in said]
    shown = [each.result(60).json() for each in waiting]
    pairs = [decided(one)[0] for one in shown]
    befores = {before for _, _, before, _ in pairs}
    (last,) = {after for *_, after in pairs} - befores
    assert FactsOf(served, user).known() == {"city": last}
    assert len(befores) == 6, "each saw what the one before it had taught"


@pytest.mark.parametrize(
    ("how", "status", "code"),
    [(503, 502, "model_unavailable"), (401, 502, "model_unavailable"), ("garbage", 502, None)],
)
def test_a_models_outage_is_the_callers(
    served: Service, model: FakeOpenAI, user: str, how: Any, status: int, code: str | None
) -> None:
    model.garbage(99, path="chat") if how == "garbage" else model.fail(how, times=99, path="chat")
    answer = ask(served, user, TEXT)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code or answer.json()["error"]["code"])
    model.recover()
    teach(model, {TEXT: [add("Rome", key="city")]})
    assert decided(learn(served, user, TEXT)) == [("add", "city", None, "Rome")]


def test_a_model_that_takes_too_long(tmp_path: Path, fake: FakeOpenAI) -> None:
    with service(tmp_path, **model_settings(fake.url, CHAT_TIMEOUT_SECONDS="0.3")) as running:
        fake.chat_seconds = 2
        refused(ask(running, "ada", TEXT), 504, "model_timeout")


def test_nothing_said_and_wrong_requests(offline: Service, user: str) -> None:
    assert learn(offline, user, "Ok.")["changes"] == []
    assert fields(ask(offline, user, "")) == ["content"]
    assert fields(ask(offline, user, "x" * 200_001)) == ["content"]
    assert fields(ask(offline, user, "x\x00")) == ["content"]
    assert fields(ask(offline, user, "x", thread_id="a b")) == ["thread_id"]
    assert fields(ask(offline, user, "x", colour="red")) == ["colour"]
    assert fields(offline.http.post("/api/memory/add", json={"content": "x"})) == ["user_id"]


@pytest.mark.slow
def test_a_kill_while_it_learns_leaves_nothing(tmp_path: Path, fake: FakeOpenAI) -> None:
    with service(tmp_path, **model_settings(fake.url)) as running:
        fake.on_chat = learning
        fake.hang()
        lost = _posting.submit(ask, running, "ada", "my city is Rome")
        until(lambda: len(fake.extractions) == 1)
        running.kill()
        with pytest.raises(httpx.TransportError):
            lost.result(60)
        fake.release()
        running.start()
        assert FactsOf(running, "ada").known() == {}
        assert decided(learn(running, "ada", "my city is Rome")) == [("add", "city", None, "Rome")]
