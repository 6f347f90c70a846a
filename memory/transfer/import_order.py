"""Sorts the messages of an import by their times, whatever the order of their lines.

Files may come newest first, or with threads mixed. Lines wait in a temporary file, with 40 bytes of each in memory,
until the last one has come; then all are sorted by time (lines of one time keep their order). Turns come in the order
in which they began, over all threads, because facts are learned in that order.
"""

import tempfile
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import IO

from recollect.memory.background.batches import batches
from recollect.memory.transfer.import_line import Place
from recollect.memory.values.times import to_ms

MOST_IN_MEMORY = 8_000_000
_BREAKS, _ASKS, _ANSWERS = 0, 1, 2
_NONE = -1

Kept = tuple[int, bytes]
"""A line's number and its text."""


def _spool() -> IO[bytes]:
    return tempfile.SpooledTemporaryFile(max_size=MOST_IN_MEMORY)  # type: ignore[return-value]


def _numbers() -> "array[int]":
    return array("q")


@dataclass
class ImportOrder:
    """Takes lines in any order; `turns` returns them sorted. `out_of_order` counts the lines that came too late.

    A line is too late if an earlier line of its thread has a later time. All methods block, and may use the disk.
    `_line`, `_time`, `_place`, `_thread` and `_kind` are columns with one item for each kept line: its number, its
    time in milliseconds, its offset in the file, the number of its place, and whether it breaks, asks or answers.
    """

    out_of_order: int = 0
    _file: IO[bytes] = field(init=False, default_factory=_spool)
    _end: int = field(init=False, default=0)
    _places: dict[Place, int] = field(init=False, default_factory=dict[Place, int])
    _named: set[int] = field(init=False, default_factory=set[int])
    _latest: dict[int, int] = field(init=False, default_factory=dict[int, int])
    _last: dict[int, int] = field(init=False, default_factory=dict[int, int])
    _line: "array[int]" = field(init=False, default_factory=_numbers)
    _time: "array[int]" = field(init=False, default_factory=_numbers)
    _place: "array[int]" = field(init=False, default_factory=_numbers)
    _thread: "array[int]" = field(init=False, default_factory=_numbers)
    _kind: bytearray = field(init=False, default_factory=bytearray)
    _later: "array[int]" = field(init=False, default_factory=_numbers)

    def __len__(self) -> int:
        """Return how many lines wait."""
        return len(self._line) + len(self._later) // 2

    def message(self, number: int, text: bytes, *, place: Place, asks: bool, at: datetime) -> None:
        """Take a message. `asks`: it is a user's, whose answer is looked for in its `place`."""
        time = to_ms(at)
        which = self._places.setdefault(place[:2], len(self._places))
        self.out_of_order += time < self._latest.get(which, time)
        self._latest[which] = max(time, self._latest.get(which, time))
        self._last[which] = time
        pair = self._places.setdefault(place, len(self._places))
        if pair != which:
            self._named.add(pair)
        self._add(number, self._keep(text), pair, _ASKS if asks else _ANSWERS, time)

    def interrupt(self, number: int, thread: Place | None, text: bytes | None = None) -> None:
        """Take a line that is no message: the thread's next line does not answer the one before.

        The line is sorted behind the line of its thread that it follows. With a `text` it is returned too.
        """
        which = self._places.get(thread) if thread is not None else None
        place = _NONE if text is None else self._keep(text)
        if which is not None and which in self._last:
            self._add(number, place, which, _BREAKS, self._last[which])
        elif text is not None:
            self._later.extend((number, place))

    def later(self, number: int, text: bytes) -> None:
        """Take a line that needs stored messages; it is returned behind all of them."""
        self._later.extend((number, self._keep(text)))

    def turns(self) -> Iterator[tuple[Kept, ...]]:
        """Yield the lines of each turn, one or two, then the `later` lines one by one; then close the file."""
        firsts, seconds = self._pairs()
        for first, second in zip(firsts, seconds, strict=True):
            both = (self._read(self._line[one], self._place[one]) for one in (first, second) if one != _NONE)
            yield tuple(both)
        for line, place in batches(self._later, 2):
            yield (self._read(line, place),)
        self.close()

    def close(self) -> None:
        """Close and delete the temporary file."""
        self._file.close()

    def _pairs(self) -> tuple["array[int]", "array[int]"]:
        """Return the indices of each turn's first and second line (`_NONE` without one), sorted by time.

        A user's message is paired with the next line of its thread, if that is an answer. Two lines that name their
        pair belong together in either order.
        """
        firsts, seconds = _numbers(), _numbers()
        waiting: dict[int, int] = {}
        for index in sorted(range(len(self._line)), key=self._time.__getitem__):
            kind, where = self._kind[index], self._thread[index]
            before = waiting.pop(where, _NONE)
            if before != _NONE and kind == _ANSWERS + _ASKS - self._kind[firsts[before]]:
                seconds[before] = index
                if kind == _ASKS:
                    firsts[before], seconds[before] = seconds[before], firsts[before]
                continue
            if self._place[index] == _NONE:
                continue
            if kind == _ASKS or where in self._named:
                waiting[where] = len(firsts)
            firsts.append(index)
            seconds.append(_NONE)
        return firsts, seconds

    def _add(self, number: int, place: int, which: int, kind: int, time: int) -> None:
        self._line.append(number)
        self._place.append(place)
        self._thread.append(which)
        self._time.append(time)
        self._kind.append(kind)

    def _keep(self, text: bytes) -> int:
        """Write `text` to the end of the file, and return its offset."""
        place = self._end
        self._file.seek(place)
        self._end += self._file.write(text + b"\n")
        return place

    def _read(self, number: int, place: int) -> Kept:
        self._file.seek(place)
        return number, self._file.readline()
