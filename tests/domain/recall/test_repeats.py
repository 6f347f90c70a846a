import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest

from recollect.memory.ports.vector_index import Entry, Kind, Origin
from recollect.memory.recall.candidate_filter import CandidateFilter
from recollect.memory.recall.candidates.candidate import Candidate
from recollect.memory.recall.ranking import Scored
from recollect.memory.recall.repeats import MOST_IDS, Repeats, equal, merge

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)


def entry(
    place: int, content: str, *, role: str | None = "user", name: str | None = None, kind: Kind = "episode"
) -> Entry:
    return Entry(f"e{place}", "ada", "t1", f"t{place}", kind, content, NOW + timedelta(days=place), role, name)


@pytest.mark.parametrize(
    ("one", "other", "is_equal"),
    [
        ("I like tea.", "i  LIKE tea!", True),
        ("Straße", "STRASSE", True),
        ("5 mg", "10 mg", False),
        ("It is 1.5", "It is 15", False),
        ("C", "C#", False),
        ("?", "!", False),
        ("!", "!", True),
        ("long " * 500 + "a", "long " * 500 + "b", False),
        ("lang ü " * 500, "Lang Ü " * 500 + "…", True),
        ("lang ü " * 500 + "ä" + " lang" * 500, "lang ü " * 500 + "ö" + " lang" * 500, False),
        ("!" * 500 + "I like tea.", "I like tea", True),
        ("I like tea." + "\n" * 900, "I like tea", True),
        ("가" * 200 + "각", "가" * 200 + "각", True),
    ],
)
def test_texts_are_compared_folded(one: str, other: str, is_equal: bool) -> None:
    assert equal([entry(1, one), entry(2, other)]) == ([[1, 0]] if is_equal else [[0], [1]])


def test_only_one_speaker_of_one_kind_repeats_itself() -> None:
    told = "I like tea."
    apart = [
        entry(1, told),
        entry(2, told, role="assistant"),
        entry(3, told, name="Bob"),
        entry(4, told, role=None, kind="fact"),
    ]
    assert equal(apart) == [[0], [1], [2], [3]]
    passages = [
        Entry(f"p{doc}", "ada", None, None, "document", told, NOW, origin=Origin(doc)) for doc in ("one", "two")
    ]
    assert equal(passages) == [[0], [1]]


def test_the_newest_takes_the_best_score_and_says_why() -> None:
    scored = [
        Scored(Candidate(entry(1, "tea")), 0.9, {"fused": 0.9}),
        Scored(Candidate(entry(5, "milk")), 0.8, {"fused": 0.8}),
        Scored(Candidate(entry(2, "Tea")), 0.3, {"fused": 0.3}),
    ]
    first, second = merge(scored)
    assert (first.kept.candidate.entry.id, first.kept.score) == ("e2", 0.9)
    assert sum(first.kept.scores.values()) == pytest.approx(0.9)
    assert [one.candidate.entry.id for one in first.older] == ["e1"]
    assert (second.kept.candidate, second.kept.score, second.older) == (scored[1].candidate, 0.8, [])


def test_ids_are_bounded_and_the_count_is_not() -> None:
    repeats = Repeats.of([entry(place, "tea") for place in range(60, 0, -1)])
    assert repeats is not None
    assert (repeats.count, len(repeats.ids), repeats.ids[0]) == (60, MOST_IDS, "e60")
    assert (repeats.first, repeats.last) == (NOW + timedelta(days=1), NOW + timedelta(days=60))
    assert Repeats.of([entry(1, "tea")]) is None


async def waits(work: Callable[[], Awaitable[None]]) -> bool:
    """Tell whether another task got its turn while `work` ran."""
    other = asyncio.create_task(asyncio.sleep(0))
    await work()
    had_turn = other.done()
    await other
    return had_turn


@pytest.mark.parametrize(
    ("said", "is_long"),
    [
        ([f"I like tea and {place} kinds of cake." for place in range(200)], False),
        ([f"{place}: Grüße an alle, {'lang ü ' * 500}" for place in range(200)], True),
        (["Grüße " * 100 + f"an {place}" for place in range(200)], True),
        (["«»" * 10_000 + str(place) for place in range(3)], True),
    ],
    ids=["short", "long", "long and alike", "signs alone"],
)
async def test_long_texts_are_merged_off_the_event_loop(said: list[str], is_long: bool) -> None:
    scored = [Scored(Candidate(entry(place, text)), 1.0) for place, text in enumerate([*said, said[0]])]
    candidates = CandidateFilter(scored)
    assert await waits(candidates.merge_off_loop) is is_long
    assert candidates.left == [one.kept for one in merge(scored)]
    assert len(candidates.left) == len(said)
