"""The timeline port, part of the store: messages by time and by position."""

from collections.abc import Sequence
from typing import Protocol

from recollect.memory.values.period import Period
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Message


class Timeline(Protocol):
    """Messages by time and by position.

    It returns only messages that search may find: not `absent`, and with the index step of their turn done.
    """

    async def names(self, user_id: str, *, limit: int) -> list[str]:
        """Return the distinct speakers' names in the user's messages, ascending.

        Messages without a name are not read.
        """
        ...

    async def during(self, scope: Scope, period: Period, *, limit: int) -> list[Message]:
        """Return the messages of the thread (or the user) created in `period` (end exclusive), oldest first."""
        ...

    async def latest(self, scope: Scope, *, limit: int) -> list[Message]:
        """Return the messages of the thread (or the user) that were created last, newest first."""
        ...

    async def preceding(self, messages: Sequence[Message], *, count: int) -> dict[str, list[str]]:
        """Return, by message id, the texts of up to `count` messages before each of `messages` in its thread.

        `messages` are at most 500, of any users. Each list begins with the nearest message. The first message of a
        thread may be missing from the result.
        """
        ...

    async def around(self, scope: Scope, position: int, *, before: int, after: int) -> list[Message]:
        """Return up to `before` messages of the thread below `position` and up to `after` above it, oldest first."""
        ...
