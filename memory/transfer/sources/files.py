"""Reads files of an import in a thread: JSON Lines in pieces, others as a whole, one after the other."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from recollect.memory.transfer.line_source import SourceLine, Unreadable, split_lines

Said = dict[str, Any] | Unreadable
CHUNK_BYTES = 1 << 18


async def read_chunks(path: Path) -> AsyncIterator[bytes]:
    """Yield the file's bytes, at most `CHUNK_BYTES` at a time."""
    with await asyncio.to_thread(path.open, "rb") as file:
        while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
            yield chunk


async def json_lines(path: Path, *, user_id: str | None) -> AsyncIterator[SourceLine]:
    """Yield the lines of a JSON Lines file; those that name no user are `user_id`'s."""
    async for line in split_lines(read_chunks(path)):
        yield line if user_id is None else SourceLine(line.number, _with_user(line.said, user_id))


async def of_files(paths: list[Path], read: Callable[[Path], Iterator[Said]]) -> AsyncIterator[SourceLine]:
    """Yield the items of all files, numbered consecutively; each file is read as a whole in a thread."""
    number = 0
    for path in paths:
        for said in await asyncio.to_thread(_all_of, read, path):
            number += 1
            yield SourceLine(number, said)


def _all_of(read: Callable[[Path], Iterator[Said]], path: Path) -> list[Said]:
    return list(read(path))


def read_json(path: Path) -> Any:
    """Return the file's JSON, or `Unreadable` with the reason."""
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        return Unreadable(f"{path.name} cannot be read as JSON ({type(error).__name__}).")


def modified(path: Path) -> datetime:
    """Return the time at which the file was last written (UTC)."""
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)


def _with_user(said: Any, user_id: str) -> Any:
    """Return the line with the user added, where it is an object that names none."""
    if not isinstance(said, bytes):
        return said
    try:
        fields = json.loads(said)
    except (ValueError, RecursionError):
        return said  # The import refuses it, with a reason.
    if not isinstance(fields, dict) or cast("dict[str, Any]", fields).get("user_id") is not None:
        return said
    return {**cast("dict[str, Any]", fields), "user_id": user_id}
