"""Counts: the port that says how much the documents hold, counted where it is kept."""

from dataclasses import dataclass
from typing import Protocol

from memory.scope import Scope


@dataclass(frozen=True, slots=True)
class Counted:
    """How much there is.

    `threads` have messages; `turns` are finished ones, `messages` were said, in unfinished turns too; `facts` are open
    (`Fact.is_open`): a user's in all scopes, a thread's own, with the whole service the global ones too. `pending` are
    the turns whose update is.
    """

    threads: int = 0
    turns: int = 0
    messages: int = 0
    facts: int = 0
    pending: int = 0


class Counts(Protocol):
    """Counting without reading. What is written meanwhile may be in one number and not in another."""

    async def users(self) -> int:
        """How many users have a message, a fact, a thread record or a document; the global one is none."""
        ...

    async def count(self, scope: Scope | None) -> Counted:
        """How much there is of a user, or of one thread of theirs; None: of all users."""
        ...
