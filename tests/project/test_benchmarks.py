"""The benchmarks run and count rightly; how fast the machine is says nothing here."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.talk import chatting
from tests.conftest import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    file = tmp_path_factory.mktemp("benchmark") / "turn.json"
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.turn", "--quick", "--json", str(file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout, json.loads(file.read_text(encoding="utf-8"))


def test_the_table_shows_every_row_and_says_what_was_missed(quick: tuple[str, dict[str, Any]]) -> None:
    printed, written = quick

    shown = [line.split("|")[1].strip() for line in printed.splitlines() if line.startswith("| ")]
    assert shown == ["what", *(row["what"] for row in written["rows"])]
    missed = [row["what"] for row in written["rows"] if row["verdict"] == "MISSED"]
    last = printed.strip().splitlines()[-1]
    assert last == (f"{len(missed)} missed: {'; '.join(missed)}." if missed else "Every target was reached.")


@pytest.mark.parametrize("talk", ["lexical", "fake-embed", "different"])
def test_a_turn_makes_one_chat_call_before_its_reply_and_one_after(
    quick: tuple[str, dict[str, Any]], talk: str
) -> None:
    _, written = quick
    turns = written["figures"][talk]["calls"]["turns"]

    assert {(turn["chat before"], turn["extraction after"], turn["others"]) for turn in turns} == {(1, 1, 0)}
    assert turns[0]["embedding before"] == 0
    # The point of a fact that the turn before taught may be made beside the next turn.
    assert turns[-1]["embedding before"] in {"lexical": (0,), "fake-embed": (1,), "different": (1, 2)}[talk]


@pytest.mark.parametrize("talk", ["lexical", "fake-embed", "different"])
def test_under_load_every_turn_is_answered_and_learned_from(quick: tuple[str, dict[str, Any]], talk: str) -> None:
    load = quick[1]["figures"][talk]["load"]

    assert load["errors"] == []
    assert load["turns"] > 0
    assert load["updates"]["ended"] == {"done": load["turns"]}
    taught = load["updates"]["changes"]
    assert 0 < taught < load["turns"] if talk == "different" else taught == load["turns"]


def test_all_references_answer_the_same_users(quick: tuple[str, dict[str, Any]]) -> None:
    for name in ("floor", "bare graph", "bare graph, ten turns"):
        assert quick[1]["figures"][name]["errors"] == []
        assert quick[1]["figures"][name]["turns"] > 0


def test_no_message_of_the_talk_of_different_turns_is_said_twice() -> None:
    said = [chatting(number, user) for user in range(32) for number in range(60)]

    assert len(set(said)) == len(said)


def test_no_machine_path_is_written(quick: tuple[str, dict[str, Any]]) -> None:
    printed, written = quick

    for place in (str(ROOT), str(Path.home()), "/tmp"):
        assert place not in printed
        assert place not in json.dumps(written)
