"""Checks what every vector index must do when it is rebuilt while it serves; a base of `IndexContract`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

import pytest

from recollect.memory.ports.vector_index import Point, Query, VectorIndex, collection_name
from recollect.memory.values.errors import Rebuilding
from recollect.memory.values.scope import Scope
from tests.contracts.index.points import DIMENSION, MODEL, ids_of, point, vector

ADA = Scope("ada")


class RebuildContract:
    base = "contract"

    def opened(
        self, place: Any, *, model: str = MODEL, dimension: int = DIMENSION
    ) -> AbstractAsyncContextManager[VectorIndex]:
        """Open the collection of `model` in `place`, the implementation's own fixture."""
        raise NotImplementedError

    @pytest.fixture
    async def index(self, place: Any) -> AsyncIterator[VectorIndex]:
        async with self.opened(place) as index:
            yield index

    async def test_a_successor_takes_over_from_one_call_to_the_next(self, index: VectorIndex) -> None:
        old, kept = point(1), point(2)
        await index.upsert([old, kept])
        async with index.rebuilding() as successor:
            await successor.points.upsert([kept, point(3, "bob")])
            assert await index.ids() == sorted(ids_of([old, kept]))
            await successor.promote()
            assert await index.count() == 2
            assert [match.entry for match in await index.search(Query(ADA, vector(2), limit=9))] == [kept.entry]
        assert await index.count(user_id="bob") == 1
        await index.upsert([old])
        assert await index.count() == 3

    async def test_what_is_written_meanwhile_is_in_both(self, index: VectorIndex) -> None:
        first, second, third = point(1), point(2), point(3, "bob", "t9")
        await index.upsert([first, third])
        async with index.rebuilding() as successor:
            await successor.points.upsert([first, third])
            await index.upsert([second, Point(replace(first.entry, content="changed"), vector(9))])
            await index.remove(user_id="ada", ids=[second.entry.id])
            assert await index.delete(Scope("bob", "t9")) == 1
            assert await index.ids() == await successor.points.ids() == [first.entry.id]
            await successor.promote()
        assert [entry.content for entry in await index.entries([first.entry.id])] == ["changed"]

    async def test_writes_of_many_keep_their_order_in_both(self, index: VectorIndex) -> None:
        said = point(1).entry
        async with index.rebuilding() as successor:
            writes = [index.upsert([Point(replace(said, content=str(number)), vector(1))]) for number in range(20)]
            await asyncio.gather(*writes, index.remove(user_id="ada", ids=[said.id]), index.upsert([point(2)]))
            assert await index.entries([said.id]) == await successor.points.entries([said.id])
            assert await index.ids() == await successor.points.ids()

    async def test_a_rebuild_that_stops_changes_nothing_and_is_taken_up(self, place: Any) -> None:
        async with self.opened(place) as index:
            await index.upsert([point(1, "bob")])
            async with index.rebuilding() as successor:
                await successor.points.upsert(halfway := [point(seed) for seed in range(5)])
            assert await index.count() == 1
            await index.upsert([point(2, "bob")])  # not in the successor, which nobody fills now
        async with self.opened(place) as index:
            assert await index.count() == 2
            assert await index.other_collections() == []
            async with index.rebuilding() as successor:
                assert await successor.points.ids() == sorted(ids_of(halfway))
                await successor.promote()
        async with self.opened(place) as index:
            assert await index.ids() == sorted(ids_of(halfway))
            async with index.rebuilding() as successor:
                assert await successor.points.count() == 0

    async def test_generations_come_and_go(self, place: Any) -> None:
        for number in range(4):
            async with self.opened(place) as index:
                async with index.rebuilding() as successor:
                    await successor.points.upsert([point(number)])
                    await successor.promote()
                assert await index.count() == 1
        async with self.opened(place) as index, self.opened(place, dimension=4) as other:
            (found,) = await index.search(Query(ADA, vector(3), limit=9))
            assert found.similarity == pytest.approx(1, abs=1e-6)
            assert await other.other_collections() == [collection_name(self.base, model=MODEL, dimension=DIMENSION)]
            assert await other.count() == 0

    async def test_only_one_rebuild_at_a_time(self, index: VectorIndex) -> None:
        async with index.rebuilding():
            with pytest.raises(Rebuilding):
                async with index.rebuilding():
                    pass
        async with index.rebuilding() as successor:
            assert await successor.points.count() == 0

    async def test_searches_never_fail_and_never_see_half_an_index(self, index: VectorIndex) -> None:
        points = [point(seed) for seed in range(200)]
        await index.upsert(points)
        done, seen = asyncio.Event(), list[int]()

        async def look() -> None:
            while not done.is_set():
                seen.append(len(await index.search(Query(ADA, vector(0), limit=300))))
                await asyncio.sleep(0)

        looking = [asyncio.create_task(look()) for _ in range(3)]
        for _ in range(3):
            async with index.rebuilding() as successor:
                for start in range(0, 200, 50):
                    await successor.points.upsert(points[start : start + 50])
                    await asyncio.sleep(0)
                await successor.promote()
        done.set()
        await asyncio.gather(*looking)
        assert len(seen) >= 9
        assert set(seen) == {200}

    async def test_a_write_under_way_when_a_rebuild_begins_is_waited_for(self, index: VectorIndex) -> None:
        writing = asyncio.create_task(index.upsert([point(seed) for seed in range(300)]))
        await asyncio.sleep(0)
        async with index.rebuilding():
            assert await index.count() == 300
        await writing
