"""One line of an import, read and checked: what it says as a value, or why it cannot be taken as a sentence."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any, Literal, cast

from memory.errors import InvalidRequest
from memory.scope import check_id
from memory.text import MOST_MESSAGE_CHARACTERS, text_problem
from memory.times import from_ms, to_ms
from memory.turn import Role, derived_id

MOST_LINE_BYTES = 4_000_000
MOST_ID_CHARACTERS = 128
MOST_METADATA_DEPTH = 20
_FIELDS = frozenset({"user_id", "thread_id", "role", "name", "content", "timestamp", "message_id", "metadata"})
_NEEDED = ("user_id", "thread_id", "role", "content", "timestamp")
_MOST_SHOWN_CHARACTERS = 40
_LEAST_MILLISECONDS = 100_000_000_000
"""A greater number is in milliseconds, a smaller one in seconds: as seconds it would lie in the year 5138."""
_FIRST, _LAST = datetime(1900, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)

Thread = tuple[str, str]
"""A user and one of their threads."""


class BadLine(Exception):
    """The line cannot be taken; the message is a sentence. `thread` is whose it would have been, where it says so."""

    def __init__(self, error: str, thread: Thread | None = None) -> None:
        super().__init__(error)
        self.error = error
        self.thread = thread


@dataclass(frozen=True, slots=True)
class ImportMessage:
    """A message as an importer brings it: `created_at` is UTC in whole milliseconds."""

    user_id: str
    thread_id: str
    role: Role
    content: str
    created_at: datetime
    name: str | None = None
    message_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def thread(self) -> Thread:
        """Whose it is."""
        return self.user_id, self.thread_id

    @property
    def turn_id(self) -> str:
        """The id of the turn that it opens: the same at every import."""
        return f"import-{self._digest()}"

    @property
    def imported_id(self) -> str:
        """The importer's own id; without one, an id that the same message has at every import."""
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
    """The JSON object on a line.

    Raises:
        BadLine: there is none.
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


def read_message(said: Mapping[str, Any]) -> ImportMessage:
    """The message that these fields make.

    Raises:
        BadLine: a field is missing, unknown, of a wrong type, or none that can be stored.
    """
    thread = thread_of(said)
    try:
        check_fields(said, known=_FIELDS, needed=_NEEDED)
        return ImportMessage(
            user_id=read_id(said, "user_id"),
            thread_id=read_id(said, "thread_id"),
            role=_role(said["role"]),
            content=read_text(said, "content", most=MOST_MESSAGE_CHARACTERS),
            created_at=read_time(said["timestamp"]),
            name=_optional_text(said, "name"),
            message_id=_optional_text(said, "message_id"),
            metadata=_metadata(said.get("metadata")),
        )
    except BadLine as error:
        raise BadLine(error.error, thread) from None


def check_fields(said: Mapping[str, Any], *, known: frozenset[str], needed: tuple[str, ...]) -> None:
    """Refuse unknown fields and missing ones."""
    unknown = next((name for name in said if name not in known), None)
    if unknown is not None:
        raise BadLine(f"{_shown(unknown)} is not a known field.")
    missing = next((name for name in needed if name not in said), None)
    if missing is not None:
        raise BadLine(f"{missing} is missing.")


def read_id(said: Mapping[str, Any], name: str) -> str:
    """The user's or the thread's id."""
    value = said[name]
    if not isinstance(value, str):
        raise BadLine(f"{name} must be a text.")
    try:
        return check_id(name, value)
    except InvalidRequest as error:
        raise BadLine(f"{name} {error.problems[0].problem}.") from None


def read_text(said: Mapping[str, Any], name: str, *, most: int) -> str:
    """A text of 1 to `most` characters that every store can hold."""
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
    """A time in ISO 8601 (without an offset it is UTC), or as seconds or milliseconds since the epoch."""
    try:
        time = _time(value)
        if time is not None and _FIRST <= time < _LAST:
            return from_ms(to_ms(time))
    except (ValueError, OverflowError):
        pass
    raise BadLine("timestamp must be a time such as 2026-01-31T09:30:00Z, or seconds or milliseconds since 1970.")


def thread_of(said: Mapping[str, Any]) -> Thread | None:
    """Whose these fields are, if they say so at all."""
    user_id, thread_id = said.get("user_id"), said.get("thread_id")
    return (user_id, thread_id) if isinstance(user_id, str) and isinstance(thread_id, str) else None


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


def _optional_text(said: Mapping[str, Any], name: Literal["name", "message_id"]) -> str | None:
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


def json_problem(value: object, levels: int) -> str | None:
    """Why no store can hold the JSON, if so: a text, a number, or more than so many levels."""
    if isinstance(value, str):
        return text_problem(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "must not contain NaN or Infinity"
    if not isinstance(value, dict | list):
        return None
    if levels == 0:
        return "must not be nested deeper than is taken"
    if isinstance(value, dict):
        inner = cast("dict[str, object]", value)
        parts: list[object] = [*inner.keys(), *inner.values()]
    else:
        parts = cast("list[object]", value)
    return next((problem for part in parts if (problem := json_problem(part, levels - 1)) is not None), None)


def _shown(name: str) -> str:
    """A field's name as a sentence may hold it."""
    cut = "".join(char if char.isprintable() else "?" for char in name[:_MOST_SHOWN_CHARACTERS])
    return f'"{cut}"' if cut == name else f'"{cut}…"'


def _refuse_constant(name: str) -> float:
    raise ValueError(name)
