"""Data holders: every place that keeps something of a user. An erasure goes through all of them, and scans them.

What keeps nothing of a user beyond the process is none, and says so where it is: the thread queue and claims of SQLite,
batches of an import, answers that wait for their step, wishes (they travel in the turns' updates).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from memory.documents import Documents
from memory.scope import Scope
from memory.vector_index import VectorIndex


class DataHolder(Protocol):
    """One place with user data."""

    @property
    def name(self) -> str:
        """What a receipt calls it."""
        ...

    async def erase(self, scope: Scope) -> int:
        """Delete what there is of the user (or the thread) and say how much it was. Done again, it finds the rest.

        Raises:
            StoreUnavailable: the place cannot be reached; some of it may be deleted.
        """
        ...

    async def remaining(self, scope: Scope) -> int:
        """How much of the user (or the thread) a scan finds."""
        ...


@dataclass(frozen=True, slots=True)
class DocumentsHolder:
    """What one port of the documents keeps. The scan counts all that names the scope, whatever the port calls it."""

    name: str
    documents: Documents
    delete: Callable[[Scope], Awaitable[int]]

    async def erase(self, scope: Scope) -> int:
        """See DataHolder."""
        return await self.delete(scope)

    async def remaining(self, scope: Scope) -> int:
        """See DataHolder."""
        return await self.documents.erasures.count(self.name, scope)


@dataclass(frozen=True, slots=True)
class IndexHolder:
    """The points in all collections of the index: those that serve, and those that were made for other embedders."""

    index: VectorIndex
    name: str = "index"

    async def erase(self, scope: Scope) -> int:
        """See DataHolder."""
        return await self.index.erase(scope)

    async def remaining(self, scope: Scope) -> int:
        """See DataHolder."""
        return await self.index.remaining(scope)


class Lines(Protocol):
    """Lines that users typed, kept in files: calls block."""

    def erase(self, scope: Scope) -> int:
        """Drop them; how many there were."""
        ...

    def remaining(self, scope: Scope) -> int:
        """How many are there."""
        ...


@dataclass(frozen=True, slots=True)
class LinesHolder:
    """What was typed at this machine's terminals."""

    lines: Lines
    name: str = "terminal"

    async def erase(self, scope: Scope) -> int:
        """See DataHolder."""
        return await asyncio.to_thread(self.lines.erase, scope)

    async def remaining(self, scope: Scope) -> int:
        """See DataHolder."""
        return await asyncio.to_thread(self.lines.remaining, scope)


class Cache(Protocol):
    """What remembers answers, without knowing whose they are."""

    def clear(self) -> None:
        """Forget them all."""
        ...


@dataclass(frozen=True, slots=True)
class CacheHolder:
    """The vectors of recent queries, kept in this process by digests: nobody can tell whose, so that all of them go."""

    cache: Cache
    name: str = "query_cache"

    async def erase(self, scope: Scope) -> int:
        """See DataHolder. None of them is counted as the user's."""
        self.cache.clear()
        return 0

    async def remaining(self, scope: Scope) -> int:
        """See DataHolder."""
        return 0


def data_holders(
    documents: Documents,
    index: VectorIndex,
    *,
    keys: Callable[[str], Awaitable[int]],
    lines: Lines,
    cache: Cache,
) -> Sequence[DataHolder]:
    """All of them, in the order in which an erasure goes through them. `keys` removes a user's own keys.

    Keys go first, so that nobody comes in with one. Messages go before what is made from them: whoever makes something
    for a thread looks afterwards whether the thread still has messages.
    """

    async def delete_keys(scope: Scope) -> int:
        return await keys(scope.user_id) if scope.thread_id is None else 0

    return (
        DocumentsHolder("keys", documents, delete_keys),
        DocumentsHolder("work", documents, documents.erasures.delete_work),
        DocumentsHolder("conversations", documents, documents.conversations.delete),
        DocumentsHolder("facts", documents, documents.facts.delete),
        DocumentsHolder("threads", documents, documents.threads.delete),
        DocumentsHolder("documents", documents, documents.library.delete),
        IndexHolder(index),
        LinesHolder(lines),
        CacheHolder(cache),
    )
