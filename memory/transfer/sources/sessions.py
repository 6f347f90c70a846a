"""Reads JSON session files, one conversation each: `session_*.json`, `recovered_*.json`, `current_session.json`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, cast

from recollect.memory.transfer.line_source import Unreadable
from recollect.memory.transfer.sources.files import Said, modified, read_json
from recollect.memory.transfer.sources.records import (
    THREAD,
    TIME,
    USER,
    Home,
    Record,
    facts_of,
    first_text,
    messages_of,
    plain,
)

CURRENT = "current_session.json"
PATTERNS = ("session_*.json", "recovered_*.json", CURRENT)
_MESSAGES = ("messages", "messages_history", "history", "conversation", "turns", "exchanges", "chat_history")
_STAMP = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)(?:[T_-]?(\d\d)[-:]?(\d\d)[-:]?(\d\d))?")


def is_session(path: Path) -> bool:
    """Tell whether the file's name is that of a session."""
    return any(path.match(pattern) for pattern in PATTERNS)


def messages_in(said: Any) -> list[Any] | None:
    """Return the session's messages: the list itself, or the object's list under a known name; None without one."""
    if isinstance(said, list):
        return cast("list[Any]", said)
    session = _session(said)
    return next((session[name] for name in _MESSAGES if isinstance(session.get(name), list)), None)


def thread_of_session(path: Path, said: Any) -> str:
    """Return the thread of a session file's messages: the one that it names, else its own name."""
    named = first_text(_session(said), (*THREAD, "id"))
    if named is not None or path.name != CURRENT:
        return named or path.stem
    # Each session is written to this file in turn: its first message names it, however long the session grows.
    first = repr(next(iter(messages_in(said) or ()), ""))
    return f"{path.stem}-{blake2b(first.encode('utf-8', 'surrogatepass'), digest_size=4).hexdigest()}"


def read_session(path: Path, *, user_id: str | None) -> Iterator[Said]:
    """Yield the messages of one file, then the facts in it about its user."""
    said = read_json(path)
    if isinstance(said, Unreadable):
        yield said
        return
    session = _session(said)
    messages = messages_in(said)
    if messages is None:
        yield Unreadable(f"{path.name} holds no list of messages.")
        return
    whose = first_text(session, USER) or user_id
    began = _began(session, path)
    yield from _messages(path, messages, Home(whose, thread_of_session(path, said), began))
    facts = session.get("user_facts") or session.get("facts")
    if isinstance(facts, Mapping):
        yield from facts_of(cast("Record", facts), user_id=whose, time=began)


def _session(said: Any) -> Record:
    return cast("Record", said) if isinstance(said, Mapping) else {}


def _messages(path: Path, messages: Sequence[Any], home: Home) -> Iterator[Said]:
    for number, message in enumerate(messages):
        if isinstance(message, Mapping):
            yield from messages_of(cast("Record", message), Home(home.user_id, home.thread_id, home.time, number))
        else:
            yield Unreadable(f"{path.name} holds a message that is not an object.")


def _began(session: Record, path: Path) -> datetime:
    """Return the time at which the session began: its own, the file name's, or when the file was last written."""
    said = plain(next((session[name] for name in ("created_at", "started_at", *TIME) if session.get(name)), None))
    try:
        if isinstance(said, str):
            time = datetime.fromisoformat(said)
            return time.astimezone(UTC) if time.tzinfo is not None else time.replace(tzinfo=UTC)
        if isinstance(said, int | float):
            return datetime.fromtimestamp(said / 1_000 if said >= 1e11 else said, UTC)
        if stamp := _STAMP.search(path.stem):
            return datetime(*(int(part or 0) for part in stamp.groups()), tzinfo=UTC)  # type: ignore[misc]
    except (ValueError, OverflowError, OSError):
        pass  # It was no time: take the file's.
    return modified(path)
