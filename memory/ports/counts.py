"""The counts port: how much the store holds, counted by the backend itself."""

from abc import abstractmethod
from typing import Protocol

from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope


@frozen
class Counted:
    """Counts of what is stored.

    `threads` have messages; `turns` are finished ones; `messages` include those of unfinished turns; `facts` are open
    (`Fact.is_open`): a user's in all scopes, a thread's own, with all users the global ones too. `pending` are turns
    whose update is pending.
    """

    threads: int = 0
    turns: int = 0
    messages: int = 0
    facts: int = 0
    pending: int = 0


class Counts(Protocol):
    """Counts without reading what is counted. A write during a call may be in one number and not in another."""

    @abstractmethod
    async def users(self) -> int:
        """Count the users who have a message, a fact, a thread record or a document, without the global user."""
        ...

    @abstractmethod
    async def count(self, scope: Scope | None) -> Counted:
        """Count what is stored of a user, or of one of their threads; with None, of all users."""
        ...
