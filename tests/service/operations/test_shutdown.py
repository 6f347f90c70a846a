"""SIGTERM: what is under way ends within the bound, the rest is repeatable."""

import signal
import time
from pathlib import Path

import httpx
import pytest

from tests.fakes.openai_answers import Answer, Body, extraction_tool
from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.running import Service, model_settings, service, until
from tests.service.support.scripts import events, facts, learning, posting, texts
from tests.service.support.stored import stored_turn

SLACK_SECONDS = 10
"""The seconds that a loaded machine may add to a stop."""


@pytest.mark.parametrize("stream", [False, True])
def test_a_turn_in_flight_is_finished_acknowledged_and_learned_from(
    tmp_path: Path, fake: FakeOpenAI, stream: bool
) -> None:
    with service(tmp_path, **model_settings(fake.url, SHUTDOWN_SECONDS="30")) as running:
        fake.hang()
        asked = posting(running, "my pet is cat", turn_id="one", stream=stream)
        until(lambda: len(fake.chats) == 1)
        assert running.process is not None
        running.process.send_signal(signal.SIGTERM)
        until(lambda: _refuses(running))
        fake.release()
        answer = asked.result(60)
        assert answer.status_code == 200
        assert (events(answer.text)[-1][0] == "done") if stream else (answer.json()["reply"] == "All right.")
        assert running.process.wait(60) == 0
        turn = stored_turn(running.data_dir, "one")
        assert turn.reply is not None
        assert turn.update is not None
        assert (turn.update.status, len(turn.update.changes)) == ("done", 1), "updates are drained"
        assert "action=stopped" in running.log
        assert "Traceback" not in running.log


def _refuses(running: Service) -> bool:
    """Tell whether no new connection is taken any more."""
    try:
        httpx.get(f"{running.url}/health", timeout=5)
    except httpx.TransportError:
        return True
    return False


def test_a_hanging_model_does_not_hold_the_stop_and_the_turn_is_repeatable(tmp_path: Path, fake: FakeOpenAI) -> None:
    with service(tmp_path, **model_settings(fake.url, SHUTDOWN_SECONDS="1")) as running:
        fake.hang()
        asked = posting(running, "my pet is cat", turn_id="one")
        until(lambda: len(fake.chats) == 1)
        begun = time.monotonic()
        assert running.stop() == 0
        assert time.monotonic() - begun < 1 + SLACK_SECONDS
        try:
            answer = asked.result(10)
        except httpx.TransportError:
            pass  # The connection went with the process.
        else:
            assert answer.status_code >= 500
        fake.release()
        running.start()
        assert running.get("/api/turns/one", user_id="ada")["state"] == "unfinished"
        again = running.turn("my pet is cat", turn_id="one", wait_for_memory=True)
        assert again["memory"]["update"]["status"] == "done"
        assert texts(running) == [("user", "my pet is cat"), ("assistant", "All right.")]
        assert facts(running) == {"pet": "cat"}


def test_a_hanging_extraction_does_not_hold_the_stop_and_is_made_up_for(tmp_path: Path, fake: FakeOpenAI) -> None:
    def reply_then_hang(body: Body) -> Answer | None:
        if extraction_tool(body) is None:
            fake.hang()
        return learning(body)

    fake.on_chat = reply_then_hang
    with service(tmp_path, **model_settings(fake.url, SHUTDOWN_SECONDS="1")) as running:
        running.turn("my pet is cat", turn_id="one")
        until(lambda: len(fake.extractions) == 1)
        begun = time.monotonic()
        assert running.stop() == 0
        assert time.monotonic() - begun < 1 + SLACK_SECONDS
        fake.on_chat = learning
        fake.release()
        running.start()
        assert running.settled("one")["memory"]["update"]["status"] == "done"
        assert facts(running) == {"pet": "cat"}


def test_a_second_signal_changes_nothing(tmp_path: Path, fake: FakeOpenAI) -> None:
    with service(tmp_path, **model_settings(fake.url, SHUTDOWN_SECONDS="30")) as running:
        fake.hang()
        asked = posting(running, "my pet is cat", turn_id="one")
        until(lambda: len(fake.chats) == 1)
        assert running.process is not None
        running.process.send_signal(signal.SIGTERM)
        until(lambda: _refuses(running))
        running.process.send_signal(signal.SIGTERM)
        fake.release()
        assert asked.result(60).json()["reply"] == "All right."
        assert running.process.wait(60) == 0
        assert "Traceback" not in running.log
        turn = stored_turn(running.data_dir, "one")
        assert turn.update is not None
        assert turn.update.status == "done"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_service_stops_at_once(tmp_path: Path, number: signal.Signals) -> None:
    stopping = Service(tmp_path)
    stopping.executed = True
    with stopping as running:
        running.turn("Hello.", wait_for_memory=True)
        assert running.process is not None
        begun = time.monotonic()
        running.process.send_signal(number)
        assert running.process.wait(30) == 0
        assert time.monotonic() - begun < SLACK_SECONDS
        assert "Traceback" not in running.log
        assert "Hello." not in running.log


def test_updates_that_wait_for_an_outage_do_not_hold_the_stop(tmp_path: Path, fake: FakeOpenAI) -> None:
    fake.on_chat = lambda body: 503 if extraction_tool(body) else None
    with service(tmp_path, **model_settings(fake.url, SHUTDOWN_SECONDS="60")) as running:
        for number in range(3):
            running.turn("my pet is cat", turn_id=f"turn{number}")
        until(lambda: "action=step_failed" in running.log)
        begun = time.monotonic()
        assert running.stop() == 0
        assert time.monotonic() - begun < SLACK_SECONDS
        assert "aborted" not in running.log
        fake.on_chat = learning
        running.start()
        for number in range(3):
            assert running.settled(f"turn{number}")["memory"]["update"]["status"] == "done"
        assert facts(running) == {"pet": "cat"}
