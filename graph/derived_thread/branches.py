"""Compares a chat client's history with the turns of a thread, to tell whether it continues them. Pure functions."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from recollect.graph.history import content_text
from recollect.memory.language.said_hash import comparable
from recollect.memory.values.frozen import frozen
from recollect.memory.values.turn import Message


@frozen
class Saying:
    """A user's message with its answer; `answer` is None where it has none. `turn_id` is that of a stored one."""

    text: str
    answer: str | None
    turn_id: str = ""

    def says(self, text: str) -> bool:
        """Tell whether its message is `text`, apart from case and white space."""
        return self.text == text or comparable(self.text) == comparable(text)

    def is_answered_as(self, other: "Saying") -> bool:
        """Tell whether both have an answer, and the same one."""
        if self.answer is None or other.answer is None:
            return False
        return self.answer == other.answer or comparable(self.answer) == comparable(other.answer)


@frozen
class Followed:
    """How far a history runs along a thread: so many `turns`, so many of them with the same `answers`.

    `left` are the turns behind that, which the history has left for another branch; oldest first.
    """

    turns: int
    answers: int
    left: tuple[str, ...] = ()


def sent_sayings(history: Iterable[Mapping[str, Any]]) -> list[Saying]:
    """Return the user's messages of a client's history, each with its answer; calls of tools are none."""
    said = [
        (message["role"], content_text(message.get("content")))
        for message in history
        if message["role"] in {"user", "assistant"} and not message.get("tool_calls")
    ]
    return [
        Saying(text, said[place + 1][1] if said[place + 1 : place + 2] and said[place + 1][0] == "assistant" else None)
        for place, (role, text) in enumerate(said)
        if role == "user"
    ]


def stored_sayings(messages: Sequence[Message]) -> list[Saying]:
    """Return a thread's turns as sayings; `messages` are in their order."""
    answers = {message.turn_id: message.content for message in messages if message.role == "assistant"}
    return [
        Saying(message.content, answers.get(message.turn_id), message.turn_id)
        for message in messages
        if message.role == "user"
    ]


def followed(sent: Sequence[Saying], message: str, stored: Sequence[Saying]) -> Followed | None:
    """Return how far the history `sent`, before the new `message`, runs along the turns `stored`; None if not at all.

    Sent messages without an answer may be unknown to the thread, and unfinished turns to the client. Beyond that, what
    the thread lacks (a deleted turn, or an expired beginning) must stand between turns with the same answers.
    """
    place = turns = answers = skipped = 0
    for number, turn in enumerate(stored):
        found = _next(sent, turn, place)
        if found is None and turn.answer is None:
            continue
        if found is None:
            if any(one.answer is not None for one in sent[place:]):
                return None
            return _checked(Followed(turns, answers, _left(stored[number:], message)), skipped)
        skipped += sum(one.answer is not None for one in sent[place:found])
        turns += 1
        answers += turn.is_answered_as(sent[found])
        place = found + 1
    return _checked(Followed(turns, answers), skipped)


def _next(sent: Sequence[Saying], turn: Saying, place: int) -> int | None:
    """Return where the history has the turn, from `place` on; an unfinished one can be there alone."""
    behind = sent[place:] if turn.answer is not None else sent[place : place + 1]
    return next((place + number for number, one in enumerate(behind) if one.says(turn.text)), None)


def _checked(found: Followed, skipped: int) -> Followed | None:
    """Return `found`, unless too little speaks for it."""
    is_sure = found.turns > 1 and found.answers == found.turns
    return found if found.turns and (is_sure or not skipped) else None


def _left(behind: Sequence[Saying], message: str) -> tuple[str, ...]:
    """Return the finished turns that are left; none where the message asks for another answer to the very last turn."""
    if len(behind) == 1 and behind[0].says(message):
        return ()
    return tuple(turn.turn_id for turn in behind if turn.answer is not None)
