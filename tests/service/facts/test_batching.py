"""LEARN_EVERY: several turns of a thread are learned from in one call, and none is ever missed."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.openai_answers import Answer, Body, call, extraction_tool
from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.running import Service, model_settings, service, until
from tests.service.support.scripts import facts, texts

_MESSAGE = re.compile(r"^User's message(?: \d+)?: (.*)$", re.MULTILINE)
_SAID = re.compile(r"my (\w+) is (\w+)")


def messages_of(extraction: Body) -> list[str]:
    """Return the user's messages in an extraction request, oldest first."""
    return [json.loads(text) for text in _MESSAGE.findall(str(extraction["messages"][-1]["content"]))]


def learning(body: Body) -> Answer | None:
    """Takes each "my KEY is VALUE" of all messages as a fact."""
    function = extraction_tool(body)
    if function is None:
        return None
    found = [said for message in messages_of(body) for said in _SAID.finditer(message)]
    decisions = [{"decision": "add", "key": said[1], "value": said[2], "evidence": said[0]} for said in found]
    return call(function["name"], decisions=decisions)


@pytest.fixture
def patient(fake: FakeOpenAI) -> FakeOpenAI:
    """Return a model that reads all messages of a call."""
    fake.on_chat = learning
    return fake


@pytest.fixture
def running(tmp_path: Path, patient: FakeOpenAI) -> Iterator[Service]:
    with service(tmp_path, **model_settings(patient.url, LEARN_EVERY="3", MEMORY_WAIT_SECONDS="20")) as made:
        yield made


def changes(turn: dict[str, Any]) -> list[tuple[str, str]]:
    return [(change["key"], change["after"]) for change in turn["memory"]["update"]["changes"]]


def test_three_turns_are_learned_from_in_one_call_each_with_its_own_changes(
    running: Service, patient: FakeOpenAI
) -> None:
    for number, message in enumerate(("my dog is Rex", "my city is Rome, by the way")):
        turn = running.turn(message, turn_id=f"turn{number}", wait_for_memory=True)
        assert turn["memory"]["update"]["status"] == "pending", "nobody waits for what rests"
    assert patient.extractions == []
    waiting = running.get("/api/turns/turn0", user_id="ada")["memory"]["update"]
    why = "It waits for more turns of its thread (LEARN_EVERY)."
    assert waiting["reason"] == f"facts: {why}"
    assert waiting["steps"]["facts"] == {"status": "pending", "tries": 0, "reason": why, "next_try_at": None}
    assert facts(running) == {}
    third = running.turn("my cat is Tom", turn_id="turn2", wait_for_memory=True)
    assert (third["memory"]["window"], third["memory"]["update"]["status"]) == (2, "done")
    (asked,) = patient.extractions
    assert messages_of(asked) == ["my dog is Rex", "my city is Rome, by the way", "my cat is Tom"]
    expected = [[("dog", "Rex")], [("city", "Rome")], [("cat", "Tom")]]
    assert [changes(running.settled(f"turn{number}")) for number in range(3)] == expected
    assert facts(running) == {"dog": "Rex", "city": "Rome", "cat": "Tom"}


def test_another_thread_does_not_count_and_does_not_wait(running: Service, patient: FakeOpenAI) -> None:
    running.turn("my dog is Rex", thread="t1")
    running.turn("my cat is Tom", thread="t2")
    running.turn("my fish is Bob", thread="t2")
    running.turn("my bird is Pip", thread="t2", wait_for_memory=True)
    assert facts(running) == {"cat": "Tom", "fish": "Bob", "bird": "Pip"}
    assert [messages_of(asked) for asked in patient.extractions] == [
        ["my cat is Tom", "my fish is Bob", "my bird is Pip"]
    ]


def test_trivial_turns_do_not_count_and_cost_no_call(running: Service, patient: FakeOpenAI) -> None:
    running.turn("my dog is Rex", turn_id="told")
    for _ in range(4):
        thanked = running.turn("Thanks!", wait_for_memory=True)
        assert (thanked["memory"]["update"]["status"], thanked["memory"]["update"]["reason"]) == ("skipped", "trivial")
    assert patient.extractions == []
    assert running.get("/api/turns/told", user_id="ada")["memory"]["update"]["status"] == "pending"


def test_what_waits_is_learned_when_its_turn_leaves_the_window(tmp_path: Path, patient: FakeOpenAI) -> None:
    settings = model_settings(patient.url, LEARN_EVERY="9", MEMORY_WINDOW="2", SUMMARY_EVERY="0")
    with service(tmp_path, **settings) as running:
        running.turn("my dog is Rex", turn_id="told")
        running.turn("What is the weather like in Oslo?")
        assert patient.extractions == []
        running.turn("And in Rome, on Monday?")
        assert changes(running.settled("told")) == [("dog", "Rex")]
        assert len(patient.extractions) == 1


def test_what_waits_is_learned_when_the_thread_is_archived(running: Service, patient: FakeOpenAI) -> None:
    running.turn("my dog is Rex", turn_id="told")
    assert running.http.post("/api/threads/t1/archive", params={"user_id": "ada"}).status_code == 200
    assert changes(running.settled("told")) == [("dog", "Rex")]


def test_what_waits_is_learned_when_the_thread_is_idle(tmp_path: Path, patient: FakeOpenAI) -> None:
    settings = model_settings(patient.url, LEARN_EVERY="9", LEARN_IDLE_SECONDS="0.5")
    with service(tmp_path, **settings) as running:
        running.turn("my dog is Rex", turn_id="one")
        running.turn("my cat is Tom", turn_id="two")
        assert changes(running.settled("one")) == [("dog", "Rex")]
        assert changes(running.settled("two")) == [("cat", "Tom")]
        assert len(patient.extractions) == 1


@pytest.mark.slow
def test_a_kill_loses_nothing_that_waits(tmp_path: Path, patient: FakeOpenAI) -> None:
    def reply_then_hang(body: Body) -> Answer | None:
        if extraction_tool(body) is None:
            patient.hang()
        return learning(body)

    with service(tmp_path, **model_settings(patient.url, LEARN_EVERY="3")) as running:
        running.turn("my dog is Rex", turn_id="turn0")
        running.kill()
        running.start()
        running.turn("my city is Rome", turn_id="turn1")
        running.kill()
        running.start()
        assert patient.extractions == []
        patient.on_chat = reply_then_hang
        running.turn("my cat is Tom", turn_id="turn2")
        until(lambda: len(patient.extractions) == 1)
        running.kill()
        patient.on_chat = learning
        patient.release()
        running.start()
        expected = [[("dog", "Rex")], [("city", "Rome")], [("cat", "Tom")]]
        assert [changes(running.settled(f"turn{number}")) for number in range(3)] == expected
        assert facts(running) == {"dog": "Rex", "city": "Rome", "cat": "Tom"}
        assert len(texts(running)) == 6
