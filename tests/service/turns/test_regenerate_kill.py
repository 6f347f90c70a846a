"""kill -9 while a turn is answered anew, and after it: one answer, whole, and what it taught, once."""

import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.domain.support.indexed import point_of
from tests.fakes.openai_answers import Answer, Body, extraction_tool
from tests.fakes.openai_server import FakeOpenAI, call
from tests.service.support.running import Service, model_settings, service, until
from tests.service.support.scripts import facts, texts
from tests.service.support.stored import stored_facts, stored_messages, stored_points
from tests.service.turns.test_regenerate import ask_anew, posting_anew

MESSAGE = "My city is Rome, my dog is gone, and I like green."


class Teacher:
    """A model whose extractions propose what is set; `hangs` says whether they wait."""

    def __init__(self, fake: FakeOpenAI) -> None:
        self.fake = fake
        self.values: dict[str, str] = {}
        self.deletes: tuple[str, ...] = ()
        self.hangs = False
        fake.on_chat = self

    def __call__(self, body: Body) -> Answer | None:
        tool = extraction_tool(body)
        if tool is None:
            if self.hangs:
                self.fake.hang()
            return None
        decisions: list[dict[str, Any]] = [
            {"decision": "add", "key": key, "value": value, "statement": f"{key}: {value}", "evidence": value}
            for key, value in self.values.items()
        ]
        decisions += [{"decision": "delete", "key": key, "evidence": "my dog is gone"} for key in self.deletes]
        return call(tool["name"], decisions=decisions)


@pytest.fixture
def teacher(fake: FakeOpenAI) -> Teacher:
    return Teacher(fake)


def check_whole(running: Service, *, reply: str, known: dict[str, str]) -> None:
    """Stop the service; check the turn in documents and index."""
    settled = running.settled("last")
    assert (settled["reply"], settled["memory"]["update"]["status"]) == (reply, "done")
    assert facts(running) == known
    assert texts(running)[-2:] == [("user", MESSAGE), ("assistant", reply)]
    assert running.get("/api/admin/doctor")["healthy"] is True
    assert running.stop() == 0
    messages = stored_messages(running.data_dir)
    open_facts = [point_of(fact) for fact in stored_facts(running.data_dir) if fact.is_open]
    assert stored_points(running.data_dir) == sorted([*(message.id for message in messages), *open_facts])


def begin(running: Service, teacher: Teacher) -> None:
    """Store a turn, and one that is to be regenerated; both are learned from."""
    teacher.values = {"city": "Oslo", "dog": "Rex"}
    running.turn("I live in Oslo with my dog Rex.", turn_id="first", wait_for_memory=True)
    teacher.values, teacher.deletes = {"city": "Rome", "colour": "green"}, ("dog",)
    teacher.fake.script("The old answer.")
    running.turn(MESSAGE, turn_id="last", wait_for_memory=True)
    assert facts(running) == {"city": "Rome", "colour": "green"}


def test_a_kill_before_the_new_answer_leaves_the_old_one_whole(tmp_path: Path, teacher: Teacher) -> None:
    with service(tmp_path, **model_settings(teacher.fake.url)) as running:
        begin(running, teacher)
        asked = len(teacher.fake.chats)
        teacher.fake.hang()
        lost = posting_anew(running, "last", "ada")
        until(lambda: len(teacher.fake.chats) == asked + 1)
        running.kill()
        with pytest.raises(httpx.TransportError):
            lost()
        teacher.fake.release()
        running.start()
        check_whole(running, reply="The old answer.", known={"city": "Rome", "colour": "green"})


@pytest.mark.slow
def test_kills_after_it_leave_the_new_one_learned_from_once(tmp_path: Path, teacher: Teacher) -> None:
    with service(tmp_path, **model_settings(teacher.fake.url)) as running:
        begin(running, teacher)
        teacher.deletes = ("dog",)
        for number, (key, milliseconds) in enumerate((("shade", 0), ("hue", 3), ("tint", 8), ("tone", 20))):
            teacher.values = {"city": "Rome", key: "green"}
            teacher.fake.script(f"Answer {number}.")
            assert ask_anew(running, "last", "ada").status_code == 200
            time.sleep(milliseconds / 1000)  # The moment of the kill is what this test varies.
            running.kill()
            running.start()
            assert running.settled("last")["reply"] == f"Answer {number}."
            assert facts(running) == teacher.values
        check_whole(running, reply="Answer 3.", known={"city": "Rome", "tone": "green"})


@pytest.mark.slow
def test_a_kill_while_it_is_learned_from_anew(tmp_path: Path, teacher: Teacher) -> None:
    with service(tmp_path, **model_settings(teacher.fake.url)) as running:
        begin(running, teacher)
        teacher.values, teacher.deletes = {"shade": "green"}, ()
        asked = len(teacher.fake.extractions)
        teacher.hangs = True
        assert ask_anew(running, "last", "ada").json()["reply"] == "All right."
        until(lambda: len(teacher.fake.extractions) == asked + 1)
        running.kill()
        teacher.hangs = False
        teacher.fake.release()
        running.start()
        check_whole(running, reply="All right.", known={"city": "Oslo", "dog": "Rex", "shade": "green"})
