"""The recall benchmark reads LoCoMo rightly, measures as it says, and goes through the whole memory."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from benchmarks.recalling.folds import Weights, chosen_elsewhere, folds, weights_grid
from benchmarks.recalling.locomo import Observation, Question, Talk, as_one, read_locomo
from benchmarks.recalling.measures import Outcome, curve, figures, outcome
from benchmarks.recalling.quantized import CODES, WHOLE
from recollect.memory.ports.vector_index import Entry
from recollect.memory.recall.hit import Hit
from recollect.memory.recall.signals import PEOPLE, PEOPLE_BY_WORDS
from tests.conftest import ROOT

SAID = [
    ("D1:1", "Ada", "I planted a lemon tree in the garden yesterday."),
    ("D1:2", "Ben", "Lovely! My sister keeps bees in Lisbon."),
    ("D2:1", "Ada", "The piano was tuned this morning."),
    ("D2:2", "Ben", "I finally sold my old motorcycle."),
    ("D2:3", "Ada", "We booked the ferry to Crete for the summer."),
    ("D2:4", "Ben", "My doctor says I should eat less salt."),
    ("D2:5", "Ada", "The neighbours painted their fence green."),
]


def sample(name: str) -> dict[str, Any]:
    said = [{"dia_id": place, "speaker": speaker, "text": text} for place, speaker, text in SAID]
    said[3] |= {"blip_caption": "a red motorcycle"}
    return {
        "sample_id": name,
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Ben",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": said[:2],
            "session_2_date_time": "12:09 am on 13 September, 2023",
            "session_2": said[2:],
            "session_3_date_time": "12:09 am on 14 September, 2023",
        },
        "qa": [
            {"question": "What did Ada plant?", "evidence": ["D1:1"], "category": 4},
            {"question": "Who keeps bees?", "evidence": ["D:1:02"], "category": 1},
            {"question": "Whose bees, and whose motorcycle?", "evidence": ["D1:2; D2:2", "D2:2"], "category": 1},
            {"question": "When was the piano tuned?", "evidence": ["D2:1 D9:9", "D"], "category": 2},
            {"question": "Nobody knows?", "evidence": [], "category": 3},
            {"question": "Nowhere said?", "evidence": ["D7:1"], "category": 5},
        ],
        "observation": {
            "session_1_observation": {"Ada": [["Ada has a lemon tree.", "D1:1"]]},
            "session_2_observation": {"Ben": [["Ben sold a motorcycle.", ["D2:2", "D2:4"]], ["Lost.", "D8:8"]]},
        },
    }


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps([sample("conv-1"), sample("conv-2")]), encoding="utf-8")
    return path


@pytest.fixture
def talk(file: Path) -> Talk:
    return read_locomo(file)[0]


def test_a_conversation_is_a_user_and_its_sessions_are_threads(talk: Talk) -> None:
    assert talk.id == "conv-1"
    assert [said.message_id for said in talk.messages] == [f"conv-1/{place}" for place, _, _ in SAID]
    assert talk.messages[3].line(talk.id) == {
        "user_id": "conv-1",
        "thread_id": "session-2",
        "role": "user",
        "name": "Ben",
        "content": "I finally sold my old motorcycle. [shares a red motorcycle]",
        "timestamp": "2023-09-13T00:09:05+00:00",
        "message_id": "conv-1/D2:2",
    }
    assert talk.asked_at == datetime(2023, 9, 13, 1, 9, 20, tzinfo=UTC)


def test_malformed_evidence_is_split_or_normalised_and_questions_without_any_are_left_out(talk: Talk) -> None:
    assert talk.questions == [
        Question("What did Ada plant?", "single-hop", ("conv-1/D1:1",)),
        Question("Who keeps bees?", "multi-hop", ("conv-1/D1:2",)),
        Question("Whose bees, and whose motorcycle?", "multi-hop", ("conv-1/D1:2", "conv-1/D2:2")),
        Question("When was the piano tuned?", "temporal", ("conv-1/D2:1",)),
    ]
    assert talk.observations == [
        Observation("Ada has a lemon tree.", "conv-1/D1:1"),
        Observation("Ben sold a motorcycle.", "conv-1/D2:2"),
        Observation("Ben sold a motorcycle.", "conv-1/D2:4"),
    ]


def test_all_conversations_as_one_keep_their_messages_and_sessions_apart(file: Path) -> None:
    one = as_one(read_locomo(file))
    assert len({said.message_id for said in one.messages}) == 2 * len(SAID)
    assert {said.thread_id for said in one.messages} == {
        f"conv-{talk}-session-{at}" for talk in (1, 2) for at in (1, 2)
    }
    assert (len(one.questions), len(one.observations)) == (8, 6)


def test_locomo_itself_has_1982_questions_with_usable_evidence(locomo_path: Path) -> None:
    talks = read_locomo(locomo_path)
    assert sum(len(talk.questions) for talk in talks) == 1_982
    assert sum(len(talk.messages) for talk in talks) == 5_882


def hit(message_id: str, characters: int) -> Hit:
    """Return a hit whose line, `[2023-05-08] Ada: …`, has so many characters."""
    at = datetime(2023, 5, 8, tzinfo=UTC)
    text = "x" * (characters - len("[2023-05-08] Ada: "))
    entry = Entry("id", "conv-1", "session-1", "turn", "episode", text, at, name="Ada", message_id=message_id)
    return Hit(entry, 1.0, 1.0, 0.0)


def test_recall_counts_evidence_among_the_first_hits_and_within_a_budget() -> None:
    hits = [hit("a", 40), hit("b", 41), hit("c", 400), *[hit(f"x{number}", 40) for number in range(4)], hit("d", 40)]
    measured = outcome(hits, ["b", "d", "nowhere", "c"], talk="t", category="multi-hop", milliseconds=1.0)
    assert measured.tokens == [10, 21, 121, 131, 141, 151, 161, 171]
    assert [measured.at(k) for k in (1, 2, 3, 7, 8, 50)] == [0, 0.25, 0.5, 0.5, 0.75, 0.75]
    assert [measured.within(budget) for budget in (9, 20, 21, 120, 121, 170, 171)] == [0, 0, 0.25, 0.25, 0.5, 0.5, 0.75]


def test_sessions_count_once_at_their_first_hit_and_all_or_any_of_them() -> None:
    said = ["a/D1:1", "a/D1:2", "a/D2:1", "a/D3:1", "a/D3:2", "a/D4:1"]
    hits = [hit(message_id, 40) for message_id in said]
    measured = outcome(hits, ["a/D4:9", "a/D2:2", "a/D2:3"], talk="a", category="multi-hop", milliseconds=1.0)
    assert [measured.any_session(k) for k in (1, 2, 4)] == [0, 1, 1]
    assert [measured.all_sessions(k) for k in (2, 3, 4)] == [0, 0, 1]
    beyond = outcome(hits, ["a/D2:2", "a/D9:1"], talk="a", category="multi-hop", milliseconds=1.0)
    assert (beyond.any_session(10), beyond.all_sessions(10)) == (1, 0)


def scored(talk: str, place: int, category: str = "single-hop", milliseconds: float = 1.0) -> Outcome:
    return Outcome(talk, category, 1, [place], [30 * (number + 1) for number in range(50)], milliseconds)


def test_figures_are_averages_over_questions_in_percent() -> None:
    found = figures([scored("a", 0), scored("a", 7, "temporal", 3.0), scored("b", 40, milliseconds=2.0)])
    assert {k: round(value, 1) for k, value in found.at.items()} == {5: 33.3, 10: 66.7, 25: 66.7, 50: 100.0}
    assert found.within == pytest.approx(200 / 3)
    assert found.by_category == {"temporal": 100.0, "single-hop": 50.0}
    assert (found.p50, found.p95 >= 2.0) == (2.0, True)
    assert curve([scored("a", 0), scored("a", 1)], [20, 30, 60]) == [0.0, 50.0, 100.0]


def test_a_fold_is_measured_with_what_was_best_on_the_others() -> None:
    talks = ["a", "b", "c"]
    parts = [frozenset({"a"}), frozenset({"b", "c"})]
    good_for_a_alone = [scored("a", 0), scored("b", 30), scored("c", 30)]
    good_for_the_others = [scored("a", 49), scored("b", 0), scored("c", 0)]
    chosen = chosen_elsewhere([good_for_a_alone, good_for_the_others], parts)
    assert [(one.talk, one.places) for one in chosen] == [("a", [49]), ("b", [30]), ("c", [30])]
    assert sorted(name for part in folds(talks) for name in part) == talks
    assert [len(part) for part in folds([str(number) for number in range(10)])] == [2] * 5


def test_the_grid_lies_around_the_defaults_and_moves_weight_without_losing_any() -> None:
    grid = weights_grid()
    assert grid[0] == Weights()
    assert len(set(grid)) == len(grid) == 27
    for base in (PEOPLE, PEOPLE_BY_WORDS):
        assert Weights().of(base) is base
        for weights in grid:
            moved = weights.of(base)
            assert moved.dense + moved.context + moved.bm25 == pytest.approx(base.dense + base.context + base.bm25)
            assert min(moved.dense, moved.context, moved.bm25) >= 0
    assert Weights(words=0.1, thread=0.5, fact=2.0).of(PEOPLE).bm25 == pytest.approx(PEOPLE.bm25 + 0.1)


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.recall", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


@pytest.mark.slow
def test_it_goes_through_the_memory_and_writes_what_it_found(file: Path, tmp_path: Path) -> None:
    written = tmp_path / "out" / "recall.json"
    ran = run("--folds", "--scale", "--quick", "--json", str(written), LOCOMO_PATH=str(file), EMBEDDING_MODEL="lexical")
    assert ran.returncode == 0, ran.stderr
    found = json.loads(written.read_text(encoding="utf-8"))["figures"]
    assert found["passes"]["no embedding model"]["R@10"] == 100.0
    assert found["passes"]["no embedding model, with extracted facts"]["R@50"] == 100.0
    assert found["folds"].keys() == found["passes"].keys()
    assert [at["others"] for at in found["scale"]["searches"]] == [200, 600]
    assert all(at["longest hold"] > 0 for at in found["scale"]["searches"])
    assert "longest hold of the event loop" in ran.stdout
    assert "DRAGON" in ran.stdout
    assert written.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    for place in (str(ROOT), str(tmp_path)):
        assert place not in ran.stdout + written.read_text(encoding="utf-8")


@pytest.mark.slow
def test_it_searches_short_vectors_as_qdrant_is_asked_to(tmp_path: Path) -> None:
    file, written = tmp_path / "locomo.json", tmp_path / "recall.json"
    file.write_text(json.dumps([sample("conv-1")]), encoding="utf-8")
    asked = ("--quantization", "scalar", "binary", "--json", str(written))
    ran = run(*asked, LOCOMO_PATH=str(file), EMBEDDING_MODEL="lexical")
    assert ran.returncode == 0, ran.stderr
    found = json.loads(written.read_text(encoding="utf-8"))
    names = [f"no embedding model, {how}" for how in (WHOLE, CODES, "scalar", "binary")]
    assert {name: at["R@50"] for name, at in found["figures"]["quantization"].items()} == dict.fromkeys(names, 100.0)
    # Of 7 messages all are rescored, so that none is lost.
    assert [row["figure"] for row in found["rows"]] == ["100.00 %"] * 3


@pytest.mark.parametrize("arguments", [(), ("--scale", "--quantization", "binary")])
def test_without_locomo_it_says_what_to_set(arguments: Sequence[str]) -> None:
    ran = run(*arguments, LOCOMO_PATH="")
    assert ran.returncode == 2
    assert "LOCOMO_PATH" in ran.stderr
