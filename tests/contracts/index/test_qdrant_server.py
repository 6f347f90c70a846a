from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from uuid import uuid4

import pytest
from qdrant_client import AsyncQdrantClient
from typing_extensions import override

from recollect.memory.ports.vector_index import VectorIndex
from recollect.memory.stores.qdrant.collection import QdrantServer
from recollect.memory.stores.qdrant.index import open_qdrant_index
from tests.contracts.index.points import DIMENSION, MODEL
from tests.contracts.index.suite import IndexContract
from tests.contracts.random_filters import KEYS


class TestQdrantIndexOverGrpc(IndexContract):
    prefer_grpc = True

    @pytest.fixture
    async def place(self, qdrant_url: str) -> AsyncIterator[QdrantServer]:
        self.base = f"contract-{uuid4().hex}"
        yield QdrantServer(qdrant_url, prefer_grpc=self.prefer_grpc)
        client = AsyncQdrantClient(url=qdrant_url, check_compatibility=False)
        for item in (await client.get_collections()).collections:
            if item.name.startswith(self.base):
                await client.delete_collection(item.name)
        await client.close()

    @override
    def opened(
        self, place: QdrantServer, *, model: str = MODEL, dimension: int = DIMENSION
    ) -> AbstractAsyncContextManager[VectorIndex]:
        return open_qdrant_index(place, base=self.base, model=model, dimension=dimension, keys=KEYS)


class TestQdrantIndexOverHttp(TestQdrantIndexOverGrpc):
    prefer_grpc = False
