from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import pytest
from qdrant_client import AsyncQdrantClient
from typing_extensions import override

from recollect.memory.ports.vector_index import VectorIndex
from recollect.memory.stores.qdrant.index import open_qdrant_index
from recollect.memory.values.scope import Scope
from tests.contracts.index.points import DIMENSION, MODEL, point
from tests.contracts.index.suite import IndexContract
from tests.contracts.random_filters import KEYS
from tests.fakes.qdrant_server import ServerLikeClient


class TestQdrantIndexInTheClientsMemory(IndexContract):
    @pytest.fixture
    async def place(self) -> AsyncIterator[AsyncQdrantClient]:
        client = ServerLikeClient()
        yield client
        await client.close()

    @override
    def opened(
        self, place: AsyncQdrantClient, *, model: str = MODEL, dimension: int = DIMENSION
    ) -> AbstractAsyncContextManager[VectorIndex]:
        return open_qdrant_index(place, base=self.base, model=model, dimension=dimension, keys=KEYS)


async def test_values_that_no_point_has_any_more_are_not_listed() -> None:
    client = ServerLikeClient()
    async with open_qdrant_index(client, base="facets", model=MODEL, dimension=DIMENSION) as index:
        await index.upsert([point(1), point(2, thread_id="t2"), point(3, "bob", "t3")])
        await index.erase(Scope("ada", "t2"))
        assert await index.threads("ada") == ["t1"]
        await index.erase(Scope("ada"))
        (name,) = [item.name for item in (await client.get_collections()).collections]
        listed = await client.facet(name, "metadata.user_id", exact=True)
        assert {(hit.value, hit.count) for hit in listed.hits} == {("bob", 1), ("ada", 0)}
        assert await index.users() == ["bob"]
        assert await index.threads("ada") == []
    await client.close()
