"""Ids of responses and their items: each carries the id of the turn that it belongs to.

`resp_<turn>` is a response, `msg_<turn>` its answer, `fc_<number>_<turn>` one of its calls, `in_<turn>` the user's
message before it, `fm_<number>_<turn>` a further message of the turn.
"""

from typing import NamedTuple


class CallPlace(NamedTuple):
    """The place of a call: the turn of the response that made it, and its number there, from 0."""

    turn_id: str
    number: int


def response_id(turn_id: str) -> str:
    """Return the id of the turn's response."""
    return f"resp_{turn_id}"


def turn_of_response(given: str) -> str | None:
    """Return the turn of a response's id; None where it is none."""
    return _behind("resp_", given)


def answer_id(turn_id: str) -> str:
    """Return the id of the turn's answer as an item."""
    return f"msg_{turn_id}"


def turn_of_answer(given: str) -> str | None:
    """Return the turn of an answer's id; None where it is none."""
    return _behind("msg_", given)


def input_id(turn_id: str) -> str:
    """Return the id of the user's message as an item."""
    return f"in_{turn_id}"


def turn_of_input(given: str) -> str | None:
    """Return the turn of the id of a user's message; None where it is none."""
    return _behind("in_", given)


def further_id(turn_id: str, number: int) -> str:
    """Return the id of a further message of the turn as an item; they are counted from 1."""
    return f"fm_{number}_{turn_id}"


def turn_of_further(given: str) -> str | None:
    """Return the turn of the id of a further message; None where it is none."""
    return (_behind("fm_", given) or "").partition("_")[2] or None


def call_item_id(turn_id: str, number: int) -> str:
    """Return the id of a call as an item."""
    return f"fc_{number}_{turn_id}"


def place_of_call(given: str) -> CallPlace | None:
    """Return the place of the call with this item id; None where it is none."""
    number, _, turn_id = (_behind("fc_", given) or "").partition("_")
    return CallPlace(turn_id, int(number)) if turn_id and number.isascii() and number.isdigit() else None


def _behind(prefix: str, given: str) -> str | None:
    return given.removeprefix(prefix) or None if given.startswith(prefix) else None
