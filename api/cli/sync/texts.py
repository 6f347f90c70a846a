"""The files of a synced folder: a fact, a summary or a turn as Markdown, written, read and compared."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from recollect.memory.transfer.front_matter import NoFrontMatter, from_markdown, to_markdown_file
from recollect.memory.values.fact import is_key
from recollect.memory.values.frozen import frozen

Json = dict[str, Any]
_EDITABLE = ("statement", "tags", "importance", "pinned", "valid_from", "valid_to")
_TOLD = ("source", "evidence", "created_at")
_FIELDS = frozenset({"id", "key", *_EDITABLE, *_TOLD})
_FENCE = b"---"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
GONE = "The memory no longer has this. Delete this file to write yours anew, or delete both."


@frozen
class FactFile:
    """The content of a fact's file. `text` is the value, or the statement where it has no key."""

    id: str | None
    key: str | None
    text: str
    given: Mapping[str, Any]

    def edit(self) -> Json:
        """Return all of the content as the fields of a new fact."""
        name = "statement" if self.key is None else "value"
        return {**{field: value for field, value in self.given.items() if value is not None}, name: self.text}

    def changes(self, line: Mapping[str, Any]) -> Json:
        """Return the fields that differ from the fact's line of an export."""
        edit: Json = {} if self.text == _text(line) else {"statement" if self.key is None else "value": self.text}
        for name, value in self.given.items():
            if not _is_same(name, value, line[name]):
                edit[name] = value
        return edit


def fact_text(line: Mapping[str, Any]) -> bytes:
    """Return the file of a fact, from its line of an export."""
    names = [name for name in ("id", "key", *_EDITABLE, *_TOLD) if name != "statement" or line["key"] is not None]
    return to_markdown_file({name: line[name] for name in names}, _text(line))


def read_fact(content: bytes, stem: str) -> FactFile:
    """Read the file of this name (without its ending); one without front matter is a new fact's text.

    Raises:
        NoFrontMatter: it cannot be read; the message is a sentence.
    """
    fields, body = _read(content)
    unknown = next((name for name in fields if name not in _FIELDS), None)
    if unknown is not None:
        raise NoFrontMatter(f"{unknown[:40]!r} is no field of a fact.")
    text = body.strip()
    if not text:
        raise NoFrontMatter("The file has no text; delete it to forget the fact.")
    key = fields["key"] if "key" in fields else (stem if is_key(stem) else None)
    if key is not None and not (isinstance(key, str) and is_key(key)):
        raise NoFrontMatter("key must be of the form [a-z][a-z0-9_]{0,63}.")
    given = {name: fields[name] for name in _EDITABLE if name in fields and (name != "statement" or key is not None)}
    given = {name: None if value == "" else value for name, value in given.items()}  # a field left empty
    if given.get("tags", ()) is None:
        given["tags"] = []
    named = fields.get("id")
    return FactFile(named if isinstance(named, str) else None, key, text, given)


def summary_text(line: Mapping[str, Any]) -> bytes:
    """Return the file of a summary, from its line of an export."""
    return to_markdown_file({"thread_id": line["thread_id"], "by": line["by"]}, line["content"])


def read_summary(content: bytes) -> str:
    """Return the summary that the file holds.

    Raises:
        NoFrontMatter: it cannot be read, or holds none.
    """
    _, body = _read(content)
    if not body.strip():
        raise NoFrontMatter("The file has no text; delete it to remove the summary.")
    return body.strip()


def turn_text(turn: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the file of a turn, which is read-only for people."""
    times = {f"{one['role']}_at": one["timestamp"] for one in messages}
    result: Mapping[str, Any] = turn.get("result") or {}
    fields = {"thread_id": turn["thread_id"], "turn_id": turn["turn_id"], **times, "model": result.get("model")}
    titles = {"user": "User", "assistant": "Assistant"}
    parts = [f"## {one.get('name') or titles[one['role']]}\n\n{one['content']}" for one in messages]
    return to_markdown_file(fields, "\n\n".join(parts))


def gone_text() -> bytes:
    """Return the content of a conflict's file where the memory has nothing any more."""
    return to_markdown_file({"gone": True}, GONE)


def _read(content: bytes) -> tuple[Json, str]:
    """Return front matter and text; a file without front matter is all text."""
    plain = content.removeprefix(_BYTE_ORDER_MARK)
    return from_markdown(plain if plain.startswith(_FENCE) else b"---\n{}\n---\n" + plain)


def _text(line: Mapping[str, Any]) -> str:
    text: str = line["statement"] if line["key"] is None else line["value"]
    return text.strip()


def _is_same(name: str, said: object, stored: object) -> bool:
    if name in {"valid_from", "valid_to"}:
        return _moment(said) == _moment(stored)
    return said == stored


def _moment(value: object) -> object:
    """Return the time; other values stay as they are, and the service reports what is wrong with them."""
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return value
    if time is None:
        return value
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
