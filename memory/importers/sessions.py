"""Folders of JSON session files, `session_*.json`: one conversation a file."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from memory.import_source import Unreadable
from memory.importers.files import Said, modified, read_json
from memory.importers.records import THREAD, TIME, USER, Home, Record, facts_of, messages_of, plain, text_of

PATTERN = "session_*.json"
_MESSAGES = ("messages", "messages_history", "history", "conversation", "turns", "exchanges", "chat_history")
_STAMP = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)(?:[T_-]?(\d\d)[-:]?(\d\d)[-:]?(\d\d))?")


def session_files(folder: Path) -> list[Path]:
    """The folder's session files and those below it, by name."""
    return sorted(folder.rglob(PATTERN))


def read_session(path: Path, *, user_id: str | None) -> Iterator[Said]:
    """The messages of one file, then the facts that it holds of its user."""
    said = read_json(path)
    if isinstance(said, Unreadable):
        yield said
        return
    session: Record = cast("Record", said) if isinstance(said, Mapping) else {"messages": said}
    messages = next((session[name] for name in _MESSAGES if isinstance(session.get(name), list)), None)
    if messages is None:
        yield Unreadable(f"{path.name} holds no list of messages.")
        return
    whose = text_of(session, USER) or user_id
    thread = text_of(session, (*THREAD, "id")) or path.stem
    began = _began(session, path)
    for number, message in enumerate(cast("list[Any]", messages)):
        if isinstance(message, Mapping):
            yield from messages_of(cast("Record", message), Home(whose, thread, began, number))
        else:
            yield Unreadable(f"{path.name} holds a message that is not an object.")
    facts = session.get("user_facts") or session.get("facts")
    if isinstance(facts, Mapping):
        yield from facts_of(cast("Record", facts), user_id=whose, time=began)


def _began(session: Record, path: Path) -> datetime:
    """When the session began: as it says, as the file's name says, or when the file was last written."""
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
        pass  # No time after all.
    return modified(path)
