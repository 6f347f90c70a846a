"""What an import reads: lines by their numbers, from a stream of bytes or from a source that makes them itself."""

from collections.abc import AsyncIterable, AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from memory.import_line import MOST_LINE_BYTES

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Something that cannot be taken, and the sentence that says why."""

    error: str


class SourceLine(NamedTuple):
    """One line or item, counted from 1: JSON as it came, the fields already read, or why there are none."""

    number: int
    said: bytes | Mapping[str, Any] | Unreadable


TOO_LONG = Unreadable(f"The line is longer than {MOST_LINE_BYTES:,} bytes.")


async def split_lines(chunks: AsyncIterable[bytes]) -> AsyncIterator[SourceLine]:
    """The lines of a stream that are not blank. Of a line that is too long nothing is kept."""
    splitter = _Splitter()
    async for chunk in chunks:
        for line in splitter.split(chunk):
            yield line
    for line in splitter.end():
        yield line


class _Splitter:
    def __init__(self) -> None:
        self._number = 0
        self._parts: list[bytes] = []
        self._size = 0

    def split(self, chunk: bytes) -> list[SourceLine]:
        """The lines that end in this chunk."""
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
        """The last line, where no line break follows it."""
        self._number += 1
        return self._taken()

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > MOST_LINE_BYTES:
            self._parts.clear()
        elif piece:
            self._parts.append(piece)

    def _taken(self) -> list[SourceLine]:
        line, size = b"".join(self._parts), self._size
        self._parts, self._size = [], 0
        if size > MOST_LINE_BYTES:
            return [SourceLine(self._number, TOO_LONG)]
        if self._number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        return [SourceLine(self._number, line)] if line.strip() else []
