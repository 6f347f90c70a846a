"""kill -9 at several moments of a turn, and what the next start makes of it."""

import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.domain.support.indexed import point_of
from tests.fakes.openai_answers import Answer, Body, extraction_tool
from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.running import Service, model_settings, service, until
from tests.service.support.scripts import facts, hits, learning, message_of, post, posting, prompt, texts
from tests.service.support.stored import stored_facts, stored_messages, stored_points

MARKER = "zanzibar"


def assert_points_are_once(running: Service, *threads: str) -> None:
    """Stop the service; check that each message and open fact is a point, no other is, and the log holds no text."""
    doctored = running.get("/api/admin/doctor")
    assert doctored["healthy"], doctored
    assert running.stop() == 0
    assert not any(word in running.log for word in (MARKER, "pilot", "place1", "test-key", "Traceback"))
    messages = [message for thread in threads for message in stored_messages(running.data_dir, thread=thread)]
    known = [point_of(fact) for fact in stored_facts(running.data_dir) if fact.is_open]
    assert stored_points(running.data_dir) == sorted([*(message.id for message in messages), *known])


def test_an_offline_turn_survives_a_kill_right_after_its_reply(tmp_path: Path) -> None:
    with Service(tmp_path) as running:
        said = {"name": "My name is Ada.", "location": "I live in Paris.", "occupation": "I work as a pilot."}
        for number, message in enumerate(said.values()):
            turn = running.turn(message, turn_id=f"turn{number}")
            running.kill()
            running.start()
            settled = running.settled(f"turn{number}")
            assert settled["reply"] == turn["reply"]
            assert settled["memory"]["update"]["status"] == "done"
            assert len(settled["memory"]["update"]["changes"]) == 1
            assert texts(running)[-2:] == [("user", message), ("assistant", turn["reply"])]
        assert facts(running) == {"name": "Ada", "location": "Paris", "occupation": "pilot"}
        assert len(texts(running)) == 6
        assert "Ada" in running.turn("What is my name?", memory={"window": 0})["reply"]
        found = {hit["content"] for hit in hits(running, "Paris Ada pilot work")}
        assert set(said.values()) <= found
        last = running.turn("Bye.")
        running.settled(last["turn_id"])
        assert_points_are_once(running, "t1")


def test_a_kill_before_the_reply_leaves_an_unfinished_repeatable_turn(tmp_path: Path, fake: FakeOpenAI) -> None:
    with service(tmp_path, **model_settings(fake.url)) as running:
        first = running.turn("The first message.")
        running.settled(first["turn_id"])
        fake.hang()
        lost = posting(running, f"my city is {MARKER}", turn_id="lost")
        until(lambda: len(fake.chats) == 2)
        running.kill()
        with pytest.raises(httpx.TransportError):
            lost.result(10)
        fake.release()
        running.start()
        shown = running.get("/api/turns/lost", user_id="ada")
        assert (shown["state"], shown["reply"], shown["memory"]["update"]["status"]) == ("unfinished", None, "pending")
        assert texts(running)[-1] == ("user", f"my city is {MARKER}")
        following = running.turn("The next message, no matter which city.", memory={"top_k": 50, "scope": "user"})
        assert following["memory"]["window"] == 1
        assert MARKER not in str(fake.chats[-1])
        assert all(MARKER not in hit["content"] for hit in hits(running, MARKER, thread="t2"))
        assert facts(running) == {}

        again = running.turn(f"my city is {MARKER}", turn_id="lost", wait_for_memory=True)
        assert again["memory"]["update"]["status"] == "done"
        assert again["memory"]["window"] == 1, "it sees what was before its old place"
        assert [content for _, content in texts(running)[:4]] == [
            "The first message.",
            first["reply"],
            f"my city is {MARKER}",
            again["reply"],
        ]
        assert facts(running) == {"city": MARKER}
        assert running.turn(f"my city is {MARKER}", turn_id="lost")["reply"] == again["reply"]
        assert [message_of(body) for body in fake.extractions].count(f"my city is {MARKER}") == 1
        assert_points_are_once(running, "t1", "t2")


@pytest.mark.slow
def test_a_kill_while_extraction_hangs_is_learned_from_once_after_the_restart(tmp_path: Path, fake: FakeOpenAI) -> None:
    def reply_then_hang(body: Body) -> Answer | None:
        if extraction_tool(body) is None:
            fake.hang()
        return learning(body)

    with service(tmp_path, **model_settings(fake.url)) as running:
        fake.on_chat = reply_then_hang
        turn = running.turn(f"my city is {MARKER} and my dog is Rex", turn_id="turn1")
        until(lambda: len(fake.extractions) == 1)
        running.kill()
        fake.on_chat = learning
        fake.release()
        running.start()
        settled = running.settled("turn1")
        assert (settled["reply"], settled["memory"]["update"]["status"]) == (turn["reply"], "done")
        changes = settled["memory"]["update"]["changes"]
        assert [(change["decision"], change["key"]) for change in changes] == [("add", "city"), ("add", "dog")]
        assert facts(running) == {"city": MARKER, "dog": "Rex"}
        assert len(fake.chats) == 1, "the reply is not asked for again"
        assert_points_are_once(running, "t1")


def test_kills_at_any_moment_of_an_update_leave_each_thing_once(tmp_path: Path, fake: FakeOpenAI) -> None:
    expected: dict[str, str] = {}
    updates: list[dict[str, Any]] = []
    with service(tmp_path, **model_settings(fake.url)) as running:
        for number, milliseconds in enumerate((0, 3, 8, 15, 30)):
            said = {f"{name}{number}": f"v{number}" for name in ("city", "dog", "cat", "car", "job")}
            said["home"] = f"place{number}"  # supersedes that of the round before
            message = ", and ".join(f"my {key} is {value}" for key, value in said.items())
            running.turn(message, turn_id=f"turn{number}")
            time.sleep(milliseconds / 1000)  # The moment of the kill is what this test varies.
            running.kill()
            running.start()
            expected |= said
            settled = running.settled(f"turn{number}")["memory"]["update"]
            assert settled["status"] == "done"
            assert [change["key"] for change in settled["changes"]] == list(said)
            assert all(change["decision"] in {"add", "update"} for change in settled["changes"]), "as at the first run"
            assert facts(running) == expected
            updates.append(settled)
        homes = [(update["changes"][-1]["before"], update["changes"][-1]["after"]) for update in updates]
        assert homes == [(f"place{number - 1}" if number else None, f"place{number}") for number in range(5)]
        for number, update in enumerate(updates):
            assert running.get(f"/api/turns/turn{number}", user_id="ada")["memory"]["update"] == update
        assert len(fake.chats) == 5
        assert_points_are_once(running, "t1")


@pytest.mark.slow
def test_a_refused_repeat_after_a_kill_changes_nothing(tmp_path: Path, fake: FakeOpenAI) -> None:
    with service(tmp_path, **model_settings(fake.url)) as running:
        fake.hang()
        lost = posting(running, "Hello.", turn_id="lost")
        until(lambda: len(fake.chats) == 1)
        running.kill()
        with pytest.raises(httpx.TransportError):
            lost.result(10)
        fake.release()
        running.start()
        for other in (
            post(running, "Something else.", turn_id="lost"),
            post(running, "Hello.", thread="t2", turn_id="lost"),
        ):
            assert (other.status_code, other.json()["error"]["code"]) == (409, "turn_conflict")
        assert texts(running) == [("user", "Hello.")]
        assert texts(running, thread="t2") == []
        running.turn("Hello.", turn_id="lost")
        assert [prompt(body) for body in fake.chats] == [["Hello."]] * 2
