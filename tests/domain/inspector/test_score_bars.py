from typing import Any

from recollect.api.inspector.score_bars import bars_of, most_of


def test_bars_of_several_candidates_have_one_scale() -> None:
    scores = [{"dense": 0.5, "bm25": 8.0, "fused": 2.0, "thread": 0.5}, {"dense": -0.1, "bm25": 4.0, "fused": 1.0}]
    most = most_of(scores)
    assert most == {"dense": 1.0, "bm25": 8.0, "fused": 2.0, "thread": 2.0}
    assert [(bar.label, bar.value, bar.most) for bar in bars_of(scores[1], most)] == [
        ("meaning", -0.1, 1.0),
        ("words", 4.0, 8.0),
        ("all channels", 1.0, 2.0),
    ]


def test_what_is_no_number_has_no_bar() -> None:
    scores: dict[str, Any] = {"dense": "much", "fused": float("nan"), "other": None, "<b>": 1}
    assert [(bar.label, bar.value) for bar in bars_of(scores, most_of([scores]))] == [("<b>", 1.0)]
    assert list(bars_of(None, {})) == []
