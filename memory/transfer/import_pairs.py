"""Pairs the messages of an import into turns: a user's message, and the thread's next if it is an assistant's."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

from recollect.memory.transfer.import_line import ImportMessage, Place, Thread

MOST_WAITING = 10_000

Item = TypeVar("Item")


class Numbered(NamedTuple):
    """Holds a message and the number of its line."""

    number: int
    message: ImportMessage


class Pair(NamedTuple):
    """Holds the two messages of one turn; one of them may be missing."""

    user: Numbered | None
    assistant: Numbered | None

    @property
    def lines(self) -> tuple[Numbered, ...]:
        """Return the messages that exist, the user's first."""
        return tuple(line for line in self if line is not None)


class Waiting(Generic[Item]):
    """Keeps the last line of each place while it is a user's message, because the place's next line may answer it.

    A place is a thread, or a pair in it. Lines are returned as tuples: a message with its answer, or one line alone.
    At most `most` places wait, which bounds memory; beyond that, the one that waits longest counts as unanswered.
    """

    def __init__(self, *, most: int = MOST_WAITING) -> None:
        self._most = most
        self._waiting: OrderedDict[Place, Item] = OrderedDict()

    def take(self, line: Item, *, place: Place | None, asks: bool) -> Iterator[tuple[Item, ...]]:
        """Return the tuples that `line` completes. `asks`: it is a user's; without a `place` it answers nothing."""
        before = self._held(place)
        if place is None or not asks:
            yield (*before, line)
            return
        if before:
            yield before
        self._waiting[place] = line
        if len(self._waiting) > self._most:
            yield (self._waiting.popitem(last=False)[1],)

    def interrupt(self, thread: Thread | None) -> Iterator[tuple[Item, ...]]:
        """Return the message that waits in `thread` as unanswered: the line behind it could not be read."""
        before = self._held(thread)
        if before:
            yield before

    def rest(self) -> Iterator[tuple[Item, ...]]:
        """Return all messages that still wait as unanswered: no line follows."""
        while self._waiting:
            yield (self._waiting.popitem(last=False)[1],)

    def _held(self, place: Place | None) -> tuple[Item, ...]:
        """Remove and return the line that waits in `place`, if any."""
        return (self._waiting.pop(place),) if place in self._waiting else ()


class Pairing:
    """Pairs messages into turns, place by place; see `Waiting`."""

    def __init__(self, *, most: int = MOST_WAITING) -> None:
        self._waiting = Waiting[Numbered](most=most)

    def take(self, line: Numbered) -> Iterator[Pair]:
        """Return the pairs that `line` completes."""
        message = line.message
        return map(_pair, self._waiting.take(line, place=message.place, asks=message.role == "user"))

    def interrupt(self, thread: Thread | None) -> Iterator[Pair]:
        """Return the message that waits in `thread` as a pair without an answer."""
        return map(_pair, self._waiting.interrupt(thread))

    def rest(self) -> Iterator[Pair]:
        """Return all messages that still wait as pairs without an answer."""
        return map(_pair, self._waiting.rest())


def _pair(lines: tuple[Numbered, ...]) -> Pair:
    by_role = {line.message.role: line for line in lines}
    return Pair(by_role.get("user"), by_role.get("assistant"))
