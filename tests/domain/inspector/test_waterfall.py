from recollect.api.inspector.waterfall import WaterfallStep, waterfall_of
from recollect.memory.recall.hit import CandidateTrace, Stage


def traces(*stages: tuple[Stage, str | None]) -> list[CandidateTrace]:
    return [CandidateTrace(str(number), {}, stage, reason) for number, (stage, reason) in enumerate(stages)]


def test_steps_come_in_the_order_of_the_search() -> None:
    made = waterfall_of(
        traces(
            ("selected", None),
            ("neighbour", None),
            ("budget", "full"),
            ("rank", "2 others score higher"),
            ("rank", "2 others score higher"),
            ("rank", "not read"),
            ("threshold", "below 0.3"),
            ("gone", "forgotten"),
        )
    )
    assert made.candidates == 7
    assert made.steps == [
        WaterfallStep("Not confirmed by the store", "forgotten", 1, 6),
        WaterfallStep("Not relevant enough", "below 0.3", 1, 5),
        WaterfallStep("Ranked too low", "not read", 1, 4),
        WaterfallStep("Ranked too low", "2 others score higher", 2, 2),
        WaterfallStep("Over the token budget", "full", 1, 1),
    ]
    assert made.beside == [("neighbours of hits", 1)]


def test_a_search_without_candidates() -> None:
    made = waterfall_of([])
    assert (made.candidates, made.steps, made.beside) == (0, [], [])
