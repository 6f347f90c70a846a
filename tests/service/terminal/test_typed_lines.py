"""The file of what was typed at the terminal: a data holder."""

import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from recollect.memory.stores.terminal_history import MOST_LINES, TerminalHistory, history_path
from recollect.memory.values.scope import Scope

NOW = datetime(2026, 5, 1, tzinfo=UTC)
ONE, TWO, ADA = Scope("ada", "t1"), Scope("ada", "t2"), Scope("ada")


@pytest.fixture
def history(tmp_path: Path) -> TerminalHistory:
    """Lines of two users, one of them in two threads."""
    made = TerminalHistory(tmp_path)
    for number, scope in enumerate((ONE, TWO, ONE, Scope("bob", "t1"))):
        made.add(scope, f"line {number}", at=NOW + timedelta(days=number))
    return made


def lines(history: TerminalHistory, scope: Scope) -> list[str]:
    return [typed.line for typed in history.lines(scope)]


def test_a_users_lines_are_in_a_private_file_that_names_nobody(history: TerminalHistory) -> None:
    path = history_path(history.data_dir, "ada")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert "ada" not in path.name
    assert lines(history, ADA) == ["line 0", "line 1", "line 2"]
    assert lines(history, Scope("eve")) == []


def test_any_text_comes_back(history: TerminalHistory) -> None:
    said = 'two\nlines \x1b\u2028 and "quotes" 日本'
    history.add(TWO, said, at=NOW)
    assert lines(history, TWO) == ["line 1", said]


def test_a_thread_is_erased_without_the_others(history: TerminalHistory) -> None:
    assert history.erase(ONE) == 2
    assert (history.remaining(ONE), history.remaining(TWO), history.remaining(ADA)) == (0, 1, 1)
    assert b"line 0" not in history_path(history.data_dir, "ada").read_bytes()
    assert history.erase(ONE) == 0


def test_a_user_is_erased_without_the_others(history: TerminalHistory) -> None:
    assert history.erase(ADA) == 3
    assert history.remaining(ADA) == 0
    assert not history_path(history.data_dir, "ada").exists()
    assert history.remaining(Scope("bob")) == 1
    assert history.erase(ADA) == 0
    history.add(ONE, "afresh", at=NOW)
    assert lines(history, ADA) == ["afresh"]


def test_what_is_too_old_or_too_much_is_dropped(history: TerminalHistory) -> None:
    history.trim("ada", since=NOW + timedelta(days=1))
    assert lines(history, ADA) == ["line 1", "line 2"]
    path = history_path(history.data_dir, "ada")
    path.write_text(path.read_text() * MOST_LINES)
    history.trim("ada", since=None)
    assert history.remaining(ADA) == MOST_LINES
    history.trim("eve", since=None)


def test_a_line_that_was_cut_short_costs_itself_alone(history: TerminalHistory) -> None:
    path = history_path(history.data_dir, "ada")
    path.write_text(path.read_text() + '{"at": 1, "thread_id": "t1", "li')
    history.add(ONE, "afterwards", at=NOW)
    assert lines(history, ADA) == ["line 0", "line 1", "line 2", "afterwards"]


def test_two_terminals_lose_nothing(history: TerminalHistory) -> None:
    with ThreadPoolExecutor(8) as writers:
        for number in range(200):
            writers.submit(history.add, ONE, f"more {number}", at=NOW)
        writers.submit(history.erase, TWO)
    assert history.remaining(ONE) == 202
    assert history.remaining(TWO) == 0
