"""A vector index that opens at its first use: the embedder that knows the dimension may be down at the start."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack

from typing_extensions import override

from recollect.memory.ports.embedder import Embedder
from recollect.memory.ports.forwarding_index import ForwardingIndex
from recollect.memory.ports.vector_index import VectorIndex
from recollect.memory.values.errors import IndexUnavailable, ModelUnavailable

Opener = Callable[[int], AbstractAsyncContextManager[VectorIndex]]
"""Opens the index for vectors of so many dimensions. Called in a thread: it may import what it opens."""


class LazyIndex(ForwardingIndex):
    """Forwards to an index that is opened by the first call.

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

    @override
    async def _opened(self) -> VectorIndex:
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
