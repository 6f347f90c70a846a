"""The embedded index's generations on disk: the old one goes, the pointer names the new one, whatever is cut off."""

import asyncio
import shutil
from pathlib import Path

import pytest

from recollect.memory.stores.edge.collection import EdgeCollection
from recollect.memory.values.errors import IndexUnavailable
from tests.contracts.index.points import point
from tests.contracts.index.test_edge import NAME, filled, opened


def folders(place: Path) -> list[str]:
    return sorted(item.name for item in place.iterdir() if item.is_dir())


async def promoted(folder: Path, *seeds: int) -> None:
    async with opened(folder) as index, index.rebuilding() as successor:
        await successor.points.upsert([point(seed) for seed in seeds])
        await successor.promote()


async def test_the_old_generation_leaves_the_disk(tmp_path: Path) -> None:
    await filled(tmp_path)
    await promoted(tmp_path, 1, 2)
    assert folders(tmp_path) == [f"{NAME}.r2"]
    assert (tmp_path / f"{NAME}.current").read_text() == f"{NAME}.r2"
    await promoted(tmp_path, 3)
    assert folders(tmp_path) == [f"{NAME}.r3"]
    async with opened(tmp_path) as index:
        assert await index.count() == 1


async def test_an_old_generation_that_a_kill_left_is_removed_at_the_next_start(tmp_path: Path) -> None:
    await promoted(tmp_path, 1)
    shutil.copytree(tmp_path / f"{NAME}.r2", tmp_path / NAME)
    async with opened(tmp_path) as index:
        assert await index.count() == 1
    assert folders(tmp_path) == [f"{NAME}.r2"]


async def test_a_pointer_that_cannot_be_read_leaves_the_first_generation_serving(tmp_path: Path) -> None:
    await filled(tmp_path)
    (tmp_path / f"{NAME}.current").write_bytes(b"\xff\x00 garbage")
    async with opened(tmp_path) as index:
        assert await index.count() == 20


async def test_a_pointer_to_what_is_gone_serves_an_empty_index(tmp_path: Path) -> None:
    await promoted(tmp_path, 1)
    shutil.rmtree(tmp_path / f"{NAME}.r2")
    async with opened(tmp_path) as index:
        assert await index.count() == 0


async def test_a_successor_that_cannot_be_promoted_leaves_the_old_one_serving(tmp_path: Path) -> None:
    await filled(tmp_path)
    async with opened(tmp_path) as index:
        (tmp_path / f"{NAME}.current").mkdir()
        async with index.rebuilding() as successor:
            await successor.points.upsert([point(1)])
            with pytest.raises(IndexUnavailable):
                await successor.promote()
        assert await index.count() == 20
        (tmp_path / f"{NAME}.current").rmdir()
        async with index.rebuilding() as successor:
            assert await successor.points.count() == 1
            await successor.promote()
        assert await index.count() == 1


async def test_a_write_that_the_successor_misses_costs_the_rebuild_and_not_the_write(tmp_path: Path) -> None:
    await filled(tmp_path)
    async with opened(tmp_path) as index:
        async with index.rebuilding() as successor:
            assert isinstance(successor.points, EdgeCollection)
            await successor.points.close()
            await index.upsert([point(1, "bob")])
            with pytest.raises(IndexUnavailable, match="reindex again"):
                await successor.promote()
        assert await index.count() == 21


async def test_a_promotion_that_is_cancelled_is_whole_or_not_at_all(tmp_path: Path) -> None:
    for pauses in range(12):
        place = tmp_path / str(pauses)
        async with opened(place) as index:
            await index.upsert([point(1)])
            async with index.rebuilding() as successor:
                await successor.points.upsert([point(seed) for seed in range(3)])
                promoting = asyncio.create_task(successor.promote())
                for _ in range(pauses):
                    await asyncio.sleep(0.001)
                promoting.cancel()
                await asyncio.gather(promoting, return_exceptions=True)
            serving = await index.count()
            await index.upsert([point(9)])
        async with opened(place) as index:
            assert serving in {1, 3}
            assert await index.count() == serving + 1
