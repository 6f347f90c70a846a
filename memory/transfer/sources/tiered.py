"""Reads the files beside the sessions of a tiered memory: facts about its user, and the texts of its indexes.

`personal_meta.json` holds facts, `conversation_meta.json` the messages of archived sessions, `summary_meta.json` their
summaries. A session that also has its own file is recognised by the hash of its messages, and imported once.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from recollect.memory.transfer.line_source import Unreadable
from recollect.memory.transfer.sources.files import Said, modified, read_json
from recollect.memory.transfer.sources.records import (
    TIME,
    USER,
    Home,
    Record,
    facts_of,
    first_text,
    messages_of,
    note_fields,
    plain_text,
    scalar,
    tags_of,
    thread_name,
)
from recollect.memory.transfer.sources.sessions import messages_in, thread_of_session

PERSONAL, TALKS, SUMMARIES = "personal_meta", "conversation_meta", "summary_meta"
_STATEMENT = ("text", "content", "fact", "statement", "memory", "value")
_ROLES = {"user_query": "user", "assistant_response": "assistant"}
_HASH = "session_hash"


def is_tiered(path: Path) -> bool:
    """Tell whether the file's name is one of these."""
    return path.suffix == ".json" and path.stem in {PERSONAL, TALKS, SUMMARIES}


def read_tiered(path: Path, *, user_id: str | None, sessions: Sequence[Path] = ()) -> Iterator[Said]:
    """Read one of the files; `sessions` are the session files that lie beside it."""
    said = read_json(path)
    if isinstance(said, Unreadable):
        yield said
    elif path.stem == PERSONAL:
        yield from _facts(path, said, user_id)
    elif not isinstance(said, list):
        yield Unreadable(f"{path.name} holds no list.")
    else:
        known = _threads_by_hash(sessions)
        read = _messages if path.stem == TALKS else _summaries
        entries = [cast("Record", entry) for entry in cast("list[Any]", said) if isinstance(entry, Mapping)]
        yield from read(entries, known, user_id)


def _facts(path: Path, said: Any, user_id: str | None) -> Iterator[Said]:
    """Yield facts from a list of texts or objects, or from a mapping of key and value."""
    written = modified(path)
    if isinstance(said, Mapping):
        whole = cast("Record", said)
        said = next((whole[name] for name in ("facts", "memories", "entries") if name in whole), whole)
        if isinstance(said, Mapping):
            yield from facts_of(cast("Record", said), user_id=first_text(whole, USER) or user_id, time=written)
            return
    for entry in cast("list[Any]", said) if isinstance(said, list) else [said]:
        record: Record = cast("Record", entry) if isinstance(entry, Mapping) else {"text": entry}
        statement = plain_text(next((record[name] for name in _STATEMENT if record.get(name)), None))
        if not statement.strip():
            if any(name in record for name in _STATEMENT):
                continue  # Its text is empty.
            yield Unreadable(f"{path.name} holds an entry without a text.")
            continue
        time = next((record[name] for name in TIME if scalar(record.get(name)) is not None), written)
        line = note_fields(statement.strip(), user_id=first_text(record, USER) or user_id, time=time)
        yield {**line, **tags_of(record)}


def _messages(entries: Sequence[Record], known: Mapping[str, str], user_id: str | None) -> Iterator[Said]:
    """Yield the messages of sessions that have no file of their own, in the order of the index."""
    for number, entry in enumerate(entries):
        if first_text(entry, (_HASH,)) in known:
            continue
        role = _ROLES.get(str(entry.get("type")), entry.get("role") or entry.get("type"))
        session = first_text(entry, ("session_id", _HASH)) or TALKS
        place = first_text(entry, ("chunk_index",)) or str(number)
        record = {**entry, "type": None, "role": role, "thread_id": session, "message_id": f"{session}:{place}"}
        yield from messages_of(record, Home(user_id, session, number=number))


def _summaries(entries: Sequence[Record], known: Mapping[str, str], user_id: str | None) -> Iterator[Said]:
    for entry in entries:
        content = plain_text(entry.get("summary_text") or entry.get("summary") or entry.get("text"))
        thread = known.get(first_text(entry, (_HASH,)) or "") or first_text(entry, ("session_id", _HASH))
        if not content.strip() or thread is None:
            yield Unreadable("summary_meta.json holds an entry without a summary or a session.")
            continue
        whose = first_text(entry, USER) or user_id
        line: dict[str, Any] = {"kind": "summary", "thread_id": thread_name(thread), "content": content}
        yield line if whose is None else {**line, "user_id": whose}


def _threads_by_hash(sessions: Sequence[Path]) -> dict[str, str]:
    """Return the thread of each session file, by the hash of its messages that the index uses."""
    found: dict[str, str] = {}
    for path in sessions:
        said = read_json(path)
        messages = None if isinstance(said, Unreadable) else messages_in(said)
        if messages:
            text = json.dumps(messages, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
            digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
            found[digest] = thread_of_session(path, said)
    return found
