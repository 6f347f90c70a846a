"""Undoing what a turn taught, and learning from it again, over HTTP against a real service."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.facts_of import FactsOf
from tests.service.support.lessons import add, teach
from tests.service.support.running import Service
from tests.service.support.shapes import CHANGE, LEFT, check, fields, refused
from tests.service.support.shapes import REFUSED as NO

FIRST, SECOND = "I live in Oslo and have a dog.", "I live in Rome, my dog is gone, and I am a nurse."
LESSONS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    FIRST: [add("Oslo", key="city"), add("dog", key="pet")],
    SECOND: [
        add("Rome", key="city") | {"decision": "update"},
        add("nurse", key="job"),
        {"decision": "delete", "key": "pet", "evidence": "my dog is gone"},
    ],
}
BACK = [("update", "Rome", "Oslo"), ("delete", "nurse", None), ("add", None, "dog")]


@pytest.fixture
def ada(served: Service, user: str, model: FakeOpenAI) -> FactsOf:
    teach(model, LESSONS)
    return FactsOf(served, user)


def tell(ada: FactsOf, message: str) -> str:
    turn = ada.running.turn(message, user=ada.user or "", wait_for_memory=True)
    assert turn["memory"]["update"]["status"] == "done"
    turn_id: str = turn["turn_id"]
    return turn_id


def ask(ada: FactsOf, turn_id: str, verb: str, body: Any = None, *, user: str | None = None, **query: Any) -> Any:
    params = {"user_id": user or ada.user, **query}
    return ada.running.http.post(f"/api/turns/{turn_id}/{verb}", params=params, json=body)


def undo(ada: FactsOf, turn_id: str, body: Any = None, **query: Any) -> dict[str, Any]:
    answer = ask(ada, turn_id, "undo", body, **query)
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    assert set(shown) == {"turn_id", "undone", "left"}
    for change in shown["undone"]:
        check(CHANGE, change)
    for left in shown["left"]:
        check(LEFT, left)
    return shown


def test_an_undo_takes_all_back_in_documents_and_index(ada: FactsOf) -> None:
    tell(ada, FIRST)
    second = tell(ada, SECOND)
    assert ada.known() == {"city": "Rome", "job": "nurse"}
    undone = undo(ada, second)
    assert sorted((change["decision"], change["before"], change["after"]) for change in undone["undone"]) == sorted(
        BACK, key=lambda change: change[0]
    )
    assert undone["left"] == []
    assert ada.known() == {"city": "Oslo", "pet": "dog"}
    search = {"user_id": ada.user, "query": "The user's city is Rome.", "kinds": ["fact"], "top_k": 50}
    hits = ada.running.http.post("/api/memory/search", json=search).json()["hits"]
    assert {hit["content"] for hit in hits} == {fact["statement"] for fact in ada.items()}
    assert undo(ada, second) == undone
    update = ada.running.get(f"/api/turns/{second}", user_id=ada.user)["memory"]["update"]
    assert len(update["changes"]) == 3
    assert update["undone"]["left"] == []
    by = {version["ended"]["by"] for version in ada.history(ada.one("city")["id"]) if version["ended"]}
    assert by == {"undo"}


@pytest.mark.parametrize("how", ["query", "body"])
def test_what_changed_since_stops_an_undo_unless_forced(ada: FactsOf, how: str) -> None:
    tell(ada, FIRST)
    second = tell(ada, SECOND)
    ada.put("city", value="Bergen")
    error = refused(ask(ada, second, "undo"), 409, "facts_changed")
    assert [(detail["key"], detail["fact_id"]) for detail in error["details"]] == [("city", ada.one("city")["id"])]
    assert ada.known() == {"city": "Bergen", "job": "nurse"}
    forced = undo(ada, second, force="true") if how == "query" else undo(ada, second, {"force": True})
    assert [left["key"] for left in forced["left"]] == ["city"]
    assert ada.known() == {"city": "Bergen", "pet": "dog"}
    assert undo(ada, second) == forced


def test_a_turn_that_taught_nothing(ada: FactsOf) -> None:
    turn_id = tell(ada, "The weather in general interests me little.")
    assert undo(ada, turn_id) == {"turn_id": turn_id, "undone": [], "left": []}


def test_learning_again_after_an_undo(ada: FactsOf) -> None:
    tell(ada, FIRST)
    second = tell(ada, SECOND)
    undo(ada, second)
    rehearsed = ask(ada, second, "learn", {"dry_run": True}).json()
    assert set(rehearsed) == {"turn_id", "model", "changes", "refused", "dry_run", "preview_id", "expires_at"}
    assert (rehearsed["turn_id"], rehearsed["dry_run"]) == (second, True)
    assert {check(CHANGE, change)["after"] for change in rehearsed["changes"]} == {"Rome", "nurse"}
    assert [check(NO, no)["decision"] for no in rehearsed["refused"]] == ["delete"], "it never removes"
    assert ada.known() == {"city": "Oslo", "pet": "dog"}, "nothing was stored"
    learned = ask(ada, second, "learn", {"model": "fake-embed"})
    assert learned.status_code == 200, learned.text
    assert set(learned.json()) == {"turn_id", "update"}
    update = learned.json()["update"]
    assert (update["status"], update["model"]) == ("done", "fake-embed")
    assert "undone" not in update
    assert ada.known() == {"city": "Rome", "pet": "dog", "job": "nurse"}
    assert ask(ada, second, "learn").json()["update"]["status"] == "done"
    assert ada.known() == {"city": "Rome", "pet": "dog", "job": "nurse"}
    assert len(ada.items()) == 3
    undo(ada, second)
    assert ada.known() == {"city": "Oslo", "pet": "dog"}


def test_unknown_turns_other_users_and_wrong_bodies_are_refused(ada: FactsOf) -> None:
    first = tell(ada, FIRST)
    for verb in ("undo", "learn"):
        refused(ask(ada, "never", verb), 404, "not_found")
        refused(ask(ada, first, verb, user=f"{ada.user}-other"), 404, "not_found")
        assert fields(ask(ada, first, verb, {"colour": "red"})) == ["colour"]
        assert fields(ada.running.http.post(f"/api/turns/{first}/{verb}")) == ["user_id"]
    assert fields(ask(ada, first, "undo", force="perhaps")) == ["force"]
    assert fields(ask(ada, first, "undo", {"force": "yes"})) == ["force"]
    assert fields(ask(ada, first, "learn", {"dry_run": 1})) == ["dry_run"]
    for model in ("", "never-heard-of"):
        for dry in (False, True):
            assert fields(ask(ada, first, "learn", {"model": model, "dry_run": dry})) == ["model"]
    assert ada.known() == {"city": "Oslo", "pet": "dog"}


def test_an_unfinished_turn_is_a_conflict(ada: FactsOf, model: FakeOpenAI) -> None:
    model.fail(400, times=9, path="chat")
    body = {"user_id": ada.user, "thread_id": "t9", "message": "Hello.", "turn_id": "open"}
    assert ada.running.http.post("/api/agent", json=body).status_code == 502
    model.recover()
    for verb in ("undo", "learn"):
        refused(ask(ada, "open", verb), 409, "update_pending")
