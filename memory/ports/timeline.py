"""The timeline port, part of the store: messages by time and by position."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol

from recollect.memory.values.filtering.narrow import ALL, Narrow
from recollect.memory.values.period import Period
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Message


class Timeline(Protocol):
    """Messages by time and by position.

    It returns only messages that search may find: not `absent`, and with the index step of their turn done.
    """

    @abstractmethod
    async def names(self, user_id: str, *, limit: int) -> list[str]:
        """Return the distinct speakers' names in the user's messages, ascending.

        Messages without a name are not read.
        """
        ...

    @abstractmethod
    async def during(self, scope: Scope, period: Period, *, limit: int, where: Narrow = ALL) -> list[Message]:
        """Return the messages of the thread (or the user) created in `period` (end exclusive), oldest first.

        Messages of the same time are in the order of their threads, then of their positions.
        """
        ...

    @abstractmethod
    async def latest(self, scope: Scope, *, limit: int, where: Narrow = ALL) -> list[Message]:
        """Return the messages of the thread (or the user) that were created last, newest first."""
        ...

    @abstractmethod
    async def described(
        self, scope: Scope, *, limit: int, before: Message | None = None, where: Narrow = ALL
    ) -> list[Message]:
        """Return messages as `latest` does, without their texts; with `before`, only those older than that one."""
        ...

    @abstractmethod
    async def threads(self, user_id: str, *, where: Narrow) -> list[str]:
        """Return the ids of the user's threads that have a message for which `where` holds, in any order."""
        ...

    @abstractmethod
    async def preceding(self, messages: Sequence[Message], *, count: int) -> dict[str, list[str]]:
        """Return, by message id, the texts of up to `count` messages before each of `messages` in its thread.

        `messages` are at most 500, of any users. Each list begins with the nearest message. The first message of a
        thread may be missing from the result. A reply's own message precedes it even where the turn is not indexed yet.
        """
        ...

    @abstractmethod
    async def around(self, scope: Scope, position: int, *, before: int, after: int) -> list[Message]:
        """Return up to `before` messages of the thread below `position` and up to `after` above it, oldest first."""
        ...
