"""Reads folders of Markdown files with YAML front matter: `entries/<conversation>/{turns,facts,summaries}/…`."""

from collections.abc import Iterator
from pathlib import Path

from recollect.memory.transfer.front_matter import NoFrontMatter, from_markdown
from recollect.memory.transfer.line_source import Unreadable
from recollect.memory.transfer.sources.files import Said, modified
from recollect.memory.transfer.sources.records import USER, Home, first_text, messages_of, note_fields, thread_name

ENTRIES = "entries"
_DELETED = "deleted"
_NOBODY = (None, False, "", "~")
"""Values of `replaced_by` in a fact that nothing has replaced."""
_KINDS = ("turns", "facts", "summaries")


def entry_files(folder: Path) -> list[Path]:
    """Return the files of the folder's entries that are not deleted: turns by time, then facts, then summaries."""
    entries = folder / ENTRIES if (folder / ENTRIES).is_dir() else folder
    found = [path for path in entries.rglob("*.md") if _DELETED not in path.relative_to(entries).parts]

    def order(path: Path) -> tuple[int, str, str, bool, str]:
        time, _, name = path.name.partition("__")
        # Of two messages at one time the user's comes first: the other answers it.
        is_answer = path.parent.name != "user"
        return _KINDS.index(_kind(path)), path.relative_to(entries).parts[0], time, is_answer, name

    return sorted((path for path in found if _kind(path) in _KINDS), key=order)


def read_entry_file(path: Path, *, user_id: str | None) -> Iterator[Said]:
    """Yield the message, fact or summary of the file; nothing for a fact that was replaced."""
    try:
        front, text = from_markdown(path.read_bytes(), is_foreign=True)
    except NoFrontMatter as error:
        yield Unreadable(f"{path.name}: {error}")
        return
    except OSError as error:
        yield Unreadable(f"{path.name} cannot be read ({type(error).__name__}).")
        return
    body = text.strip()
    whose = first_text(front, USER) or user_id
    kind = _kind(path)
    thread = first_text(front, ("conversation_id", "thread_id", "session_id")) or _conversation(path)
    if kind == "turns":
        home = Home(whose, thread, modified(path))
        metadata = {"model": front["model"]} if isinstance(front.get("model"), str) else {}
        record = {**front, "role": front.get("role") or path.parent.name, "content": body, "metadata": metadata}
        yield from messages_of(record, home)
    elif kind == "summaries":
        line = {"kind": "summary", "thread_id": thread_name(thread), "content": body}
        yield {**line, "user_id": whose} if whose else line
    elif front.get("replaced_by") in _NOBODY:
        yield note_fields(body, user_id=whose, time=front.get("created_at"))


def _kind(path: Path) -> str:
    """Return the nearest folder above the file that is one of `_KINDS`, or ""."""
    return next((part for part in reversed(path.parent.parts) if part in _KINDS), "")


def _conversation(path: Path) -> str:
    """Return the folder above that of the file's kind: its name is the conversation's."""
    parts = path.parent.parts
    place = len(parts) - 1 - parts[::-1].index(_kind(path))
    return parts[place - 1] if place else "entries"
