"""Turns that a store inserts whole, taken apart."""

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
    """Those of the turns that have a reply, in their order.

    Raises:
        ValueError: one of them has a reply without a result or an update.
    """
    return [_finished(turn, turn.reply) for turn in turns if turn.reply is not None]


def _finished(turn: Turn, reply: Message) -> FinishedTurn:
    if turn.result is None or turn.update is None:
        raise ValueError(f"Turn {turn.message.turn_id} has a reply without its result or its update.")
    return FinishedTurn(turn.message, reply, turn.result, turn.update, said=len(turn.messages))
