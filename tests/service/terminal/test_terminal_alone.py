"""`recollect chat` where no service runs, or none any more."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.commands import recollect
from tests.service.support.running import Service, free_port, model_settings
from tests.service.support.scripts import facts, texts
from tests.service.support.terminals import Terminal

REPLY = " ".join(f"word{number}" for number in range(40))
CTRL_C = "\x03"


@pytest.fixture
def stopped(tmp_path: Path, fake: FakeOpenAI) -> Iterator[Service]:
    """Yield a service that does not run: its folder and settings alone."""
    made = Service(tmp_path, **model_settings(fake.url, EMBEDDING_MODEL="fake-embed"))
    yield made
    made.http.close()


def test_a_service_that_is_gone_is_named_and_talked_to_again(stopped: Service) -> None:
    with stopped, Terminal(stopped, "chat", "--user", "ada", "--url", stopped.url) as terminal:
        terminal.ready()
        stopped.stop()
        assert "does not answer (ConnectError)" in terminal.enter("Hello?")
        stopped.start()
        assert "All right." in terminal.enter("Hello?")
        assert terminal.end() == 0


def test_a_service_that_was_never_there_is_named_at_once(stopped: Service) -> None:
    with Terminal(stopped, "chat", "--user", "ada", "--url", f"http://127.0.0.1:{free_port()}") as terminal:
        assert terminal.ended() == 1
        assert "does not answer (ConnectError); see whether it runs." in terminal.shown
        assert "ada in thread" not in terminal.shown


def test_without_a_service_the_terminal_brings_its_own(stopped: Service, fake: FakeOpenAI) -> None:
    fake.script(REPLY)
    fake.piece_seconds = 0.02
    with Terminal(stopped, "chat", "--user", "ada", "--thread", "t1") as terminal:
        terminal.ready()
        terminal.press("my pet is cat\r")
        terminal.sees("word1 ")
        fake.hang()
        assert (stopped.data_dir / "lock").read_text()
        fake.release()
        assert "word39" in terminal.ready()
        assert "pet   cat" in terminal.enter("!facts")
        beside = recollect(stopped, "facts", "--user", "ada")
        assert "cat" in beside.stdout, beside.stderr
        assert terminal.end() == 0
    assert "cat" in recollect(stopped, "facts", "--user", "ada").stdout


@pytest.mark.slow
def test_when_the_terminal_that_brought_the_service_ends_the_other_brings_one(stopped: Service) -> None:
    with Terminal(stopped, "chat", "--user", "ada", "--thread", "t1") as first:
        first.ready()
        with Terminal(stopped, "chat", "--user", "bob", "--thread", "t1") as second:
            second.ready()
            second.enter("my pet is dog")
            assert first.end() == 0
            assert "All right." in second.enter("Hello again.")
            assert "dog" in second.enter("!facts")
            assert second.end() == 0


@pytest.mark.slow
def test_what_its_own_service_is_at_is_finished_at_the_end(stopped: Service, fake: FakeOpenAI) -> None:
    fake.script(REPLY)
    fake.piece_seconds = 0.02
    with Terminal(stopped, "chat", "--user", "ada", "--thread", "t1") as terminal:
        terminal.ready()
        terminal.press("my pet is cat\r")
        terminal.sees("word1 ")
        terminal.press(CTRL_C)
        terminal.ready()
        assert terminal.end() == 0
    with stopped:
        assert texts(stopped) == [("user", "my pet is cat"), ("assistant", REPLY)]
        assert facts(stopped) == {"pet": "cat"}
