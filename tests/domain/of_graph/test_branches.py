"""How far a client's history runs along a thread, and which turns it has left."""

import pytest

from recollect.graph.derived_thread.branches import Followed, Saying, followed, sent_sayings

HI, OSLO, YES, BYE = (Saying(text, f"On {text}", f"turn-{text}") for text in ("Hi", "Oslo", "yes", "bye"))


def unanswered(saying: Saying) -> Saying:
    return Saying(saying.text, None, saying.turn_id)


def otherwise(saying: Saying) -> Saying:
    return Saying(saying.text, "Another answer", saying.turn_id)


@pytest.mark.parametrize(
    ("sent", "message", "stored", "expected"),
    [
        ([HI], "Oslo", [HI], Followed(1, 1)),
        ([Saying(" hI\n", "Partly", "")], "Oslo", [HI], Followed(1, 0)),
        ([HI, OSLO], "yes", [HI], Followed(1, 1)),
        ([HI], "Rome", [HI, OSLO, YES], Followed(1, 1, ("turn-Oslo", "turn-yes"))),
        ([HI], "Oslo", [HI, OSLO], Followed(1, 1)),
        ([HI], "Oslo", [HI, OSLO, YES], Followed(1, 1, ("turn-Oslo", "turn-yes"))),
        ([HI], "Oslo", [HI, OSLO, unanswered(YES)], Followed(1, 1, ("turn-Oslo",))),
        ([HI], "yes", [HI, unanswered(OSLO)], Followed(1, 1)),
        ([HI, YES], "bye", [HI, unanswered(OSLO), YES], Followed(2, 2)),
        ([HI, unanswered(OSLO), YES], "bye", [HI, YES], Followed(2, 2)),
        ([HI, OSLO, YES], "bye", [HI, YES], Followed(2, 2)),
        ([HI, OSLO, YES], "bye", [HI, otherwise(YES)], None),
        ([OSLO, YES, BYE], "Hi", [YES, BYE], Followed(2, 2)),
        ([OSLO, YES], "Hi", [YES], None),
        ([HI, OSLO], "bye", [HI, YES], None),
        ([HI], "Oslo", [BYE], None),
        ([HI], "Oslo", [], None),
    ],
)
def test_how_far_a_history_runs_along_a_thread(
    sent: list[Saying], message: str, stored: list[Saying], expected: Followed | None
) -> None:
    assert followed(sent, message, stored) == expected


def test_calls_of_tools_are_no_answers() -> None:
    history = [
        {"role": "assistant", "content": "How may I help?"},
        {"role": "user", "content": [{"type": "text", "text": "The weather?"}, {"type": "image_url"}]},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c1"}]},
        {"role": "tool", "tool_call_id": "c1", "content": "Rain."},
        {"role": "assistant", "content": "It rains."},
        {"role": "user", "content": "Hm."},
        {"role": "user", "content": "And tomorrow?"},
    ]
    assert sent_sayings(history) == [
        Saying("The weather?", "It rains."),
        Saying("Hm.", None),
        Saying("And tomorrow?", None),
    ]
