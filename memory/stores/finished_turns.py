"""Turns whose reply is there, taken apart for a store that inserts them whole."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from memory.turn import Message, Turn
from memory.update import Update


class FinishedTurn(NamedTuple):
    """What a finished turn consists of. `said` is how many of its two messages are not absent."""

    message: Message
    reply: Message
    result: Mapping[str, Any]
    update: Update
    said: int


def finished(turns: Sequence[Turn]) -> list[FinishedTurn]:
    """The turns in their order.

    Raises:
        ValueError: one of them is unfinished.
    """
    return [_finished(turn) for turn in turns]


def _finished(turn: Turn) -> FinishedTurn:
    if turn.reply is None or turn.result is None or turn.update is None:
        raise ValueError(f"Turn {turn.message.turn_id} is unfinished; only finished turns can be stored whole.")
    return FinishedTurn(turn.message, turn.reply, turn.result, turn.update, said=len(turn.messages))
