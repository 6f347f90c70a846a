"""A client's own history of a thread, held against what is stored of it. Pure functions.

A chat client of OpenAI's protocol sends its whole conversation with each request. What of it is stored already is found
by role and folded text, from the end backwards; tool rounds and system messages in between do not matter.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from memory.fact import fold
from memory.turn import Exchange, Message

Json = dict[str, Any]
Said = tuple[str, str]
"""A role and a text."""

MOST_ALIGNED = 200
"""So many messages of each side, the last ones, are aligned where the two differ."""
MOST_FOLDED = 2_000
"""Longer texts are compared by case and white space alone: folding costs time for each character."""


@dataclass(frozen=True, slots=True)
class Known:
    """For each message of a client's history the stored message that it is, or None."""

    messages: tuple[Message | None, ...] = ()

    @property
    def turn_ids(self) -> frozenset[str]:
        """The turns of which the client has sent something."""
        return frozenset(message.turn_id for message in self.messages if message is not None)


def text_of(content: object) -> str:
    """The text of a message's content: itself, or its text parts, one a line."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [cast("Mapping[str, Any]", part) for part in cast("list[object]", content) if isinstance(part, Mapping)]
    texts = [part.get("text") for part in parts]
    return "\n".join(text for text in texts if isinstance(text, str))


def align(history: Sequence[Mapping[str, Any]], stored: Sequence[Exchange]) -> Known:
    """Which of the history's messages are stored, in the same order: as many as possible, the last ones first.

    `stored` are the thread's last turns, oldest first.
    """
    places, said = _spoken(history)
    messages = _messages(stored)
    known: list[Message | None] = [None] * len(history)
    texts = _said(stored)
    same = 0
    while same < min(len(said), len(texts)) and is_same(said[-1 - same], texts[-1 - same]):
        same += 1
        known[places[-same]] = messages[-same]
    left, right = said[: len(said) - same], texts[: len(texts) - same]
    skipped_left, skipped_right = max(0, len(left) - MOST_ALIGNED), max(0, len(right) - MOST_ALIGNED)
    for one, other in _common(left[skipped_left:], right[skipped_right:]):
        known[places[skipped_left + one]] = messages[skipped_right + other]
    return Known(tuple(known))


def merged(history: Sequence[Json], known: Known, window: Sequence[Message]) -> list[Json]:
    """The client's history with those messages of the window in their places that it does not have.

    A message that is stored carries its `turn_id`. What the window has before all that the client knows comes first,
    behind the system messages at the beginning.
    """
    have = {message.id for message in known.messages if message is not None}
    opening = leading_system(history)
    inserted: dict[int, list[Json]] = {}
    for message in window:
        if message.id not in have:
            before = (
                at for at, item in enumerate(known.messages) if item is not None and item.position < message.position
            )
            inserted.setdefault(max(before, default=opening - 1), []).append(message.as_json())
    result = list[Json](inserted.get(-1, ()))
    for at, (message, stored) in enumerate(zip(history, known.messages, strict=True)):
        result.append(message if stored is None else {**message, "turn_id": stored.turn_id})
        result += inserted.get(at, ())
    return result


def leading_system(messages: Sequence[Mapping[str, Any]]) -> int:
    """How many system messages stand at the beginning."""
    others = (place for place, message in enumerate(messages) if message["role"] != "system")
    return next(others, len(messages))


def repeats_last(
    history: Sequence[Mapping[str, Any]], message: str, stored: Sequence[Exchange], *, is_whole: bool
) -> bool:
    """Whether the client asks for another answer to the last stored turn: its message, after the same history.

    `stored` are the thread's last turns, all of them where `is_whole`. A history that begins later than the thread is
    the same where it ends alike; where it ends with the last turn itself, a new turn follows, however alike.
    """
    if not stored or stored[-1].user.absent or not is_same(("user", message), ("user", stored[-1].user.content)):
        return False
    (_, said), before = _spoken(history), _said(stored[:-1])
    if is_whole and _is_equal(said, before):
        return True
    return not _is_end(said, _said(stored), is_whole=is_whole) and _is_end(said, before, is_whole=is_whole)


def goes_on(history: Sequence[Mapping[str, Any]], stored: Sequence[Exchange], *, is_whole: bool) -> bool:
    """Whether the history ends where the stored turns do, or says nothing: what comes next follows on them."""
    _, said = _spoken(history)
    return not said or _is_end(said, _said(stored), is_whole=is_whole)


def is_same(one: Said, other: Said) -> bool:
    """The same role, and the same text but for case, white space and punctuation."""
    return one == other or (one[0] == other[0] and _folded(one[1]) == _folded(other[1]))


def _is_equal(one: Sequence[Said], other: Sequence[Said]) -> bool:
    return len(one) == len(other) and all(is_same(*pair) for pair in zip(one, other, strict=True))


def _is_end(said: Sequence[Said], texts: Sequence[Said], *, is_whole: bool) -> bool:
    """Whether what was said is the end of the texts; it may be longer where there are more than these."""
    if not (said and texts) or (is_whole and len(said) > len(texts)):
        return False
    return all(is_same(*pair) for pair in zip(reversed(said), reversed(texts), strict=False))


def _spoken(history: Sequence[Mapping[str, Any]]) -> tuple[list[int], list[Said]]:
    """The places and texts of what user and assistant said; a call of tools is no answer."""
    places = [
        place
        for place, message in enumerate(history)
        if message["role"] in {"user", "assistant"} and not message.get("tool_calls")
    ]
    return places, [(history[place]["role"], text_of(history[place].get("content"))) for place in places]


def _messages(stored: Iterable[Exchange]) -> list[Message]:
    return [message for exchange in stored for message in exchange.messages]


def _said(stored: Iterable[Exchange]) -> list[Said]:
    return [(message.role, message.content) for message in _messages(stored)]


def _folded(text: str) -> str:
    if len(text) > MOST_FOLDED:
        return " ".join(text.casefold().split())
    return fold(text) or text.strip()


def _common(one: Sequence[Said], other: Sequence[Said]) -> list[tuple[int, int]]:
    """The places of a longest common subsequence, the latest of several."""
    rows, columns = [_key(said) for said in one], [_key(said) for said in other]
    if not set(rows) & set(columns):
        return []
    lengths = [[0] * (len(columns) + 1) for _ in range(len(rows) + 1)]
    for row, said in enumerate(rows, 1):
        for column, text in enumerate(columns, 1):
            longest = max(lengths[row - 1][column], lengths[row][column - 1])
            lengths[row][column] = lengths[row - 1][column - 1] + 1 if said == text else longest
    pairs, row, column = list[tuple[int, int]](), len(rows), len(columns)
    while row and column:
        if rows[row - 1] == columns[column - 1]:
            row, column = row - 1, column - 1
            pairs.append((row, column))
        elif lengths[row][column - 1] >= lengths[row - 1][column]:
            column -= 1
        else:
            row -= 1
    return pairs


def _key(said: Said) -> Said:
    return said[0], _folded(said[1])
