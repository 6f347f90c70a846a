"""The lines of a source as bodies of `POST /api/import`, small enough for any service."""

import json
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from memory.import_batch import FailedLine
from memory.import_line import BadLine, parse_object, thread_of
from memory.import_pairs import Waiting
from memory.import_source import SourceLine, Unreadable
from memory.import_types import Group, group_of

MOST_BYTES = 900_000
"""The least that MAX_UPLOAD_MB allows is a million."""


class _Line(NamedTuple):
    number: int
    text: bytes


@dataclass
class Body:
    """Lines to be sent together, with the numbers that they have in the source."""

    lines: list[_Line] = field(default_factory=list[_Line])
    size: int = 0

    @property
    def content(self) -> bytes:
        """What is sent."""
        return b"".join(line.text for line in self.lines)

    @property
    def last(self) -> int:
        """The number of its last line."""
        return max((line.number for line in self.lines), default=0)

    def number_of(self, place: int) -> int:
        """The number in the source of the body's `place`-th line, from 1."""
        return self.lines[place - 1].number


class Bodies:
    """Cuts the lines into bodies, never between a message and its answer, nor within what an export keeps together.

    What is no line at all fails here.
    """

    def __init__(self, *, most: int = MOST_BYTES) -> None:
        self.failed: list[FailedLine] = []
        self._most = most
        self._body = Body()
        self._waiting = Waiting[_Line]()
        self._group: list[_Line] = []
        self._of: Group | None = None

    async def cut(self, lines: AsyncIterable[SourceLine]) -> AsyncIterator[Body]:
        """The bodies, one after the other."""
        async for source in lines:
            if isinstance(source.said, Unreadable):
                self.failed.append(FailedLine(source.number, source.said.error))
                continue
            for body in self._take(source.number, source.said):
                yield body
        for kept in (self._group, *self._waiting.rest()):
            for body in self._add(kept):
                yield body
        if self._body.lines:
            yield self._body

    def _take(self, number: int, said: bytes | Mapping[str, Any]) -> Iterator[Body]:
        """A user's message is held until the next line of its thread: that may be the answer."""
        text = said if isinstance(said, bytes) else json.dumps(said).encode()
        line = _Line(number, text.strip() + b"\n")
        fields = _fields(said)
        group = group_of(fields)
        if group is None or group != self._of:
            ended, self._group = self._group, []
            yield from self._add(ended)
        self._of = group
        if group is not None:
            self._group.append(line)
            return
        for together in self._waiting.take(line, thread=thread_of(fields), asks=fields.get("role") == "user"):
            yield from self._add(together)

    def _add(self, lines: Sequence[_Line]) -> Iterator[Body]:
        size = sum(len(line.text) for line in lines)
        if self._body.lines and self._body.size + size > self._most:
            yield self._body
            self._body = Body()
        self._body.lines += lines
        self._body.size += size


def _fields(said: bytes | Mapping[str, Any]) -> Mapping[str, Any]:
    """The line's fields, none where it is no object: the service says what is wrong with it."""
    try:
        return parse_object(said) if isinstance(said, bytes) else said
    except BadLine:
        return {}
