import math
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from memory.ranking import above, blend, cosine, mmr, recency
from memory.recall import RecallOptions, rank
from memory.vector_index import Entry, Match

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)


def match(name: str, similarity: float, *, days: float = 0, dense: Sequence[float] | None = None) -> Match:
    entry = Entry(
        id=name,
        user_id="ada",
        thread_id="t1",
        turn_id=name,
        kind="episode",
        content=name,
        created_at=NOW - timedelta(days=days),
    )
    return Match(entry, similarity, dense)


def ids(matches: Sequence[Match], **options: float | None) -> list[str]:
    chosen = RecallOptions(**{"score_threshold": -1, "top_k": 50, **options})  # pyright: ignore[reportArgumentType]
    return [hit.entry.id for hit in rank(matches, chosen, now=NOW)]


def naive_mmr(relevance: Sequence[float], vectors: Sequence[Sequence[float]], limit: int, trade: float) -> list[int]:
    """The textbook, word for word: argmax over the rest of λ·rel - (1-λ)·max over the chosen of sim."""
    chosen = list[int]()
    while len(chosen) < min(limit, len(vectors)):
        scores = {
            place: trade * relevance[place]
            - (1 - trade) * max((cosine(vectors[place], vectors[other]) for other in chosen), default=0.0)
            for place in range(len(vectors))
            if place not in chosen
        }
        chosen.append(min(scores, key=lambda place: (-scores[place], place)))
    return chosen


@pytest.mark.parametrize("seed", range(60))
def test_mmr_is_the_textbooks(seed: int) -> None:
    chance = random.Random(seed)
    count = chance.randrange(0, 14)
    vectors = [[chance.choice([-1.0, 0.0, 0.5, 1.0, 2.0]) for _ in range(3)] for _ in range(count)]
    relevance = [chance.choice([-0.5, 0.0, 0.25, 0.5, 1.0]) for _ in range(count)]
    limit, trade = chance.randrange(0, 16), chance.choice([0.0, 0.25, 0.5, 0.75, 1.0])
    chosen = mmr(relevance, vectors, limit=limit, trade_off=trade)
    assert chosen == naive_mmr(relevance, vectors, limit, trade)
    assert len(set(chosen)) == len(chosen) == min(limit, count)


def test_mmr_at_one_is_relevance_alone() -> None:
    relevance = [0.1, 0.9, 0.5, 0.9]
    assert mmr(relevance, [[1.0, 0.0]] * 4, limit=4, trade_off=1.0) == [1, 3, 2, 0]


def test_mmr_prefers_variety() -> None:
    vectors = [[1.0, 0.0], [1.0, 0.01], [0.0, 1.0]]
    assert mmr([1.0, 0.99, 0.5], vectors, limit=2, trade_off=0.5) == [0, 2]
    assert mmr([1.0, 0.99, 0.5], vectors, limit=2, trade_off=0.9) == [0, 1]


def test_an_opposite_is_worth_more_than_a_stranger() -> None:
    assert mmr([1.0, 0.5, 0.5], [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]], limit=2, trade_off=0.5) == [0, 2]


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ([1.0, 0.0], [5.0, 0.0], 1.0),
        ([1.0, 0.0], [0.0, 3.0], 0.0),
        ([1.0, 1.0], [-2.0, -2.0], -1.0),
        ([0.0, 0.0], [1.0, 0.0], 0.0),
        ([], [], 0.0),
    ],
)
def test_cosine(left: list[float], right: list[float], expected: float) -> None:
    assert math.isclose(cosine(left, right), expected, abs_tol=1e-12)


@pytest.mark.parametrize(("days", "expected"), [(0, 1.0), (30, 0.5), (60, 0.25), (90, 0.125), (-5, 1.0)])
def test_recency_halves_every_thirty_days(days: float, expected: float) -> None:
    assert math.isclose(recency(NOW - timedelta(days=days), NOW), expected)


def test_recency_falls_with_age_and_stays_in_its_range() -> None:
    found = [recency(NOW - timedelta(days=days), NOW) for days in (0, 0.5, 1, 7, 365, 36_500)]
    assert found == sorted(found, reverse=True)
    assert all(0 <= fresh <= 1 for fresh in found)


def test_the_threshold_takes_what_reaches_it() -> None:
    matches = [match("a", 0.9), match("b", 0.5), match("c", 0.49), match("d", -1)]
    assert [found.entry.id for found in above(matches, 0.5)] == ["a", "b"]
    assert above(matches, -1) == matches
    assert above(matches, 1) == []


@pytest.mark.parametrize(("weight", "expected"), [(0, 0.2), (1, 0.8), (0.5, 0.5), (0.25, 0.35)])
def test_a_score_blends_similarity_and_recency(weight: float, expected: float) -> None:
    assert math.isclose(blend(0.2, 0.8, weight), expected)


def test_hits_are_ordered_by_similarity_unless_recency_counts() -> None:
    matches = [match("old", 0.9, days=300), match("new", 0.5), match("mid", 0.7, days=30)]
    assert ids(matches) == ["old", "mid", "new"]
    assert ids(matches, recency_weight=1.0) == ["new", "mid", "old"]
    assert ids(matches, recency_weight=0.5) == ["new", "mid", "old"]
    assert ids(matches, recency_weight=0.1) == ["old", "mid", "new"]


def test_recency_never_lifts_a_match_over_the_threshold() -> None:
    matches = [match("fresh", 0.1), match("alike", 0.6, days=300)]
    assert ids(matches, recency_weight=1.0, score_threshold=0.5) == ["alike"]


def test_top_k_cuts_after_the_ordering() -> None:
    matches = [match("old", 0.9, days=300), match("new", 0.5), match("mid", 0.7, days=30)]
    assert ids(matches, recency_weight=1.0, top_k=1) == ["new"]
    assert ids(matches, top_k=0) == []


def test_equal_scores_come_in_one_order() -> None:
    matches = [match(name, 0.5) for name in "cab"]
    assert ids(matches) == ids(list(reversed(matches))) == ["a", "b", "c"]


def test_mmr_works_on_the_score_and_keeps_the_hits_own_numbers() -> None:
    matches = [
        match("a", 0.9, dense=[1.0, 0.0]),
        match("twin", 0.89, dense=[1.0, 0.0]),
        match("other", 0.5, dense=[0.0, 1.0]),
    ]
    assert ids(matches, mmr_lambda=0.5, top_k=2) == ["a", "other"]
    assert ids(matches, mmr_lambda=1.0, top_k=2) == ["a", "twin"]
    options = RecallOptions(score_threshold=-1, mmr_lambda=0.5, recency_weight=0.5)
    for hit in rank(matches, options, now=NOW):
        assert math.isclose(hit.score, (hit.similarity + hit.recency) / 2)
