"""Reads the SQLite file of an agent whose model keeps its memory itself: the table `memory`, and tables of messages.

The file is opened read-only. Tables that hold neither facts nor messages are named, not read.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import quote

from recollect.memory.transfer.line_source import SourceHoldings, Unreadable
from recollect.memory.transfer.sources.files import Said, modified
from recollect.memory.transfer.sources.records import (
    TIME,
    USER,
    Home,
    Record,
    first_text,
    messages_of,
    note_fields,
    plain_text,
    tags_of,
)

MAGIC = b"SQLite format 3\x00"
SUFFIXES = frozenset({".db", ".sqlite", ".sqlite3"})
_MEMORIES = frozenset({"memory", "memories"})
_STATEMENT = ("content", "text", "memory", "statement")
_SPEAKERS = frozenset({"role", "sender", "speaker", "author"})
_TEXTS = frozenset({"content", "message", "text", "body"})
_ASKED = frozenset({"user_message", "user_input", "question", "prompt"})
_ANSWERED = frozenset({"ai_response", "assistant_response", "assistant_message", "response", "answer", "reply"})
_MESSAGE_STORE = frozenset({"session_id", "message"})

Kind = Literal["facts", "messages"]


def is_database(beginning: bytes) -> bool:
    """Tell whether a file with this `beginning` is a SQLite database."""
    return beginning.startswith(MAGIC)


def _kinds(file: sqlite3.Connection) -> dict[str, Kind | None]:
    return {table: _kind(table, _columns(file, table)) for table in _tables(file)}


def read_database(path: Path, *, user_id: str | None, holdings: SourceHoldings, within: str = "") -> Iterator[Said]:
    """Yield the file's facts and messages; add the tables' names to `holdings`, each with `within` before it."""
    try:
        with closing(_open(path)) as file:
            kinds = _kinds(file)
            holdings.read += [f"{within}{table}" for table, kind in kinds.items() if kind is not None]
            holdings.skipped += [f"{within}{table}" for table, kind in kinds.items() if kind is None]
            for table, kind in kinds.items():
                if kind is not None:
                    yield from _rows(file, table, kind, Home(user_id, path.stem, modified(path)))
    except sqlite3.Error as error:
        yield Unreadable(f"{path.name} cannot be read as a SQLite database ({type(error).__name__}).")


def _open(path: Path) -> sqlite3.Connection:
    file = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)
    file.row_factory = sqlite3.Row
    file.text_factory = _text
    return file


def _text(stored: bytes) -> str:
    return stored.decode("utf-8", "replace")


def _tables(file: sqlite3.Connection) -> list[str]:
    """Return the tables that have rows, without SQLite's own and those that belong to a virtual table."""
    found = file.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY rowid").fetchall()
    virtual = [row["name"] for row in found if (row["sql"] or "").upper().startswith("CREATE VIRTUAL")]
    hidden = tuple(f"{name}_" for name in virtual)
    names = [row["name"] for row in found if not row["name"].startswith(("sqlite_", *hidden))]
    return [name for name in names if name not in virtual and _has_rows(file, name)]


def _has_rows(file: sqlite3.Connection, table: str) -> bool:
    return file.execute(f"SELECT 1 FROM {_quoted(table)} LIMIT 1").fetchone() is not None


def _columns(file: sqlite3.Connection, table: str) -> frozenset[str]:
    return frozenset(row["name"] for row in file.execute(f"PRAGMA table_info({_quoted(table)})"))


def _kind(table: str, columns: frozenset[str]) -> Kind | None:
    """Tell by its name and columns whether a table holds facts or messages; None: neither."""
    if (columns & _SPEAKERS and columns & _TEXTS) or (columns & _ASKED and columns & _ANSWERED):
        return "messages"
    if columns >= _MESSAGE_STORE:
        return "messages"
    return "facts" if table.lower() in _MEMORIES and columns & {*_STATEMENT} else None


def _rows(file: sqlite3.Connection, table: str, kind: Kind, home: Home) -> Iterator[Said]:
    for number, row in enumerate(file.execute(f"SELECT * FROM {_quoted(table)}")):
        record = {name: _value(row[name]) for name in row.keys()}  # noqa: SIM118  # a Row iterates over its values
        if kind == "facts":
            yield from _facts(record, home)
            continue
        for fields in messages_of(_spread(record), Home(home.user_id, home.thread_id, home.time, number)):
            # Ids of two tables may be equal, since both count from 1: the table's name makes them different.
            own = fields.get("message_id")
            yield fields if own is None else {**fields, "message_id": f"{home.thread_id}:{table}:{own}"[-128:]}


def _spread(record: Record) -> Record:
    """Return the row with the fields of its message, where the column `message` is an object."""
    message = record.get("message")
    if not isinstance(message, Mapping):
        return record
    inner = {name: value for name, value in cast("Record", message).items() if value is not None}
    return {**record, "message": None, **inner}


def _facts(record: Record, home: Home) -> Iterator[Said]:
    """Yield the fact of a row of `memory`; nothing where its text is empty."""
    statement = plain_text(next((record[name] for name in _STATEMENT if record.get(name)), None)).strip()
    if not statement:
        return
    time = next((record[name] for name in TIME if record.get(name) is not None), None)
    yield {**note_fields(statement, user_id=first_text(record, USER) or home.user_id, time=time), **tags_of(record)}


def _value(value: object) -> Any:
    """Return the value as JSON: a text that parses as an object or list is one, and bytes are None."""
    if isinstance(value, bytes):
        return None
    if isinstance(value, str) and value[:1] in {"{", "["}:
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
