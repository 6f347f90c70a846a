"""REVIEW: facts that wait for a person, over HTTP against a real service."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.facts_of import FactsOf
from tests.service.support.lessons import add, teach
from tests.service.support.running import Service, model_settings, service
from tests.service.support.shapes import check_turn, refused


@pytest.fixture
def everything(tmp_path: Path, fake: FakeOpenAI) -> Iterator[Service]:
    with service(tmp_path, **model_settings(fake.url, REVIEW="all")) as running:
        yield running


@pytest.fixture
def sensitive(tmp_path: Path, fake: FakeOpenAI) -> Iterator[Service]:
    with service(tmp_path, **model_settings(fake.url, REVIEW="sensitive", SENSITIVE_TAGS="health, money")) as running:
        yield running


def test_proposed_facts_are_unknown_until_approved(everything: Service, fake: FakeOpenAI) -> None:
    ada = FactsOf(everything, "ada")
    teach(fake, {"I live in Oslo with Rex.": [add("Oslo", key="city"), add("Rex", key="dog")]})
    turn = everything.turn("I live in Oslo with Rex.", wait_for_memory=True)
    check_turn(turn)
    assert ada.known() == {}
    waiting = {fact["key"]: fact for fact in ada.items(status="proposed")}
    assert {key: (fact["status"], fact["proposes"]) for key, fact in waiting.items()} == {
        "city": ("proposed", "add"),
        "dog": ("proposed", "add"),
    }
    changes = {change["key"]: change["fact_id"] for change in turn["memory"]["update"]["changes"]}
    assert changes == {key: fact["id"] for key, fact in waiting.items()}, "the change names what waits"
    assert everything.turn("What do you know?")["memory"]["facts"] == {}
    approved = ada.write("POST", f"/{waiting['city']['id']}/approve")
    assert approved["status"] == "active"
    assert ada.write("POST", f"/{waiting['dog']['id']}/reject")["status"] == "rejected"
    assert ada.known() == {"city": "Oslo"}
    assert [fact["key"] for fact in ada.items(status="rejected")] == ["dog"]
    assert ada.items(status="proposed") == []
    for fact in waiting.values():
        for verb in ("approve", "reject"):
            refused(ada.ask("POST", f"/{fact['id']}/{verb}"), 409, "fact_conflict")
    assert [version["ended"] and version["ended"]["by"] for version in ada.history(approved["id"])] == ["review", None]


def test_an_approved_update_and_deletion_end_what_they_replace(everything: Service, fake: FakeOpenAI) -> None:
    ada = FactsOf(everything, "ada")
    later = add("Rome", key="city") | {"decision": "update"}
    gone = {"decision": "delete", "key": "city", "evidence": "Rome no more"}
    teach(fake, {"Oslo it is.": [add("Oslo", key="city")], "Rome it is.": [later], "Rome no more.": [gone]})
    for message, known in (("Oslo it is.", {}), ("Rome it is.", {"city": "Oslo"}), ("Rome no more.", {"city": "Rome"})):
        everything.turn(message, wait_for_memory=True)
        assert ada.known() == known
        (waiting,) = ada.items(status="proposed")
        ada.write("POST", f"/{waiting['id']}/approve")
    assert ada.known() == {}
    assert ada.items() == []


def test_only_sensitive_tags_wait(sensitive: Service, fake: FakeOpenAI) -> None:
    ada = FactsOf(sensitive, "ada")
    decisions = [add("gout", key="illness", tags=["Health"]), add("Oslo", key="city", tags=["place"])]
    teach(fake, {"I have gout and live in Oslo.": decisions})
    turn = sensitive.turn("I have gout and live in Oslo.", wait_for_memory=True)
    assert ada.known() == {"city": "Oslo"}
    (waiting,) = ada.items(status="proposed")
    assert (waiting["key"], waiting["tags"]) == ("illness", ["Health"])
    answer = sensitive.http.post(f"/api/turns/{turn['turn_id']}/undo", params={"user_id": "ada"})
    assert {change["key"] for change in answer.json()["undone"]} == {"illness", "city"}
    assert ada.known() == {}
    assert ada.items(status="proposed") == []
