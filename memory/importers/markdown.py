"""Folders of Markdown files with YAML front matter: `entries/<conversation>/{turns,facts,summaries}/…`."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import yaml

from memory.import_source import Unreadable
from memory.importers.files import Said, modified
from memory.importers.records import USER, Home, fact_line, messages_of, text_of, thread_name

ENTRIES = "entries"
_DELETED = "deleted"
_MOST_FRONT_CHARACTERS = 100_000
_KINDS = ("turns", "facts", "summaries")


def entry_files(folder: Path) -> list[Path]:
    """The files of the folder's entries without those that were deleted: turns by time, then facts, then summaries."""
    entries = folder / ENTRIES if (folder / ENTRIES).is_dir() else folder
    found = [path for path in entries.rglob("*.md") if _DELETED not in path.relative_to(entries).parts]

    def order(path: Path) -> tuple[int, str, str, bool, str]:
        time, _, name = path.name.partition("__")
        # Of two at one time the user's is the first: its answer comes behind it.
        is_answer = path.parent.name != "user"
        return _KINDS.index(_kind(path)), path.relative_to(entries).parts[0], time, is_answer, name

    return sorted((path for path in found if _kind(path) in _KINDS), key=order)


def read_entry(path: Path, *, user_id: str | None) -> Iterator[Said]:
    """The message, fact or summary that the file holds; nothing of a fact that was replaced."""
    try:
        front, body = _split(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        yield Unreadable(f"{path.name} cannot be read as Markdown with YAML front matter ({type(error).__name__}).")
        return
    whose = text_of(front, USER) or user_id
    kind = _kind(path)
    thread = text_of(front, ("conversation_id", "thread_id", "session_id")) or _conversation(path)
    if kind == "turns":
        home = Home(whose, thread, modified(path))
        metadata = {"model": front["model"]} if isinstance(front.get("model"), str) else {}
        record = {**front, "role": front.get("role") or path.parent.name, "content": body, "metadata": metadata}
        yield from messages_of(record, home)
    elif kind == "summaries":
        line = {"kind": "summary", "thread_id": thread_name(thread), "content": body}
        yield {**line, "user_id": whose} if whose else line
    elif not front.get("replaced_by"):
        yield fact_line(body, user_id=whose, time=front.get("created_at"))


def _split(text: str) -> tuple[dict[str, Any], str]:
    """Front matter and body.

    Raises:
        ValueError: there is no front matter.
        YAMLError: it is no mapping.
    """
    lines = text.splitlines(keepends=True)
    if not lines or lines[0].rstrip() != "---":
        raise ValueError("no front matter")
    end = next((number for number, line in enumerate(lines) if number and line.rstrip() == "---"), None)
    front = "".join(lines[1:end])
    if end is None or len(front) > _MOST_FRONT_CHARACTERS:
        raise ValueError("no end of the front matter")
    said: object = yaml.safe_load(front)
    if not isinstance(said, Mapping):
        raise yaml.YAMLError("no mapping")
    fields = {str(key): value for key, value in cast("Mapping[object, object]", said).items()}
    return fields, "".join(lines[end + 1 :]).strip()


def _kind(path: Path) -> str:
    """The folder that says what the file is: the nearest of the known ones above it."""
    return next((part for part in reversed(path.parent.parts) if part in _KINDS), "")


def _conversation(path: Path) -> str:
    """The folder above the one that says what the file is."""
    parts = path.parent.parts
    place = len(parts) - 1 - parts[::-1].index(_kind(path))
    return parts[place - 1] if place else "entries"
