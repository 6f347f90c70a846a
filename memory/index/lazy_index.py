"""A vector index that opens at its first use: the embedder that knows the dimension may be down at the start."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from recollect.memory.ports.embedder import Embedder
from recollect.memory.ports.vector_index import Entry, Match, Point, Query, Successor, VectorIndex
from recollect.memory.values.errors import IndexUnavailable, ModelUnavailable
from recollect.memory.values.scope import Scope

Opener = Callable[[int], AbstractAsyncContextManager[VectorIndex]]
"""Opens the index for vectors of so many dimensions. Called in a thread: it may import what it opens."""


class LazyIndex:
    """Implements `VectorIndex` over an index that is opened by the first call.

    While the embedder does not say its dimension, calls raise IndexUnavailable, and the next call tries again.
    """

    def __init__(self, name: str, embedder: Embedder, opener: Opener) -> None:
        self.name = name
        self._embedder = embedder
        self._opener = opener
        self._index: VectorIndex | None = None
        self._opening = asyncio.Lock()
        self._closer = AsyncExitStack()

    async def __aenter__(self) -> "LazyIndex":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._closer.aclose()

    async def _open(self) -> VectorIndex:
        if self._index is not None:
            return self._index
        # Held while opening: the first calls come at once, and only one of them may open the index.
        async with self._opening:
            if self._index is None:
                try:
                    dimension = await self._embedder.dimension()
                except ModelUnavailable as error:
                    raise IndexUnavailable(
                        "The index waits for the embedder, which has not said how long its vectors are; set "
                        "EMBEDDING_DIMENSIONS to open it without asking."
                    ) from error
                opening = await asyncio.to_thread(self._opener, dimension)
                self._index = await self._closer.enter_async_context(opening)
        return self._index

    async def upsert(self, points: Sequence[Point]) -> None:
        """See VectorIndex."""
        await (await self._open()).upsert(points)

    async def search(self, query: Query) -> list[Match]:
        """See VectorIndex."""
        return await (await self._open()).search(query)

    async def rank(self, queries: Sequence[Query]) -> list[dict[str, float]]:
        """See VectorIndex."""
        return await (await self._open()).rank(queries)

    async def fingerprints(self, ids: Sequence[str]) -> dict[str, str | None]:
        """See VectorIndex."""
        return await (await self._open()).fingerprints(ids)

    async def entries(self, ids: Sequence[str]) -> list[Entry]:
        """See VectorIndex."""
        return await (await self._open()).entries(ids)

    async def ids(self, *, after: str | None = None, limit: int = 500, scope: Scope | None = None) -> list[str]:
        """See VectorIndex."""
        return await (await self._open()).ids(after=after, limit=limit, scope=scope)

    async def users(self) -> list[str]:
        """See VectorIndex."""
        return await (await self._open()).users()

    async def threads(self, user_id: str) -> list[str]:
        """See VectorIndex."""
        return await (await self._open()).threads(user_id)

    async def count(self, *, user_id: str | None = None, thread_id: str | None = None) -> int:
        """See VectorIndex."""
        return await (await self._open()).count(user_id=user_id, thread_id=thread_id)

    async def remove(self, *, user_id: str, ids: Sequence[str]) -> None:
        """See VectorIndex."""
        await (await self._open()).remove(user_id=user_id, ids=ids)

    async def delete(self, scope: Scope) -> int:
        """See VectorIndex."""
        return await (await self._open()).delete(scope)

    @asynccontextmanager
    async def rebuilding(self) -> AsyncGenerator[Successor]:
        """See VectorIndex."""
        async with (await self._open()).rebuilding() as successor:
            yield successor

    async def other_collections(self) -> list[str]:
        """See VectorIndex."""
        return await (await self._open()).other_collections()

    async def erase(self, scope: Scope) -> int:
        """See VectorIndex."""
        return await (await self._open()).erase(scope)

    async def remaining(self, scope: Scope) -> int:
        """See VectorIndex."""
        return await (await self._open()).remaining(scope)

    async def rewrite(self) -> None:
        """See VectorIndex."""
        await (await self._open()).rewrite()

    async def vacuum(self, seconds: float) -> bool:
        """See VectorIndex."""
        return await (await self._open()).vacuum(seconds)

    async def ping(self) -> None:
        """See VectorIndex."""
        await (await self._open()).ping()
