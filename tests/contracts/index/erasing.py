"""Checks what every vector index must do when a user, or a thread, is erased; a base of `IndexContract`."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from recollect.memory.ports.vector_index import Query, VectorIndex, collection_name
from recollect.memory.values.errors import IndexUnavailable
from recollect.memory.values.scope import Scope
from tests.contracts.index.points import DIMENSION, MODEL, point, vector
from tests.contracts.index.rebuilding import RebuildContract

ADA, T1 = Scope("ada"), Scope("ada", "t1")


class ErasingContract(RebuildContract):
    async def test_users_threads_and_ids_of_a_scope_are_scanned(self, index: VectorIndex) -> None:
        assert await index.users() == []
        assert await index.threads("ada") == []
        points = [point(1), point(2), point(3, thread_id="t2"), point(4, "bob"), point(5, thread_id=None)]
        await index.upsert(points)
        assert sorted(await index.users()) == ["ada", "bob"]
        assert sorted(await index.threads("ada")) == ["t1", "t2"]
        assert await index.ids(scope=T1) == sorted(one.entry.id for one in points[:2])
        first = await index.ids(scope=ADA, limit=3)
        rest = await index.ids(scope=ADA, limit=3, after=first[-1])
        assert [*first, *rest] == sorted(one.entry.id for one in points if one.entry.user_id == "ada")

    async def test_an_erased_user_is_gone_and_everyone_else_is_whole(self, index: VectorIndex) -> None:
        await index.upsert([point(seed, user) for user in ("ada", "bob", "ada2") for seed in range(70)])
        ids = [await index.ids(scope=Scope(user)) for user in ("bob", "ada2")]
        asked = Query(Scope("bob"), vector(7), limit=70, with_vectors=True)
        before = await index.search(asked)
        assert await index.remaining(ADA) == 70
        assert await index.erase(ADA) == 70
        assert await index.remaining(ADA) == await index.count(user_id="ada") == 0
        assert [await index.ids(scope=Scope(user)) for user in ("bob", "ada2")] == ids
        after = await index.search(asked)
        assert [match.entry for match in after] == [match.entry for match in before]
        for now, then in zip(after, before, strict=True):
            assert now.dense == pytest.approx(then.dense, abs=1e-6)
        assert await index.erase(ADA) == 0
        await index.upsert([point(1)])
        assert await index.count(user_id="ada") == 1

    async def test_an_erased_thread_is_gone_alone(self, index: VectorIndex) -> None:
        await index.upsert([point(1), point(2, thread_id="t2"), point(3, "bob"), point(4, thread_id=None)])
        assert await index.remaining(T1) == 1
        assert await index.erase(T1) == 1
        assert await index.remaining(T1) == 0
        assert (await index.remaining(ADA), await index.count()) == (2, 3)

    async def test_other_embedders_collections_are_erased_too(self, place: Any) -> None:
        async with self.opened(place, model="other", dimension=4) as other:
            points = [point(seed, user) for seed, user in ((1, "ada"), (2, "bob"), (3, "ada"))]
            await other.upsert([replace(one, dense=one.dense[:4]) for one in points])
        async with self.opened(place) as index:
            await index.upsert([point(1)])
            assert await index.remaining(ADA) == 3
            assert await index.erase(T1) == 3
            await index.upsert([point(1)])
            assert await index.erase(ADA) == 1
            assert await index.remaining(ADA) == 0
            assert await index.remaining(Scope("bob")) == 1
        async with self.opened(place, model="other", dimension=4) as other:
            assert await other.users() == ["bob"]

    async def test_another_embedders_collection_is_dropped_with_all_its_generations(self, place: Any) -> None:
        async with self.opened(place, model="other", dimension=4) as other:
            await other.upsert([replace(point(1), dense=point(1).dense[:4])])
            async with other.rebuilding() as successor:
                await successor.points.upsert([replace(point(2), dense=point(2).dense[:4])])
                await successor.promote()
            async with other.rebuilding() as successor:
                await successor.points.upsert([replace(point(3), dense=point(3).dense[:4])])
        async with self.opened(place, model="another", dimension=4) as another:
            await another.upsert([replace(point(4), dense=point(4).dense[:4])])
        async with self.opened(place) as index:
            await index.upsert([point(1)])
            dropped, kept = sorted(await index.other_collections(), reverse=True)
            await index.drop_other(dropped)
            await index.drop_other(dropped)
            await index.drop_other(collection_name(self.base, model=MODEL, dimension=DIMENSION))
            assert await index.other_collections() == [kept]
            assert await index.count() == 1
            assert await index.remaining(ADA) == 2

    async def test_what_a_killed_rebuild_left_holds_nobody_who_was_erased(self, index: VectorIndex) -> None:
        await index.upsert([point(1), point(2, "bob")])
        async with index.rebuilding() as successor:
            await successor.points.upsert([point(1), point(2, "bob")])
        assert await index.erase(ADA) >= 1
        assert await index.remaining(ADA) == 0
        async with index.rebuilding() as successor:
            assert await successor.points.count(user_id="ada") == 0

    async def test_searches_and_writes_go_on_meanwhile(self, index: VectorIndex) -> None:
        await index.upsert([point(seed, user) for user in ("ada", "bob") for seed in range(200)])
        erasing = asyncio.create_task(index.erase(ADA))
        written = 0
        while not erasing.done():
            assert len(await index.search(Query(Scope("bob"), vector(1), limit=9))) == 9
            await index.upsert([point(written, "cleo")])
            written += 1
            await asyncio.sleep(0)
        assert await erasing == 200
        assert written
        counts = [await index.count(user_id=user) for user in ("ada", "bob", "cleo")]
        assert counts == [0, 200, written]

    async def test_two_who_are_erased_at_once_are_both_gone(self, index: VectorIndex) -> None:
        await index.upsert([point(seed, user) for user in ("ada", "bob", "cleo") for seed in range(5)])
        assert await asyncio.gather(index.erase(ADA), index.erase(Scope("bob")), index.rewrite()) == [5, 5, None]
        assert await index.users() == ["cleo"]
        assert await index.count() == 5


class GivenUpContract(RebuildContract):
    """Of an index whose files are this machine's own."""

    async def test_an_erasure_gives_up_a_rebuild_under_way(self, index: VectorIndex) -> None:
        await index.upsert([point(1), point(2, "bob")])
        async with index.rebuilding() as successor:
            await successor.points.upsert([point(1)])
            assert await index.erase(ADA) == 1
            with pytest.raises(IndexUnavailable):
                await successor.points.upsert([point(1)])
            await index.upsert([point(3, "bob")])
            with pytest.raises(IndexUnavailable):
                await successor.promote()
        assert await index.remaining(ADA) == 0
        assert await index.count() == 2
        async with index.rebuilding() as successor:
            await successor.points.upsert([point(2, "bob")])
            await successor.promote()
        assert await index.count() == 1
