from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from recollect.memory.ports.vector_index import Entry, Kind
from recollect.memory.recall.coverage.coverage import SLICES, Coverable, best_of, cover, slices
from recollect.memory.recall.coverage.coverage_questions import why_covered
from recollect.memory.values.period import Period

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)


def one(
    minute: int, thread: str | None, score: float = 0.0, *, role: str = "user", kind: Kind = "episode"
) -> Coverable:
    at = NOW + timedelta(minutes=minute)
    return Coverable(Entry(f"e{minute}", "ada", thread, "t", kind, "text", at, role, position=minute), score)


def test_each_thread_gets_a_place_before_any_gets_a_second() -> None:
    found = [one(number, f"t{number // 6}") for number in range(48)]
    assert {found[place].entry.thread_id for place in cover(found, 8)} == {f"t{number}" for number in range(8)}
    chosen = cover(found, 12)
    assert {found[place].entry.thread_id for place in chosen[:8]} == {f"t{number}" for number in range(8)}
    assert len(set(chosen)) == 12
    assert sorted(found[place].entry.thread_id or "" for place in cover(found, 4)) == ["t0", "t2", "t4", "t6"]


def test_within_a_thread_the_places_are_spread_over_its_time() -> None:
    found = [one(number, "t") for number in range(48)]
    assert sorted(cover(found, 8)) == list(range(0, 48, 6))
    assert cover(found, 100) != sorted(cover(found, 100))
    assert sorted(cover(found, 100)) == list(range(48))
    assert cover([], 5) == []


def test_of_a_part_the_best_is_chosen_and_a_users_message_before_a_reply() -> None:
    found = [one(0, "t", role="assistant"), one(1, "t"), one(2, "t", 0.1), one(3, "t", 0.9)]
    assert sorted(cover(found, 2)) == [1, 3]


def test_a_summary_stands_for_a_thread_without_messages_alone() -> None:
    found = [one(0, "t", 0.2), one(1, "t", 0.9, kind="summary"), one(2, "u", 0.5, kind="summary")]
    assert sorted(cover(found, 5)) == [0, 2]


def test_candidates_far_behind_the_best_are_not_of_the_subject() -> None:
    assert best_of([1.0, 0.6, 0.5, 0.4], 5) == [0, 1, 2]
    assert best_of([1.0] * 10, 2) == list(range(6))
    assert best_of([], 2) == []


def test_slices_cover_the_period() -> None:
    period = Period(NOW, NOW + timedelta(days=7))
    parts = slices(period)
    assert (len(parts), parts[0].begin, parts[-1].end) == (SLICES, period.begin, period.end)
    assert all(left.end == right.begin for left, right in pairwise(parts))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("In which order did I visit the museums?", "order"),
        ("How did my opinion of the tax law develop?", "development"),
        ("How has my running progressed?", "development"),
        ("How has my opinion of remote work changed?", "development"),
        ("List everything I said about tea.", "list"),
        ("What is all that I told you about my sister?", "list"),
        ("Name all the cities that I visited.", "list"),
        ("Summarize our talks about the house.", "summary"),
        ("Can you give me an overview of the Apollo project?", "summary"),
        ("In welcher Reihenfolge habe ich die Städte besucht?", "order"),
        ("Wie hat sich mein Knie entwickelt?", "development"),
        ("Wie haben sich meine Pläne geändert?", "development"),
        ("Wie veränderte sich meine Meinung über Berlin?", "development"),
        ("Nenne mir alles, was ich über Tee gesagt habe.", "list"),
        ("Fasse unsere Gespräche über das Haus zusammen.", "summary"),
        ("Dans quel ordre ai-je visité les musées ?", "order"),
    ],
)
def test_questions_that_want_more_than_the_best_few_are_known(text: str, word: str) -> None:
    assert word in (why_covered(text) or "")


@pytest.mark.parametrize(
    "text",
    [
        "Which tea does she love?",
        "How did Ada feel about the race?",
        "How did you know that I changed my job?",
        "In order to relax, I drink tea.",
        "What did I order at the restaurant?",
        "Wann habe ich Tee bestellt?",
        "Summarize this: " + "text " * 200,
    ],
)
def test_other_questions_are_answered_by_the_best_few(text: str) -> None:
    assert why_covered(text) is None
