"""Messages of an import as turns: a user's message and the next of its thread, if an assistant's, are one turn."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import NamedTuple

from memory.import_line import ImportMessage, Thread

MOST_WAITING = 10_000


class Numbered(NamedTuple):
    """A message and the number of its line."""

    number: int
    message: ImportMessage


class Pair(NamedTuple):
    """What one turn is to hold; one of the two may be missing."""

    user: Numbered | None
    assistant: Numbered | None

    @property
    def lines(self) -> tuple[Numbered, ...]:
        """Those that are there, in their order."""
        return tuple(line for line in self if line is not None)


class Pairing:
    """Holds each thread's last message while it is a user's, because the next one may answer it.

    At most 10,000 threads wait; beyond that, the one that has waited longest is taken as unanswered.
    """

    def __init__(self, *, most: int = MOST_WAITING) -> None:
        self._most = most
        self._waiting: OrderedDict[Thread, Numbered] = OrderedDict()

    def take(self, line: Numbered) -> Iterator[Pair]:
        """The pairs that are complete with this line."""
        before = self._waiting.pop(line.message.thread, None)
        if line.message.role == "assistant":
            yield Pair(before, line)
            return
        if before is not None:
            yield Pair(before, None)
        self._waiting[line.message.thread] = line
        if len(self._waiting) > self._most:
            yield Pair(self._waiting.popitem(last=False)[1], None)

    def interrupt(self, thread: Thread | None) -> Iterator[Pair]:
        """A line of this thread could not be read: what comes next does not answer the message before it."""
        before = self._waiting.pop(thread, None) if thread is not None else None
        if before is not None:
            yield Pair(before, None)

    def rest(self) -> Iterator[Pair]:
        """The end: what still waits has no answer."""
        while self._waiting:
            yield Pair(self._waiting.popitem(last=False)[1], None)
