from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import pytest
from qdrant_client import AsyncQdrantClient

from memory.stores.qdrant_index import open_qdrant_index
from memory.vector_index import VectorIndex
from tests.contracts.index.points import DIMENSION, MODEL
from tests.contracts.index.suite import IndexContract


class TestQdrantIndexInTheClientsMemory(IndexContract):
    @pytest.fixture
    async def place(self) -> AsyncIterator[AsyncQdrantClient]:
        client = AsyncQdrantClient(":memory:")
        yield client
        await client.close()

    def opened(
        self, place: AsyncQdrantClient, *, model: str = MODEL, dimension: int = DIMENSION
    ) -> AbstractAsyncContextManager[VectorIndex]:
        return open_qdrant_index(place, base=self.base, model=model, dimension=dimension)
