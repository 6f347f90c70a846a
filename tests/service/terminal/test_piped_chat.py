"""`recollect chat` with lines through a pipe: plain output and an exit code."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.commands import SECONDS, recollecting
from tests.service.support.running import Service, until
from tests.service.support.scripts import facts, learning, texts


@pytest.fixture
def stopped(tmp_path: Path) -> Iterator[Service]:
    """Yield a service that does not run: its folder alone."""
    made = Service(tmp_path)
    yield made
    made.http.close()


def piped(running: Service, lines: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the command and type nothing: the lines come through a pipe."""
    command = recollecting(running, *arguments, typed=True)
    told, shown = command.communicate(lines, timeout=SECONDS)
    return subprocess.CompletedProcess(command.args, command.wait(), told, shown)


def test_answers_alone_are_printed(served: Service, model: FakeOpenAI, user: str) -> None:
    model.script("One.", "Two.\nIn two lines.")
    ended = piped(served, "First.\n\nSecond.\n", "chat", "--user", user, "--thread", "t1")
    assert ended.stdout == "One.\nTwo.\nIn two lines.\n"
    assert (ended.returncode, ended.stderr) == (0, "")
    assert [content for _, content in texts(served, user=user)] == ["First.", "One.", "Second.", "Two.\nIn two lines."]


def test_each_turn_is_learned_from_before_the_next_line(served: Service, model: FakeOpenAI, user: str) -> None:
    model.on_chat = learning
    ended = piped(served, "my pet is cat\n!facts\n!undo\n!facts\n", "chat", "--user", user)
    assert ended.returncode == 0, ended.stderr
    known, _, rest = ended.stdout.partition("Taken back")
    assert "cat" in known
    assert "Nothing is known." in rest
    assert facts(served, user=user) == {}


def test_a_line_that_fails_is_named_and_the_next_is_read(served: Service, model: FakeOpenAI, user: str) -> None:
    ended = piped(served, f"!x\n{'a' * 200_001}\nHello.\n", "chat", "--user", user)
    assert ended.returncode == 1
    assert ended.stdout == "All right.\n"
    assert "There is no !x" in ended.stderr
    assert "(message " in ended.stderr
    assert len(ended.stderr.splitlines()) == 2
    assert "Traceback" not in ended.stderr


def test_clearing_asks_nothing_and_is_done_with_yes_alone(served: Service, model: FakeOpenAI, user: str) -> None:
    ended = piped(served, "Hello.\n!clear\nyes\n", "chat", "--user", user, "--thread", "t1")
    hint = "Nothing was removed: nobody can be asked here; !clear --yes removes without asking."
    assert ended.stdout.splitlines() == ["All right.", hint, "All right."]
    assert (ended.returncode, ended.stderr) == (0, "")
    assert [content for role, content in texts(served, user=user) if role == "user"] == ["Hello.", "yes"]
    ended = piped(served, "!clear --yes\n!clear all\n", "chat", "--user", user, "--thread", "t1")
    assert ended.stdout == "Thread t1 is empty.\n"
    assert (ended.returncode, "!clear takes nothing, or: --yes" in ended.stderr) == (1, True)
    assert texts(served, user=user) == []


def test_bytes_that_are_no_text_are_replaced(served: Service, model: FakeOpenAI, user: str) -> None:
    command = recollecting(served, "chat", "--user", user, "--thread", "t1", typed=True)
    assert command.stdin is not None
    os.write(command.stdin.fileno(), b"caf\xe9\n")
    assert command.communicate(timeout=SECONDS)[0] == "All right.\n"
    assert texts(served, user=user)[0] == ("user", "caf\N{REPLACEMENT CHARACTER}")


def test_without_a_service_it_brings_its_own_and_leaves_all_in_order(stopped: Service) -> None:
    ended = piped(stopped, "Hi, I'm Ada.\n", "chat", "--user", "ada", "--thread", "t1")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "Ada" in ended.stdout
    with stopped:
        assert facts(stopped) == {"name": "Ada"}
        assert "WARNING index repaired" not in stopped.log


def test_an_interrupt_ends_it(served: Service, model: FakeOpenAI, user: str) -> None:
    model.hang()
    command = recollecting(served, "chat", "--user", user, "--thread", "t1", typed=True)
    assert command.stdin is not None
    command.stdin.write("Hello.\nNever.\n")
    command.stdin.flush()
    until(lambda: len(model.chats) == 1)
    command.send_signal(signal.SIGINT)
    _, shown = command.communicate(timeout=SECONDS)
    assert command.returncode == 130
    assert "Traceback" not in shown
    model.release()
    until(lambda: texts(served, user=user) == [("user", "Hello."), ("assistant", "All right.")])
