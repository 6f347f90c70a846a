"""Defines the numbered lines that an import reads, and splits a stream of bytes into them."""

import json
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from recollect.memory.transfer.import_line import MOST_LINE_BYTES, MOST_OBJECT_BYTES
from recollect.memory.values.frozen import frozen

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@frozen
class Unreadable:
    """Stands for a line or item that cannot be taken, with the sentence that says why."""

    error: str


@dataclass(slots=True)
class SourceHoldings:
    """Names the collections, tables or files of a source: those that are read, and those that no reader knows.

    Both lists are complete once all lines were read.
    """

    read: list[str] = field(default_factory=list[str])
    skipped: list[str] = field(default_factory=list[str])


class SourceLine(NamedTuple):
    """Holds one line or item, counted from 1: its JSON as bytes, its fields, or why it has none."""

    number: int
    said: bytes | Mapping[str, Any] | Unreadable


def to_line(said: Mapping[str, Any]) -> bytes:
    """Return the fields as a line of JSON, without a line break."""
    return json.dumps(said).encode()


TOO_LONG = Unreadable(
    f"The line is longer than {MOST_LINE_BYTES:,} bytes; one that is an object may have {MOST_OBJECT_BYTES:,}."
)


async def split_lines(chunks: AsyncIterable[bytes]) -> AsyncIterator[SourceLine]:
    """Yield the lines of a stream that are not blank. A line that is too long is not kept in memory."""
    splitter = _Splitter()
    async for chunk in chunks:
        for line in splitter.split(chunk):
            yield line
    for line in splitter.end():
        yield line


class _Splitter:
    """Splits chunks at line breaks; holds at most one line, and of one that is too long only its size."""

    def __init__(self) -> None:
        self._number = 0
        self._parts: list[bytes] = []
        self._size = 0
        self._most = MOST_LINE_BYTES

    def split(self, chunk: bytes) -> list[SourceLine]:
        """Return the lines that end in this chunk."""
        found: list[SourceLine] = []
        *whole, rest = chunk.split(b"\n")
        for piece in whole:
            self._number += 1
            if piece or self._size:
                self._keep(piece)
                found += self._taken()
        self._keep(rest)
        return found

    def end(self) -> list[SourceLine]:
        """Return the last line, where no line break follows it."""
        self._number += 1
        return self._taken()

    def _keep(self, piece: bytes) -> None:
        if not self._size:
            is_object = piece.removeprefix(_BYTE_ORDER_MARK).lstrip().startswith(b"{")
            self._most = MOST_OBJECT_BYTES if is_object else MOST_LINE_BYTES
        self._size += len(piece)
        if self._size > self._most:
            self._parts.clear()
        elif piece:
            self._parts.append(piece)

    def _taken(self) -> list[SourceLine]:
        line, size = b"".join(self._parts), self._size
        self._parts, self._size = [], 0
        if size > self._most:
            return [SourceLine(self._number, TOO_LONG)]
        if self._number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        return [SourceLine(self._number, line)] if line.strip() else []
