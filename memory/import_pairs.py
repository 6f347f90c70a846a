"""Messages of an import as turns: a user's message and the next of its thread, if an assistant's, are one turn."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

from memory.import_line import ImportMessage, Thread

MOST_WAITING = 10_000

Item = TypeVar("Item")


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


class Waiting(Generic[Item]):
    """Holds each thread's last line while it is a user's message, because the next one may answer it.

    Lines come out as they belong together: a message with its answer, or one alone. At most `most` threads wait;
    beyond that, the one that has waited longest is taken as unanswered.
    """

    def __init__(self, *, most: int = MOST_WAITING) -> None:
        self._most = most
        self._waiting: OrderedDict[Thread, Item] = OrderedDict()

    def take(self, line: Item, *, thread: Thread | None, asks: bool) -> Iterator[tuple[Item, ...]]:
        """What is complete with this line, which `asks` if it is a user's; one without a thread answers nothing."""
        before = self._held(thread)
        if thread is None or not asks:
            yield (*before, line)
            return
        if before:
            yield before
        self._waiting[thread] = line
        if len(self._waiting) > self._most:
            yield (self._waiting.popitem(last=False)[1],)

    def interrupt(self, thread: Thread | None) -> Iterator[tuple[Item, ...]]:
        """A line of this thread could not be read: what comes next does not answer the message before it."""
        before = self._held(thread)
        if before:
            yield before

    def rest(self) -> Iterator[tuple[Item, ...]]:
        """The end: what still waits has no answer."""
        while self._waiting:
            yield (self._waiting.popitem(last=False)[1],)

    def _held(self, thread: Thread | None) -> tuple[Item, ...]:
        """The line that waits in the thread, if any, which waits no longer."""
        return (self._waiting.pop(thread),) if thread in self._waiting else ()


class Pairing:
    """Makes turns of messages, thread by thread; see `Waiting`."""

    def __init__(self, *, most: int = MOST_WAITING) -> None:
        self._waiting = Waiting[Numbered](most=most)

    def take(self, line: Numbered) -> Iterator[Pair]:
        """The pairs that are complete with this line."""
        message = line.message
        return map(_pair, self._waiting.take(line, thread=message.thread, asks=message.role == "user"))

    def interrupt(self, thread: Thread | None) -> Iterator[Pair]:
        """See `Waiting`."""
        return map(_pair, self._waiting.interrupt(thread))

    def rest(self) -> Iterator[Pair]:
        """See `Waiting`."""
        return map(_pair, self._waiting.rest())


def _pair(lines: tuple[Numbered, ...]) -> Pair:
    by_role = {line.message.role: line for line in lines}
    return Pair(by_role.get("user"), by_role.get("assistant"))
