"""The measures of a ranking, and the intervals of their means."""

from math import log2

import pytest

from recollect.memory.evaluation.bootstrap import mean_intervals
from recollect.memory.evaluation.cases import Case
from recollect.memory.evaluation.expected_ids import Known
from recollect.memory.evaluation.measures import ndcg, recall_at
from recollect.memory.evaluation.outcome import judge_case, report
from recollect.memory.recall.hit import CandidateTrace


def test_recall_counts_what_is_wanted_and_not_found() -> None:
    assert recall_at(5, [0, 4, 5], wanted=4) == 0.5
    assert recall_at(10, [0, 4, 5], wanted=4) == 0.75


def test_ndcg_is_one_for_the_best_order_and_less_the_later_something_stands() -> None:
    assert ndcg([0, 1], wanted=2, depth=25) == 1
    assert ndcg([1], wanted=1, depth=25) == pytest.approx(1 / log2(3))
    assert ndcg([30], wanted=1, depth=25) == 0
    assert ndcg([0, 1], wanted=50, depth=2) == 1
    assert ndcg([0, 0], wanted=2, depth=25) == 1


def test_an_interval_holds_the_mean_and_is_none_of_width_for_equal_values() -> None:
    wide, narrow = mean_intervals([[0.0, 1.0] * 50, [0.5] * 100])
    assert 0.35 < wide.low < 0.5 < wide.high < 0.65
    assert (narrow.low, narrow.high) == (0.5, 0.5)
    assert mean_intervals([[0.0, 1.0] * 50])[0] == wide


def test_each_miss_says_its_rank_or_the_step_that_dropped_it() -> None:
    ids = ["found", "eleventh", "below", "dropped", "unheard", "pointless", "nobodys"]
    known = {one: Known(one, has_point=one != "pointless") for one in ids if one != "nobodys"}
    ranked = [frozenset({"found"}), *(frozenset({f"other{place}"}) for place in range(9)), frozenset({"eleventh"})]
    traces = [
        CandidateTrace("found", {}, "selected"),
        CandidateTrace("better", {}, "rank", "25 others score higher"),
        CandidateTrace("below", {}, "rank", "25 others score higher"),
        CandidateTrace("dropped", {}, "threshold", "its similarity is below 0.1"),
    ]
    outcome = judge_case(Case(3, "ada", "Where?", tuple(ids)), known, ranked, traces)
    assert outcome.places == (0, 10)
    told = {miss.id: (miss.rank, miss.stage) for miss in outcome.misses}
    assert told == {
        "eleventh": (11, "selected"),
        "below": (13, "rank"),
        "dropped": (None, "threshold"),
        "unheard": (None, "retrieval"),
        "pointless": (None, "index"),
        "nobodys": (None, "unknown"),
    }
    shown = report([outcome])
    assert (shown["R@5"], shown["R@25"]) == (14.29, 28.57)
    assert shown["unknown"] == [{"case": 3, "user_id": "ada", "id": "nobodys"}]
