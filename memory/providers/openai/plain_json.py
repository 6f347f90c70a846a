"""Writes and reads the plain JSON of calls: a body, an answer's value, or the refusal that it is."""

import json
from collections.abc import Mapping
from typing import Any

import orjson

_MOST_QUOTED = 10_000
_OVERFLOWS = (
    "context_length_exceeded",
    "Input tokens exceed the configured limit",
    "prompt is too long",
    "ContextWindowExceededError",
)
"""What servers say of a prompt that is too long."""


class Refused(Exception):
    """The server refused the request with the status `status_code`."""

    def __init__(self, status_code: int, text: str) -> None:
        super().__init__(text[:_MOST_QUOTED])
        self.status_code = status_code


class ContextOverflow(Refused):
    """The server refused the request because the prompt is too long."""


def refusal(status: int, content: bytes) -> Refused:
    """Return the error for an answer with a status of 400 or more."""
    text = content.decode(errors="replace")
    is_overflow = status == 400 and any(words in text for words in _OVERFLOWS)
    return (ContextOverflow if is_overflow else Refused)(status, text)


def dumped(body: Mapping[str, Any]) -> bytes:
    """Return the bytes of a request's body."""
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError:
        # A caller's parameters may hold a number beyond 64 bits: the server shall judge it.
        return json.dumps(body).encode()


def parsed(content: bytes) -> Any:
    """Return the JSON value of an answer, or of an event.

    Raises:
        ValueError: it is none.
    """
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        # Some servers write NaN, or half of a surrogate pair, which the standard library alone reads.
        return json.loads(content)
