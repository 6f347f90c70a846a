"""Data holders are the places that keep something of a user. An erasure empties all of them, and scans them.

A place that forgets a user with the process is no data holder, and its own docstring says so: the thread queue and the
claims of SQLite, batches of an import, answers that wait for their step, wishes (the turns' updates carry them).
"""

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Protocol

from typing_extensions import override

from recollect.memory.index.query_cache import CachedEmbedder
from recollect.memory.index.serving_embedder import ServingEmbedder
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import VectorIndex
from recollect.memory.threads.recorded_hits import RecordedHits
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope


class DataHolder(Protocol):
    """Keeps user data in one place, which an erasure can empty and scan."""

    name: str
    """Return the holder's name in receipts."""

    @abstractmethod
    async def erase(self, scope: Scope) -> int:
        """Delete everything of the user (or the thread) and return how much that was; a repeat deletes the rest.

        Raises:
            StoreUnavailable: the place cannot be reached; a part may be deleted.
        """
        ...

    @abstractmethod
    async def remaining(self, scope: Scope) -> int:
        """Scan the place, and return how much it holds of the user (or the thread)."""
        ...


class ForeignHolder(DataHolder, Protocol):
    """Keeps user data for another program, which may not run here. A receipt names it only where it existed."""

    @abstractmethod
    async def is_there(self, scope: Scope) -> bool:
        """Tell whether the place exists now and holds something of the user (or the thread)."""
        ...


@frozen
class StoreHolder(DataHolder):
    """Empties one port of the store with `delete`. The scan counts every row of that port that names the scope."""

    name: str
    store: Store
    delete: Callable[[Scope], Awaitable[int]]

    @override
    async def erase(self, scope: Scope) -> int:
        return await self.delete(scope)

    @override
    async def remaining(self, scope: Scope) -> int:
        return await self.store.erasures.count(self.name, scope)


@frozen
class IndexHolder(DataHolder):
    """Empties all collections of the index: the one that serves, and those that were made for other embedders."""

    index: VectorIndex
    name: str = "index"

    @override
    async def erase(self, scope: Scope) -> int:
        return await self.index.erase(scope)

    @override
    async def remaining(self, scope: Scope) -> int:
        return await self.index.remaining(scope)


class TypedLinesFiles(Protocol):
    """Keeps the lines that users typed, in files: calls block."""

    @abstractmethod
    def erase(self, scope: Scope) -> int:
        """Remove the lines of the user (or the thread), and return how many there were."""
        ...

    @abstractmethod
    def remaining(self, scope: Scope) -> int:
        """Count the lines of the user (or the thread)."""
        ...

    @abstractmethod
    def trim(self, user_id: str, *, since: datetime | None) -> None:
        """Remove the user's lines from before `since`, and the oldest of too many."""
        ...


@frozen
class LinesHolder(DataHolder):
    """Empties the history of this machine's terminals."""

    lines: TypedLinesFiles
    name: str = "terminal"

    @override
    async def erase(self, scope: Scope) -> int:
        return await asyncio.to_thread(self.lines.erase, scope)

    @override
    async def remaining(self, scope: Scope) -> int:
        return await asyncio.to_thread(self.lines.remaining, scope)


@frozen
class CacheHolder(DataHolder):
    """Empties the query cache of this process: its keys are digests that name no user, so every vector is removed."""

    cache: CachedEmbedder | ServingEmbedder
    name: str = "query_cache"

    @override
    async def erase(self, scope: Scope) -> int:
        """Remove every vector and return 0, because none can be counted as the user's."""
        self.cache.clear()
        return 0

    @override
    async def remaining(self, scope: Scope) -> int:
        return 0


def data_holders(
    store: Store,
    index: VectorIndex,
    *,
    keys: Callable[[str], Awaitable[int]],
    lines: TypedLinesFiles,
    cache: CachedEmbedder | ServingEmbedder,
) -> Sequence[DataHolder]:
    """Return all data holders, in the order in which an erasure empties them. `keys` deletes a user's own keys.

    Keys go first, so that nobody signs in with one, then the sessions that they opened. Messages go before what is made
    from them: a writer of a summary or a thread record checks after its write whether the thread still has messages.
    """

    async def delete_keys(scope: Scope) -> int:
        return await keys(scope.user_id) if scope.thread_id is None else 0

    async def delete_sessions(scope: Scope) -> int:
        return await store.sessions.delete(scope.user_id) if scope.thread_id is None else 0

    async def delete_conversations(scope: Scope) -> int:
        deleted = await store.conversations.delete(scope)
        if scope.thread_id is not None:  # the user's other turns may have recorded hits of this thread
            await RecordedHits(store).blank_thread(scope)
        return deleted

    return (
        StoreHolder("keys", store, delete_keys),
        StoreHolder("sessions", store, delete_sessions),
        StoreHolder("work", store, store.erasures.delete_work),
        StoreHolder("client_records", store, store.client_records.delete),
        StoreHolder("conversations", store, delete_conversations),
        StoreHolder("facts", store, store.facts.delete),
        StoreHolder("threads", store, store.threads.delete),
        StoreHolder("documents", store, store.documents.delete),
        IndexHolder(index),
        LinesHolder(lines),
        CacheHolder(cache),
    )
