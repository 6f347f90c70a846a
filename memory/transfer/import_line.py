"""Reads and checks one line of an import; returns its value, or raises a sentence that says why it cannot be taken."""

import json
import math
from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any, Literal, cast

from recollect.memory.values.errors import InvalidRequest
from recollect.memory.values.frozen import frozen
from recollect.memory.values.json_values import MOST_METADATA_DEPTH, json_problem
from recollect.memory.values.scope import check_id
from recollect.memory.values.text import MOST_MESSAGE_CHARACTERS, MOST_REPLY_CHARACTERS, text_problem
from recollect.memory.values.times import from_ms, to_ms
from recollect.memory.values.turn import Role, derived_id

MOST_LINE_BYTES = 4_000_000
MOST_OBJECT_BYTES = 16_000_000
"""Limit of a line that is an object: the longest reply with every character escaped, and its other fields."""
MOST_ID_CHARACTERS = 128
_NEEDED = ("user_id", "thread_id", "role", "content", "timestamp")
_FIELDS = frozenset({*_NEEDED, "name", "message_id", "pair_id", "metadata", "agent_id"})
_MOST_SHOWN_CHARACTERS = 40
_LEAST_MILLISECONDS = 100_000_000_000
"""A number from here on is in milliseconds, a smaller one in seconds: this many seconds are the year 5138."""
_FIRST, _LAST = datetime(1900, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)

Thread = tuple[str, str]
"""A user and one of their threads."""
Place = tuple[str, ...]
"""A thread, or a thread and the id of a pair in it: one message and its answer."""


class BadLine(Exception):
    """The line cannot be taken; the message is a sentence. `thread` is whose it would have been, where it says so."""

    def __init__(self, error: str, thread: Thread | None = None) -> None:
        super().__init__(error)
        self.error = error
        self.thread = thread


@frozen
class ImportMessage:
    """Holds a message of an import; `created_at` is UTC in whole milliseconds."""

    user_id: str
    thread_id: str
    role: Role
    content: str
    created_at: datetime
    name: str | None = None
    message_id: str | None = None
    pair_id: str | None = None
    """Joins a message and its answer, whatever lines stand between them; None where the importer gave none."""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    agent_id: str | None = None

    @property
    def thread(self) -> Thread:
        """Return the message's user and thread."""
        return self.user_id, self.thread_id

    @property
    def place(self) -> Place:
        """Return the place in which this message and its answer are paired."""
        return self.thread if self.pair_id is None else (*self.thread, self.pair_id)

    @property
    def turn_id(self) -> str:
        """Return the id of the turn that the message opens: every import derives the same."""
        return f"import-{self._digest()}"

    @property
    def imported_id(self) -> str:
        """Return the importer's own id; without one, an id that every import derives from the message."""
        if self.message_id is not None:
            return self.message_id
        return derived_id(self.user_id, self.turn_id, self.role)

    def _digest(self) -> str:
        if self.message_id is not None:
            made_from: list[object] = [self.message_id]
        else:
            made_from = [self.thread_id, self.role, self.name, to_ms(self.created_at), self.content]
        return blake2b(json.dumps(made_from).encode(), digest_size=16).hexdigest()


def parse_object(raw: bytes) -> Mapping[str, Any]:
    """Return the JSON object on a line.

    Raises:
        BadLine: the line is not UTF-8, not JSON, or no object.
    """
    try:
        said = json.loads(raw.decode(), parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        raise BadLine("The line is not UTF-8.") from None
    except RecursionError:
        raise BadLine("The line is nested too deeply.") from None
    except ValueError:
        raise BadLine("The line is not valid JSON.") from None
    if not isinstance(said, dict):
        raise BadLine("The line is not a JSON object.")
    return cast("dict[str, Any]", said)


def read_message(
    said: Mapping[str, Any], *, most: int = MOST_MESSAGE_CHARACTERS, most_replied: int = MOST_REPLY_CHARACTERS
) -> ImportMessage:
    """Return the message of these fields: of at most `most` characters, an assistant's of `most_replied`.

    Raises:
        BadLine: a field is missing, unknown, of a wrong type, or none that can be stored.
    """
    thread = thread_of_line(said)
    try:
        check_fields(said, known=_FIELDS, needed=_NEEDED)
        return ImportMessage(
            user_id=read_id(said, "user_id"),
            thread_id=read_id(said, "thread_id"),
            role=_role(said["role"]),
            content=read_text(said, "content", most=most_replied if said["role"] == "assistant" else most),
            created_at=read_time(said["timestamp"]),
            name=_optional_text(said, "name"),
            message_id=_optional_text(said, "message_id"),
            pair_id=_optional_text(said, "pair_id"),
            metadata=_metadata(said.get("metadata")),
            agent_id=None if said.get("agent_id") is None else read_id(said, "agent_id"),
        )
    except BadLine as error:
        raise BadLine(error.error, thread) from None


def check_fields(said: Mapping[str, Any], *, known: frozenset[str], needed: tuple[str, ...]) -> None:
    """Raise BadLine where a field of `said` is not `known`, or one that is `needed` is missing."""
    unknown = next((name for name in said if name not in known), None)
    if unknown is not None:
        raise BadLine(f"{_shown(unknown)} is not a known field.")
    missing = next((name for name in needed if name not in said), None)
    if missing is not None:
        raise BadLine(f"{missing} is missing.")


def read_id(said: Mapping[str, Any], name: str) -> str:
    """Return the id of a user or thread in the field `name`, or raise BadLine."""
    value = said[name]
    if not isinstance(value, str):
        raise BadLine(f"{name} must be a text.")
    try:
        return check_id(name, value)
    except InvalidRequest as error:
        raise BadLine(f"{name} {error.problems[0].problem}.") from None


def read_text(said: Mapping[str, Any], name: str, *, most: int) -> str:
    """Return the text in the field `name`: 1 to `most` characters that every store can hold, or raise BadLine."""
    value = said[name]
    if not isinstance(value, str):
        raise BadLine(f"{name} must be a text.")
    if not 1 <= len(value) <= most:
        raise BadLine(f"{name} must have 1 to {most:,} characters.")
    problem = text_problem(value)
    if problem is not None:
        raise BadLine(f"{name} {problem}.")
    return value


def read_time(value: object) -> datetime:
    """Return the UTC time of ISO 8601 (UTC without an offset), or of seconds or milliseconds since 1970.

    Raises:
        BadLine: it is none of these, or not from 1900 to 8999.
    """
    try:
        time = _time(value)
        if time is not None and _FIRST <= time < _LAST:
            return from_ms(to_ms(time))
    except (ValueError, OverflowError):
        pass
    raise BadLine("timestamp must be a time such as 2026-01-31T09:30:00Z, or seconds or milliseconds since 1970.")


def thread_of_line(said: Mapping[str, Any]) -> Thread | None:
    """Return the user and thread that these fields name, or None."""
    user_id, thread_id = said.get("user_id"), said.get("thread_id")
    return (user_id, thread_id) if isinstance(user_id, str) and isinstance(thread_id, str) else None


def place_of_line(said: Mapping[str, Any]) -> Place | None:
    """Return the place of these fields, as `ImportMessage.place` does; None where they name no user and thread."""
    thread, pair_id = thread_of_line(said), said.get("pair_id")
    return (*thread, pair_id) if thread is not None and isinstance(pair_id, str) else thread


def _time(value: object) -> datetime | None:
    if isinstance(value, str):
        time = datetime.fromisoformat(value.strip())
        return time.astimezone(UTC) if time.tzinfo is not None else time.replace(tzinfo=UTC)
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        milliseconds = value if abs(value) >= _LEAST_MILLISECONDS else value * 1_000
        return from_ms(0) + timedelta(milliseconds=round(milliseconds))
    return None


def _role(value: object) -> Role:
    roles: tuple[Role, ...] = ("user", "assistant")
    found: Role | None = next((role for role in roles if role == value), None)
    if found is None:
        raise BadLine('role must be "user" or "assistant".')
    return found


def _optional_text(said: Mapping[str, Any], name: Literal["name", "message_id", "pair_id"]) -> str | None:
    return None if said.get(name) is None else read_text(said, name, most=MOST_ID_CHARACTERS)


def _metadata(value: object) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadLine("metadata must be an object.")
    problem = json_problem(cast("object", value), MOST_METADATA_DEPTH)
    if problem is not None:
        raise BadLine(f"metadata {problem}.")
    return cast("dict[str, Any]", value)


def _shown(name: str) -> str:
    """Return a field's name for a sentence: quoted, printable, and cut."""
    cut = "".join(char if char.isprintable() else "?" for char in name[:_MOST_SHOWN_CHARACTERS])
    return f'"{cut}"' if cut == name else f'"{cut}…"'


def _refuse_constant(name: str) -> float:
    raise ValueError(name)
