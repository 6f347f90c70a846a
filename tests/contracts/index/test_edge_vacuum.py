"""Deleted text leaves the embedded index's files within a bounded time, however it was deleted, once in that time."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from recollect.memory.index.vacuum import IndexVacuum
from recollect.memory.ports.vector_index import VectorIndex
from recollect.memory.stores.edge.index import open_edge_index
from recollect.memory.values.scope import Scope
from tests.contracts.index.points import point
from tests.contracts.index.test_edge import opened
from tests.contracts.index.test_edge_erasing import names, texts

SECRET = replace(point(1), fingerprint="1").entry
SECONDS = 0.4


async def fill(index: VectorIndex) -> None:
    hidden = replace(point(1, thread_id="t2"), entry=replace(SECRET, content="adasecret said", thread_id="t2"))
    await index.upsert([hidden, *(point(seed) for seed in range(2, 40))])


REMOVALS: dict[str, Callable[[VectorIndex], Awaitable[object]]] = {
    "remove": lambda index: index.remove(user_id="ada", ids=[SECRET.id]),
    "delete": lambda index: index.delete(Scope("ada", "t2")),
    "erase": lambda index: index.erase(Scope("ada", "t2")),
    "replace": lambda index: index.upsert([replace(point(1), entry=SECRET, fingerprint="2")]),
}


async def until_clean(folder: Path) -> None:
    async with asyncio.timeout(20):
        while any(name.endswith(".deleted") for name in names(folder)):  # noqa: ASYNC110 - a task's doing
            await asyncio.sleep(0.01)
    assert texts(folder) == []


@pytest.mark.parametrize("how", REMOVALS)
async def test_deleted_text_leaves_the_files_in_time(tmp_path: Path, how: str) -> None:
    async with opened(tmp_path) as index:
        await fill(index)
        assert not await index.vacuum(0.001), "nothing was deleted"
        await REMOVALS[how](index)
        assert texts(tmp_path)
        assert not await index.vacuum(3_600)
        vacuum = IndexVacuum(index, seconds=SECONDS)
        vacuum.start()
        await until_clean(tmp_path)
        await vacuum.close()
        assert await index.count() == (39 if how == "replace" else 38)
        assert not await index.vacuum(0.001), "nothing is left to take away"


async def test_the_files_are_written_anew_at_most_once_in_the_time(tmp_path: Path) -> None:
    async with opened(tmp_path) as index:
        await fill(index)
        await index.delete(Scope("ada", "t2"))
        assert not await index.vacuum(60)
        assert await index.vacuum(0.0001)
        generation = names(tmp_path)
        await index.remove(user_id="ada", ids=[point(2, turn_id="two").entry.id])
        for one in await index.ids(limit=5):
            await index.remove(user_id="ada", ids=[one])
        assert not await index.vacuum(60)
        assert [name for name in names(tmp_path) if not name.endswith(".deleted")] == generation
        assert await index.vacuum(0.0001)
        assert await index.count() == 33


async def test_what_an_earlier_process_deleted_is_due_at_the_next_start(tmp_path: Path) -> None:
    async with opened(tmp_path) as index:
        await fill(index)
        await index.delete(Scope("ada", "t2"))
    assert texts(tmp_path)
    async with opened(tmp_path) as index:
        vacuum = IndexVacuum(index, seconds=SECONDS)
        vacuum.start()
        await until_clean(tmp_path)
        await vacuum.close()
        assert await index.count() == 38


async def test_a_rebuild_under_way_is_not_given_up(tmp_path: Path) -> None:
    async with opened(tmp_path) as index:
        await fill(index)
        await index.delete(Scope("ada", "t2"))
        async with index.rebuilding() as successor:
            assert not await index.vacuum(0.0001)
            await successor.points.upsert([point(3)])
            await successor.promote()
        assert texts(tmp_path) == []
        assert not await index.vacuum(0.0001)
        assert await index.count() == 1


async def test_searches_and_writes_go_on_meanwhile(tmp_path: Path) -> None:
    async with opened(tmp_path) as index:
        await fill(index)
        await index.delete(Scope("ada", "t2"))
        done, *_ = await asyncio.gather(
            index.vacuum(0.0001), *(index.upsert([point(seed, "bob")]) for seed in range(20)), index.count()
        )
        assert done
        assert await index.count(user_id="bob") == 20


async def test_other_embedders_collections_lose_it_too(tmp_path: Path) -> None:
    async with open_edge_index(tmp_path, base="edge", model="other", dimension=4) as other:
        kept = point(2)
        await other.upsert(
            [
                replace(kept, dense=kept.dense[:4]),
                replace(point(1), entry=replace(SECRET, content="adasecret said"), dense=kept.dense[:4]),
            ]
        )
    async with opened(tmp_path) as index:
        await fill(index)
        await index.remove(user_id="ada", ids=[SECRET.id])
        vacuum = IndexVacuum(index, seconds=SECONDS)
        vacuum.start()
        await until_clean(tmp_path)
        await vacuum.close()
    async with open_edge_index(tmp_path, base="edge", model="other", dimension=4) as other:
        assert await other.ids() == [kept.entry.id]
