"""The threads port, part of the store: a record for each thread."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from recollect.memory.values.scope import Scope
from recollect.memory.values.thread_record import ThreadRecord


class Threads(Protocol):
    """Thread records: one per thread, written whole; each write names the revision that was read."""

    @abstractmethod
    async def record(self, scope: Scope) -> ThreadRecord | None:
        """Return the thread's record, or None."""
        ...

    @abstractmethod
    async def records(self, *, user_id: str, thread_ids: Sequence[str]) -> list[ThreadRecord]:
        """Return the records of those of `thread_ids` (at most 500) that have one, in any order."""
        ...

    @abstractmethod
    async def put(self, record: ThreadRecord, *, revision: int) -> bool:
        """Store `record` in place of the one with `revision` (0: none is stored yet).

        Else return False, and change nothing.
        """
        ...

    @abstractmethod
    async def closing(self, *, limit: int) -> list[ThreadRecord]:
        """Return records of any user with `closing` set: their archive lacks its summary."""
        ...

    @abstractmethod
    async def owed(self, *, user_id: str, limit: int) -> list[ThreadRecord]:
        """Return records of the user whose latest revision is not in the index yet."""
        ...

    @abstractmethod
    async def owed_users(self, *, limit: int) -> list[str]:
        """Return users for whom `owed` returns records."""
        ...

    @abstractmethod
    async def mark_indexed(self, record: ThreadRecord) -> bool:
        """Record that the index holds this revision; return False, and change nothing, if the stored one is another."""
        ...

    @abstractmethod
    def indexed(self, *, user_id: str | None = None) -> AsyncIterator[Sequence[ThreadRecord]]:
        """Yield the records that must have a point: `has_point` and `indexed`.

        They come in batches of at most 500, in any order. Without `user_id`, yield those of all users.
        """
        ...

    @abstractmethod
    async def count_indexed(self) -> int:
        """Count the records that `indexed` yields for all users."""
        ...

    @abstractmethod
    def every(self, user_id: str) -> AsyncIterator[Sequence[ThreadRecord]]:
        """Yield all of the user's records, in batches of at most 500, by thread id, ascending."""
        ...

    @abstractmethod
    async def delete(self, scope: Scope) -> int:
        """Delete the thread's record (or all of the user's); return how many were deleted."""
        ...
