"""Aligns a client's own history of a thread with the stored messages. Pure functions.

A chat client of OpenAI's protocol sends its whole conversation with each request. Messages that are stored already are
found by role and folded text, from the end backwards; tool rounds and system messages in between do not matter.
Messages that are not stored (an assistant's greeting, examples, an edited message) are recognised by the history's
fingerprint, which is kept with the turn.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, cast

from recollect.memory.values.fact import fold
from recollect.memory.values.frozen import frozen
from recollect.memory.values.turn import Exchange, Message

Json = dict[str, Any]
Said = tuple[str, str]
"""A role and a text."""

MOST_ALIGNED = 200
"""The last messages of each side that are aligned where the two differ; the alignment's cost is their product."""
MOST_FOLDED = 2_000
"""Longer texts are compared by case and white space alone: folding costs time for each character."""


@frozen
class KnownMessage:
    """The stored message that each message of a client's history repeats, or None, in the history's order."""

    messages: tuple[Message | None, ...] = ()

    @property
    def turn_ids(self) -> frozenset[str]:
        """Return the ids of the turns of which the client has sent a message."""
        return frozenset(message.turn_id for message in self.messages if message is not None)


def content_text(content: object) -> str:
    """Return the text of a message's `content`: the string itself, or its text parts, one a line."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [cast("Mapping[str, Any]", part) for part in cast("list[object]", content) if isinstance(part, Mapping)]
    texts = [part.get("text") for part in parts]
    return "\n".join(text for text in texts if isinstance(text, str))


def align(history: Sequence[Mapping[str, Any]], stored: Sequence[Exchange]) -> KnownMessage:
    """Match the messages of `history` to stored ones in the same order: as many as possible, the last ones first.

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
    return KnownMessage(tuple(known))


def merged_history(history: Sequence[Json], known: KnownMessage, window: Sequence[Message]) -> list[Json]:
    """Return the client's history with the window's older messages, behind the system messages at the beginning.

    A message is older if it came before the oldest message that the client knows; where the client knows none, all are.
    Later messages that are not in the client's history belong to a branch that it has left (an edited message, another
    answer). A message that is stored carries its `turn_id`.
    """
    found = [message for message in known.messages if message is not None]
    oldest = min(found, key=lambda message: message.position, default=None)
    older = [message.as_json() for message in window if oldest is None or message.position < oldest.position]
    if oldest is not None and _is_behind_others(history, known, oldest):
        # The client has replaced the message in its history: adding the stored one of that turn would repeat it.
        older = [message for message in older if message["turn_id"] != oldest.turn_id]
    opening = leading_system(history)
    own = [
        message if stored is None else {**message, "turn_id": stored.turn_id}
        for message, stored in zip(history, known.messages, strict=True)
    ]
    return [*own[:opening], *older, *own[opening:]]


def _is_behind_others(history: Sequence[Json], known: KnownMessage, oldest: Message) -> bool:
    """Tell whether the history has an unknown message before its `oldest` known one."""
    places, _ = _spoken(history)
    return bool(places) and known.messages[places[0]] is not oldest


def leading_system(messages: Sequence[Mapping[str, Any]]) -> int:
    """Count the system messages at the beginning."""
    others = (place for place, message in enumerate(messages) if message["role"] != "system")
    return next(others, len(messages))


def history_fingerprint(history: Sequence[Mapping[str, Any]]) -> str | None:
    """Return a digest of the user's and assistant's messages, texts folded; None where there are none."""
    _, said = _spoken(history)
    if not said:
        return None
    digest = blake2b(digest_size=16)
    for role, text in map(_key, said):
        encoded = text.encode("utf-8", "replace")
        digest.update(f"{role} {len(encoded)} ".encode() + encoded)
    return digest.hexdigest()


def repeats_last(
    history: Sequence[Mapping[str, Any]],
    message: str,
    stored: Sequence[Exchange],
    *,
    is_whole: bool,
    kept: str | None = None,
) -> bool:
    """Tell whether the client asks for another answer to the last stored turn: its message, after the same history.

    `stored` are the thread's last turns, all of them where `is_whole`; `kept` is the fingerprint of the history before
    the last one, None where it was stored without one. A history that begins later than the thread counts as the same
    if it ends alike; one that ends with the last turn itself asks for a new turn, even with the same message.
    """
    if not stored or stored[-1].user.absent or not is_same(("user", message), ("user", stored[-1].user.content)):
        return False
    if kept is not None and kept == history_fingerprint(history):
        return True
    (_, said), before = _spoken(history), _said(stored[:-1])
    if is_whole and _is_equal(said, before):
        return True
    if _is_end(said, _said(stored), is_whole=is_whole):
        return False
    if _is_end(said, before, is_whole=is_whole):
        return True
    return kept is None and is_whole and _began_elsewhere(said, before, message)


def goes_on(history: Sequence[Mapping[str, Any]], stored: Sequence[Exchange], *, is_whole: bool) -> bool:
    """Tell whether the next turn may follow the stored ones: the history ends where they do, or says nothing.

    A history that ends with an unknown message may follow them too; one that ends with an older turn may not.
    """
    places, said = _spoken(history)
    if not said or _is_end(said, _said(stored), is_whole=is_whole):
        return True
    last = align(history, stored).messages[places[-1]]
    return last is None or (bool(stored) and last.id == stored[-1].assistant.id)


def ends_with(history: Sequence[Mapping[str, Any]], message: str) -> bool:
    """Tell whether the history ends with this `message` of the user, which has no answer there."""
    _, said = _spoken(history)
    return bool(said) and is_same(said[-1], ("user", message))


def is_same(one: Said, other: Said) -> bool:
    """Tell whether role and text are equal, apart from case, white space and punctuation."""
    return one == other or (one[0] == other[0] and _folded(one[1]) == _folded(other[1]))


def _began_elsewhere(said: Sequence[Said], before: Sequence[Said], message: str) -> bool:
    """Tell whether `said` ends with all of `before` (the turns stored before the last one), behind unknown messages.

    Where `before` is empty, the last turn's own message must not be among the unknown ones.
    """
    if len(said) <= len(before) or any(is_same(one, ("user", message)) for one in said[: len(said) - len(before)]):
        return False
    return not before or _is_end(said[-len(before) :], before, is_whole=True)


def _is_equal(one: Sequence[Said], other: Sequence[Said]) -> bool:
    return len(one) == len(other) and all(is_same(*pair) for pair in zip(one, other, strict=True))


def _is_end(said: Sequence[Said], texts: Sequence[Said], *, is_whole: bool) -> bool:
    """Tell whether `said` is the end of `texts`; unless `is_whole`, it may be longer than `texts`."""
    if not (said and texts) or (is_whole and len(said) > len(texts)):
        return False
    return all(is_same(*pair) for pair in zip(reversed(said), reversed(texts), strict=False))


def _spoken(history: Sequence[Mapping[str, Any]]) -> tuple[list[int], list[Said]]:
    """Return the places and texts of user and assistant messages; a call of tools is no answer."""
    places = [
        place
        for place, message in enumerate(history)
        if message["role"] in {"user", "assistant"} and not message.get("tool_calls")
    ]
    return places, [(history[place]["role"], content_text(history[place].get("content"))) for place in places]


def _messages(stored: Iterable[Exchange]) -> list[Message]:
    return [message for exchange in stored for message in exchange.messages]


def _said(stored: Iterable[Exchange]) -> list[Said]:
    return [(message.role, message.content) for message in _messages(stored)]


def _folded(text: str) -> str:
    if len(text) > MOST_FOLDED:
        return " ".join(text.casefold().split())
    return fold(text) or text.strip()


def _common(one: Sequence[Said], other: Sequence[Said]) -> list[tuple[int, int]]:
    """Return the places of a longest common subsequence, the latest of several."""
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
