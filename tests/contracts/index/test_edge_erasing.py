"""The embedded index's files after an erasure, and after a kill in the middle of one."""

import asyncio
import contextlib
import subprocess
import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from recollect.memory.ports.vector_index import VectorIndex
from recollect.memory.stores.edge.index import open_edge_index
from recollect.memory.stores.edge.open_collections import OpenCollections
from recollect.memory.values.scope import Scope
from tests.contracts.index.points import DIMENSION, MODEL, point
from tests.contracts.index.test_edge import opened

ADA = Scope("adasecret")


def texts(folder: Path, word: bytes = b"adasecret") -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and word in path.read_bytes()]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def fill(index: VectorIndex) -> None:
    await index.upsert([point(seed, "adasecret", content=f"adasecret said {seed}") for seed in range(40)])
    await index.upsert([point(seed, "bob", content=f"bob said {seed}") for seed in range(40)])


async def test_an_erased_user_leaves_no_bytes_while_it_serves_nor_later(tmp_path: Path) -> None:
    async with opened(tmp_path) as index:
        await fill(index)
        assert texts(tmp_path)
        assert await index.erase(ADA) == 40
        assert texts(tmp_path) == []
        assert await index.count() == 40
    assert texts(tmp_path) == []
    async with opened(tmp_path) as index:
        assert await index.count(user_id="bob") == 40
        assert await index.remaining(ADA) == 0


async def test_what_was_deleted_long_before_goes_with_the_user(tmp_path: Path) -> None:
    async with opened(tmp_path) as index:
        await fill(index)
        await index.delete(ADA)
        assert texts(tmp_path)
        before = names(tmp_path)
        assert await index.erase(Scope("nobody")) == 0
        assert names(tmp_path) == before, "for nobody nothing is written anew"
        assert await index.erase(ADA) == 0
        assert texts(tmp_path) == []


async def test_other_embedders_files_and_damaged_ones_hold_nothing_either(tmp_path: Path) -> None:
    async with open_edge_index(tmp_path, base="edge", model="other", dimension=4) as other:
        await other.upsert([replace(one, dense=one.dense[:4]) for one in (point(1, "adasecret"), point(2, "bob"))])
    (name,) = names(tmp_path)
    async with opened(tmp_path) as index:
        await fill(index)
    damaged = tmp_path / f"{name}.damaged-20260101T000000000000Z"
    damaged.mkdir()
    (damaged / "page.dat").write_bytes(b"adasecret said it")
    async with opened(tmp_path) as index:
        assert await index.remaining(ADA) == 42
        assert await index.erase(ADA) == 41
        assert await index.remaining(ADA) == 0
        assert texts(tmp_path) == []
        assert not damaged.exists()
    async with open_edge_index(tmp_path, base="edge", model="other", dimension=4) as other:
        assert await other.users() == ["bob"]


async def test_another_collection_that_cannot_be_read_goes_with_the_user(tmp_path: Path) -> None:
    async with open_edge_index(tmp_path, base="edge", model="other", dimension=4) as other:
        await other.upsert([replace(point(1, "adasecret"), dense=[1.0, 0.0, 0.0, 0.0])])
    (name,) = names(tmp_path)
    (tmp_path / name / "edge_config.json").write_bytes(b"\xff")
    async with opened(tmp_path) as index:
        await fill(index)
        assert await index.erase(ADA) == 40
        assert texts(tmp_path) == []


def erase_and_kill(folder: Path, seconds: float) -> None:
    """Erase in a process of its own, which is killed after so many seconds."""
    command = [sys.executable, "-m", "tests.contracts.index.erasing_child", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"erasing\n"
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(seconds)  # the moment of the kill is what this test varies
        child.kill()


@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.15, 0.3])
async def test_a_killed_erasure_leaves_everyone_else_whole_and_is_done_by_the_next(
    tmp_path: Path, seconds: float
) -> None:
    async with opened(tmp_path) as index:
        await fill(index)
    await asyncio.to_thread(erase_and_kill, tmp_path, seconds)
    async with opened(tmp_path) as index:
        assert await index.count(user_id="bob") == 40
        await index.erase(ADA)
        assert texts(tmp_path) == []
        assert await index.count() == 40


async def test_two_embedders_open_side_by_side_erase_each_its_own_and_a_drop_leaves_no_bytes(tmp_path: Path) -> None:
    beside = OpenCollections()
    async with opened(tmp_path) as index:
        await fill(index)
    async with (
        open_edge_index(tmp_path, base="edge", model=MODEL, dimension=DIMENSION, beside=beside) as index,
        AsyncExitStack() as second,
    ):
        other = await second.enter_async_context(
            open_edge_index(tmp_path, base="edge", model="other", dimension=DIMENSION, beside=beside)
        )
        await fill(other)
        await index.remove(user_id="bob", ids=(await index.ids(scope=Scope("bob")))[:1])
        assert (await index.erase(ADA), await other.erase(ADA)) == (40, 40)
        assert texts(tmp_path) == []
        (name,) = await index.other_collections()
        await index.drop_other(name)
        assert await other.count() == 40  # it is open
        await second.aclose()
        await index.drop_other(name)
        assert [found for found in names(tmp_path) if found.startswith(name)] == []
        assert await index.count() == 39
