"""Cuts the lines of a source into bodies of `POST /api/import`, small enough for any service."""

from collections.abc import AsyncIterable, AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from recollect.memory.transfer.import_batch import FailedLine
from recollect.memory.transfer.import_line import BadLine, parse_object, place_of_line, read_time
from recollect.memory.transfer.import_order import ImportOrder
from recollect.memory.transfer.line_source import SourceLine, Unreadable, to_line
from recollect.memory.transfer.line_types import Group, group_of, is_exported

MOST_BYTES = 900_000
"""The most bytes of a body: the least that MAX_UPLOAD_MB allows is a million."""


class _Line(NamedTuple):
    number: int
    text: bytes


@dataclass
class Body:
    """Lines to be sent together, with their numbers in the source."""

    lines: list[_Line] = field(default_factory=list[_Line])
    size: int = 0

    @property
    def content(self) -> bytes:
        """Return what is sent."""
        return b"".join(line.text for line in self.lines)

    @property
    def last(self) -> int:
        """The number of its last line."""
        return max((line.number for line in self.lines), default=0)

    def number_of(self, place: int) -> int:
        """Return the number in the source of the body's `place`-th line, from 1."""
        return self.lines[place - 1].number


class Bodies:
    """Cuts the lines into bodies, never between a message and its answer, nor within an export's connected lines.

    Messages are sorted by time (see `ImportOrder`), and all other lines precede them in their own order; a thread's
    summary follows its messages. A line that is no JSON at all fails here.
    """

    def __init__(self, *, most: int = MOST_BYTES) -> None:
        self.failed: list[FailedLine] = []
        self._most = most
        self._body = Body()
        self._order = ImportOrder()
        self._group: list[_Line] = []
        self._of: Group | None = None

    @property
    def out_of_order(self) -> int:
        """How many messages came behind a later one of their thread."""
        return self._order.out_of_order

    async def cut(self, lines: AsyncIterable[SourceLine]) -> AsyncIterator[Body]:
        """Yield the bodies in order."""
        try:
            async for source in lines:
                if isinstance(source.said, Unreadable):
                    self.failed.append(FailedLine(source.number, source.said.error))
                    continue
                for body in self._take(source.number, source.said):
                    yield body
            for body in self._rest():
                yield body
        finally:
            self._order.close()

    def _take(self, number: int, said: bytes | Mapping[str, Any]) -> Iterator[Body]:
        text = said.strip() if isinstance(said, bytes) else to_line(said)
        fields = _fields(said)
        if not self._waits(number, text, fields):
            line = _Line(number, text + b"\n")
            group = group_of(fields)
            if group is None or group != self._of:
                ended, self._group = self._group, []
                yield from self._add(ended)
            self._of = group
            if group is not None:
                self._group.append(line)
            else:
                yield from self._add([line])

    def _waits(self, number: int, text: bytes, fields: Mapping[str, Any]) -> bool:
        """Tell whether the line must wait for its place: by its time, or behind the messages."""
        # A caller with a key bound to one user may leave the user out.
        place = place_of_line({**fields, "user_id": fields.get("user_id") or ""})
        kind = fields.get("type", fields.get("kind", "message"))
        if place is None or not isinstance(kind, str) or is_exported(kind, fields):
            return False
        if kind == "summary":
            self._order.interrupt(number, place[:2])
            self._order.later(number, text)
            return True
        if kind != "message":
            return False
        try:
            at = read_time(fields.get("timestamp"))
        except BadLine:
            # The service reports what is wrong with it.
            self._order.interrupt(number, place[:2], text)
        else:
            self._order.message(number, text, place=place, asks=fields.get("role") == "user", at=at)
        return True

    def _rest(self) -> Iterator[Body]:
        yield from self._add(self._group)
        for lines in self._order.turns():
            yield from self._add([_Line(*line) for line in lines])
        if self._body.lines:
            yield self._body

    def _add(self, lines: Sequence[_Line]) -> Iterator[Body]:
        size = sum(len(line.text) for line in lines)
        if self._body.lines and self._body.size + size > self._most:
            yield self._body
            self._body = Body()
        self._body.lines += lines
        self._body.size += size


def _fields(said: bytes | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the line's fields, none where it is no object: the service reports what is wrong with it."""
    try:
        return parse_object(said) if isinstance(said, bytes) else said
    except BadLine:
        return {}
