from datetime import UTC, datetime

import pytest

from recollect.memory.ports.vector_index import Entry, Kind
from recollect.memory.recall.candidates.candidate import Candidate
from recollect.memory.recall.near_repeats import LOSS, MOST_COMPARED, Comparison, losses
from recollect.memory.recall.ranking import Scored

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
RUN = "I ran five miles in the park on Monday."


def scored(
    content: str, score: float = 1.0, *, role: str | None = "user", name: str | None = None, kind: Kind = "episode"
) -> Scored:
    entry = Entry(content, "ada", "t1", "t1", kind, content, NOW, role, name)
    return Scored(Candidate(entry), score, {"fused": score})


@pytest.mark.parametrize(
    ("repeated", "share"),
    [
        ("i ran FIVE miles in the park, on Tuesday!", 7 / 8),
        ("I ran five miles, and then I fell asleep", 0.0),  # 3 of 8 pairs
        ("five miles in winter", 2 / 3),
        ("Monday on park the in miles five ran I", 0.0),  # the words alone do not count
        ("Monday", 0.0),
        ("!", 0.0),
    ],
)
def test_a_text_loses_by_the_share_of_its_pairs_that_a_better_one_has(repeated: str, share: float) -> None:
    assert losses([scored(RUN), scored(repeated)], count=5) == pytest.approx([0.0, -LOSS * share])


def test_the_share_is_that_of_one_text_not_of_all_together() -> None:
    parts = [scored("I ran five miles"), scored("in the park on Monday")]
    assert losses([*parts, scored(RUN)], count=5) == [0.0, 0.0, pytest.approx(-LOSS / 2)]
    parts = [scored("I ran five"), scored("miles in the"), scored("park on Monday")]
    assert losses([*parts, scored(RUN)], count=5) == [0.0] * 4


def test_only_one_speaker_of_one_kind_repeats_itself_and_facts_lose_nothing() -> None:
    again = RUN + " Again."
    others = [
        scored(again, role="assistant"),
        scored(again, name="Bob"),
        scored(again, role=None, kind="summary"),
        scored(RUN, role=None, kind="fact"),
        scored(again, role=None, kind="fact"),
    ]
    assert losses([scored(RUN), *others], count=9) == [0.0] * 6


def test_what_cannot_be_among_the_best_is_not_compared() -> None:
    found = [scored(RUN, 1.0), scored(RUN + " So", 0.95), scored("Tea is fine", 0.9), scored(RUN + " Or", 0.8)]
    assert [loss < 0 for loss in losses(found, count=2)] == [False, True, False, False]
    assert [loss < 0 for loss in losses(found, count=4)] == [False, True, False, True]
    many = losses([scored(f"{RUN} {place}") for place in range(MOST_COMPARED + 5)], count=MOST_COMPARED + 5)
    assert [loss < 0 for loss in many] == [False] + [True] * (MOST_COMPARED - 1) + [False] * 5


def test_long_texts_are_compared_by_their_beginnings() -> None:
    one, other = "word " * 10_000 + "a", "word " * 10_000 + "b"
    assert losses([scored(one), scored(other)], count=2) == pytest.approx([0.0, -LOSS])


def test_a_comparison_stops_where_it_has_read_enough_and_goes_on_there() -> None:
    found = [scored(f"{RUN} {'and so on ' * 20} {place % 7} {'x' * place}", 1.0 - place / 1_000) for place in range(40)]
    at_once, in_steps = losses(found, count=10), Comparison(found, count=10)
    assert [in_steps.go_on(2_000), in_steps.go_on(2_000)] == [False, False]
    assert 0 < sum(loss < 0 for loss in in_steps.losses) < sum(loss < 0 for loss in at_once)
    assert in_steps.go_on()
    assert in_steps.losses == at_once
