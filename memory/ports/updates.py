"""The updates port, part of the store: what turns owe, and the claims of those who work on it."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Collection, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from recollect.memory.values.frozen import frozen
from recollect.memory.values.turn import Message, Turn
from recollect.memory.values.update import Update


@frozen
class Claim:
    """The right to work on one user's updates. `generation` rises with each new claim and fences out earlier owners."""

    user_id: str
    owner: str
    generation: int


@frozen
class Backlog:
    """A user's updates that are not done. `oldest` is when the oldest pending one's reply was created (UTC)."""

    pending: int = 0
    failed: int = 0
    oldest: datetime | None = None


class Updates(Protocol):
    """Pending updates, and the claims: one process at a time works on a user's updates."""

    @abstractmethod
    async def pending_users(self, *, limit: int) -> list[str]:
        """Return users who have a turn whose update is pending, those who have waited longest first."""
        ...

    @abstractmethod
    async def pending(
        self, user_id: str, *, limit: int, by_time: bool = False, known: Collection[Message] = ()
    ) -> list[Turn]:
        """Return the user's turns whose update is pending, in the order of their commits, without their results.

        With `by_time`, order them by their replies' `created_at`, then by commit: an imported turn has the time at
        which it took place. `known` are messages that the user's turns begin with, as they are stored: they need not be
        read again.
        """
        ...

    @abstractmethod
    async def record(self, turn: Turn, update: Update, *, generation: int) -> bool:
        """Replace the turn's update and store `generation` with it.

        Return False, and change nothing, if a higher generation has written the turn, or the turn is gone.
        """
        ...

    @abstractmethod
    def failed(self, *, user_id: str | None = None) -> AsyncIterator[Sequence[Turn]]:
        """Yield turns whose update has failed, in batches; within a user in the order of their commits.

        Without `user_id`, those of all users.
        """
        ...

    @abstractmethod
    async def backlog(self, user_id: str) -> Backlog:
        """Return how many of the user's updates are pending or failed, and since when the oldest pending one waits."""
        ...

    @abstractmethod
    async def waiting(self, *, at_most: int) -> Backlog:
        """Return how many updates of all users are pending, counted no further than `at_most` (at least 1).

        `failed` is not counted. `oldest` is the time of the update that was committed first.
        """
        ...

    @abstractmethod
    async def claim(
        self, user_id: str, *, owner: str, lease: timedelta, now: datetime, turns: Sequence[str] = ()
    ) -> Claim | None:
        """Take the user for `lease` from `now` on; return None while another owner's lease lives.

        If `owner` holds the living claim itself, renew it under a new generation. `turns` are the ids of all turns that
        are worked on under it: once it has recorded the end of each one's update, others may find that it is over.
        """
        ...

    @abstractmethod
    async def renew(self, claim: Claim, *, lease: timedelta, now: datetime, turns: Sequence[str] | None = None) -> bool:
        """Extend the claim to `now` plus `lease`; return False if it was lost (another generation, or released).

        `turns`, if they are given, replace those that it names; without any, it is over when it is released.
        """
        ...

    @abstractmethod
    async def release(self, claim: Claim, *, is_over: bool = False) -> None:
        """Give the claim up, if it is still held. The generation stays stored, so that it keeps rising.

        `is_over`: it names turns, and has recorded the end of each one's update: others find that by themselves.
        """
        ...
