"""The alias that leads to the collection that serves, as several processes see it."""

import pytest
from qdrant_client import AsyncQdrantClient, models

from recollect.memory.values.errors import IndexUnavailable
from tests.contracts.index.points import point
from tests.contracts.index.scripted_qdrant import NAME
from tests.contracts.index.test_qdrant_outages import opened


async def test_a_collection_from_before_there_were_aliases_serves_on() -> None:
    client = AsyncQdrantClient(":memory:")
    async with opened(client) as index:
        await index.upsert([point(1)])
        await client.update_collection_aliases(
            [models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=f"{NAME}.current"))]
        )
    async with opened(client) as index:
        assert await index.count() == 1
        async with index.rebuilding() as successor:
            await successor.points.upsert([point(seed) for seed in range(3)])
            await successor.promote()
        assert await index.count() == 3
    assert [item.name for item in (await client.get_collections()).collections] == [f"{NAME}.r2"]
    await client.close()


async def test_another_process_follows_a_promotion() -> None:
    client = AsyncQdrantClient(":memory:")
    async with opened(client) as index, opened(client) as other:
        await other.upsert([point(1)])
        async with index.rebuilding() as successor:
            await successor.points.upsert([point(seed) for seed in range(3)])
            await successor.promote()
        assert await other.count() == 3
        await other.upsert([point(7)])
        assert await index.count() == 4
    await client.close()


async def test_a_rebuild_that_another_process_overtook_promotes_nothing_of_its_own() -> None:
    client = AsyncQdrantClient(":memory:")
    async with opened(client) as index, opened(client) as other:
        await index.upsert([point(1)])
        async with index.rebuilding() as late:
            await late.points.upsert([point(2)])
            for _ in range(2):
                async with other.rebuilding() as successor:
                    await successor.points.upsert([point(seed) for seed in range(5)])
                    await successor.promote()
            with pytest.raises(IndexUnavailable, match="Another process"):
                await late.promote()
        assert await index.count() == 5
    await client.close()
