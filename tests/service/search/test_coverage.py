"""A whole period, and a subject over time, are covered: no thread and no part of it hides another."""

from typing import Any

import pytest

from tests.service.search.test_recall import lines, search, take_in
from tests.service.support.running import Service

SUBJECTS = ("tea", "rent", "bikes", "jazz", "taxes", "figs", "snow", "chess")
YESTERDAY = "What did we discuss yesterday?"


@pytest.fixture(scope="module")
def told(offline: Service) -> tuple[Service, str]:
    """Have eight subjects of six messages each: yesterday in eight threads, and on the day before in one."""
    user = "u-coverage"
    talk = [
        (
            f"2026-03-{day}T{8 + place:02}:{number:02}:00Z",
            f"{subject if day == 14 else 'all'}",
            role,
            f"{text} {subject}?",
        )
        for day in (13, 14)
        for place, subject in enumerate(SUBJECTS)
        for number, (role, text) in enumerate(
            [
                ("user", f"On {day} question {n} of") if n % 2 == 0 else ("assistant", f"On {day} answer {n} of")
                for n in range(6)
            ]
        )
    ]
    take_in(offline, lines(user, talk))
    return offline, user


def subjects(shown: dict[str, Any]) -> set[str]:
    return {hit["content"].rstrip("?").split()[-1] for hit in shown["hits"]}


def test_each_thread_of_the_period_has_its_place(told: tuple[Service, str]) -> None:
    shown = search(*told, YESTERDAY, top_k=8, explain=True)
    assert subjects(shown) == set(SUBJECTS)
    times = [hit["created_at"] for hit in shown["hits"]]
    assert times == sorted(times)
    assert {trace["stage"] for trace in shown["trace"]} == {"coverage"}
    assert {trace["reason"] for trace in shown["trace"]} == {"the query asks for a whole period"}


@pytest.mark.parametrize(
    "query",
    [
        "In which order did we discuss things yesterday?",
        "Give me an overview of yesterday.",
        "In welcher Reihenfolge haben wir gestern die Themen besprochen?",
    ],
)
def test_an_order_or_an_overview_of_a_period_is_covered_by_all_of_it(told: tuple[Service, str], query: str) -> None:
    shown = search(*told, query, top_k=8, explain=True)
    assert subjects(shown) == set(SUBJECTS)
    assert {trace["reason"] for trace in shown["trace"]} == {"the query asks for a whole period"}


def test_a_period_gives_no_messages_where_tags_ask_for_facts(told: tuple[Service, str]) -> None:
    assert {hit["kind"] for hit in search(*told, YESTERDAY, tags=["fun"])["hits"]} <= {"fact"}


def test_within_a_thread_the_hits_are_spread_over_its_time(told: tuple[Service, str]) -> None:
    shown = search(*told, "What did we discuss on 13 March 2026?", top_k=8)
    assert subjects(shown) == set(SUBJECTS)
    assert {hit["thread_id"] for hit in shown["hits"]} == {"all"}


def test_a_budget_makes_room_for_all_subjects(told: tuple[Service, str]) -> None:
    shown = search(*told, YESTERDAY, top_k=5, token_budget=200)
    assert subjects(shown) == set(SUBJECTS)
    assert len(shown["hits"]) > 8


def test_off_gives_the_beginning_of_the_period_and_on_covers_any_subject(told: tuple[Service, str]) -> None:
    first = search(*told, YESTERDAY, top_k=5, coverage="off", explain=True)
    assert subjects(first) == {"tea"}
    assert {trace["stage"] for trace in first["trace"]} == {"period"}
    best = search(*told, "chess", top_k=4, explain=True)
    assert "coverage" not in {trace["stage"] for trace in best["trace"]}
    spread = search(*told, "chess", top_k=4, coverage="on", explain=True)
    assert {hit["created_at"][:10] for hit in spread["hits"]} == {"2026-03-13", "2026-03-14"}
    assert "coverage was asked for" in {trace["reason"] for trace in spread["trace"]}


def test_a_list_of_everything_covers_its_subject_in_order_of_time(told: tuple[Service, str]) -> None:
    shown = search(*told, "List everything I said about chess", top_k=6, explain=True)
    assert subjects(shown) == {"chess"}
    times = [hit["created_at"] for hit in shown["hits"]]
    assert times == sorted(times)
    assert times[0][:10] != times[-1][:10]
    reasons = {trace["reason"] for trace in shown["trace"] if trace["stage"] == "coverage"}
    assert reasons == {"the query asks for a list of everything"}


def test_a_turn_covers_the_period_that_it_asks_for(told: tuple[Service, str]) -> None:
    running, user = told
    body = {"user_id": user, "thread_id": "new", "message": "What did we discuss on 14 March 2026?"}
    for scope in ("auto", "user"):
        asked = {**body, "memory": {"top_k": 8, "scope": scope}}
        assert subjects(running.http.post("/api/context", json=asked).json()) == set(SUBJECTS)
    off = {**body, "memory": {"top_k": 5, "coverage": "off"}}
    assert subjects(running.http.post("/api/context", json=off).json()) == {"tea"}


def test_sessions_come_with_the_hits_that_cover_a_period_or_a_subject(told: tuple[Service, str]) -> None:
    for query in (YESTERDAY, "Summarize what I said about chess"):
        covered = search(*told, query, top_k=2)
        shown = search(*told, query, top_k=2, expand="thread", explain=True)
        assert {hit["id"] for hit in covered["hits"]} < {hit["id"] for hit in shown["hits"]}
        assert {hit["thread_id"] for hit in covered["hits"]} == {hit["thread_id"] for hit in shown["hits"]}
        stages = {trace["id"]: trace["stage"] for trace in shown["trace"]}
        assert {stages[hit["id"]] for hit in shown["hits"]} == {"coverage", "session"}
        times = [hit["created_at"] for hit in shown["hits"]]
        assert times == sorted(times)
    whole = search(*told, YESTERDAY, top_k=50, expand="thread")
    assert len(whole["hits"]) == 48
    bounded = search(*told, YESTERDAY, top_k=2, expand="thread", token_budget=60)
    assert 0 < len(bounded["hits"]) < len(whole["hits"])


def test_a_period_without_coverage_is_expanded_too(told: tuple[Service, str]) -> None:
    shown = search(*told, YESTERDAY, top_k=1, coverage="off", expand="thread", explain=True)
    assert len(shown["hits"]) == 6
    assert {trace["stage"] for trace in shown["trace"]} == {"period", "session"}
