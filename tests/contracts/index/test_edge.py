import asyncio
import logging
import os
import signal
import subprocess
import sys
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import qdrant_edge as edge
from typing_extensions import override

from recollect.memory.background.short_calls import SHORT_CALLS
from recollect.memory.ports.vector_index import Point, Query, VectorIndex, collection_name
from recollect.memory.stores.edge.index import open_edge_index
from recollect.memory.stores.edge.shard import OWNER, is_payload_indexed, open_shard
from recollect.memory.stores.points import CREATED, THREAD, TURN, USER
from recollect.memory.values.errors import IndexUnavailable
from recollect.memory.values.period import Period
from recollect.memory.values.scope import Scope
from tests.contracts.index.erasing import GivenUpContract
from tests.contracts.index.points import DIMENSION, MODEL, WHEN, point, vector
from tests.contracts.index.suite import IndexContract
from tests.contracts.random_filters import KEYS

NAME = collection_name("edge", model=MODEL, dimension=DIMENSION)


def opened(folder: Path, dimension: int = DIMENSION) -> AbstractAsyncContextManager[VectorIndex]:
    return open_edge_index(folder, base="edge", model=MODEL, dimension=dimension)


class TestEdgeIndex(IndexContract, GivenUpContract):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Path:
        return tmp_path / "index"

    @override
    def opened(
        self, place: Path, *, model: str = MODEL, dimension: int = DIMENSION
    ) -> AbstractAsyncContextManager[VectorIndex]:
        return open_edge_index(place, base=self.base, model=model, dimension=dimension, keys=KEYS)


class TestEdgeIndexOnLoop(TestEdgeIndex):
    @pytest.fixture(autouse=True)
    def on_loop(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(SHORT_CALLS, "on_loop", True)


async def test_an_index_of_a_payload_field_that_an_older_version_lacked_is_made_at_opening(tmp_path: Path) -> None:
    async with opened(tmp_path) as index:
        await index.upsert([point(1)])
    shard = open_shard(tmp_path / NAME, dimension=DIMENSION)
    shard.update(edge.UpdateOperation.delete_field_index(CREATED))
    assert CREATED not in shard.info().payload_schema
    shard.close()
    async with opened(tmp_path) as index:
        query = Query(Scope("ada"), vector(1), limit=9, period=Period(WHEN, WHEN + timedelta(seconds=1)))
        assert len(await index.search(query)) == 1
    shard = open_shard(tmp_path / NAME, dimension=DIMENSION)
    assert {CREATED, OWNER, USER, THREAD, TURN} <= set(shard.info().payload_schema)
    shard.close()


async def test_an_empty_index_makes_its_payloads_indexes_before_its_first_point(tmp_path: Path) -> None:
    async with opened(tmp_path) as index:
        assert await index.users() == []
        assert await index.threads("ada") == []
        assert await index.search(Query(Scope("ada"), vector(1), limit=9)) == []
    shard = open_shard(tmp_path / NAME, dimension=DIMENSION)
    assert not is_payload_indexed(shard)
    shard.close()
    async with opened(tmp_path) as index:
        await index.upsert([point(1)])
        assert await index.users() == ["ada"]
    shard = open_shard(tmp_path / NAME, dimension=DIMENSION)
    assert is_payload_indexed(shard)
    shard.close()


def set_aside(folder: Path) -> list[Path]:
    return list(folder.glob("*.damaged-*"))


async def test_what_was_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    acknowledged: list[str] = []
    for life in range(4):
        # The later lives are killed after a flush (every 1,000 points), so that both kinds of file are read back.
        acknowledged += store_until_killed(tmp_path, start=life * 100_000, lines=40 if life < 2 else 700)
        async with opened(tmp_path) as index:
            assert set(await index.fingerprints(acknowledged[-500:])) == set(acknowledged[-500:])
            stored = await all_ids(index)
            assert set(acknowledged) <= set(stored)
            assert len(stored) <= len(acknowledged) + 2 * (life + 1)  # one pair may be stored but not yet told
            first = await index.search(Query(Scope("ada"), vector(0), limit=1))
            assert first[0].entry == point(0, turn_id="turn-0").entry
    assert not set_aside(tmp_path)


def store_until_killed(folder: Path, *, start: int, lines: int) -> list[str]:
    command = [sys.executable, "-m", "tests.contracts.index.edge_child", str(folder), str(start)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout
    told = [child.stdout.readline() for _ in range(lines)]
    os.kill(child.pid, signal.SIGKILL)
    told += child.stdout.read().splitlines(keepends=True)
    child.stdout.close()
    assert child.wait() == -signal.SIGKILL
    return [one for line in told if line.endswith("\n") for one in line.split()]


async def all_ids(index: VectorIndex) -> list[str]:
    seen: list[str] = []
    while page := await index.ids(after=seen[-1] if seen else None):
        seen += page
    return seen


async def filled(folder: Path) -> None:
    async with opened(folder) as index:
        await index.upsert([point(seed) for seed in range(20)])


@pytest.mark.parametrize(
    "pattern",
    [
        "edge_config.json",
        "segments/*/segment.json",
        "segments/*/version.info",
        "segments/*/payload_storage/tracker.dat",
        "segments/*/payload_index/config.json",
        "segments/*/vector_storage-dense/vectors/status.dat",
        "segments/*/vector_storage-dense/vectors/chunk_0.mmap",
        "wal/open-1",
    ],
)
@pytest.mark.parametrize("harm", [b"", b"garbage" * 999], ids=["emptied", "garbled"])
async def test_a_damaged_collection_is_moved_aside_or_read(
    tmp_path: Path, pattern: str, harm: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    await filled(tmp_path)
    (file,) = (tmp_path / NAME).glob(pattern)
    whole = file.read_bytes()
    file.write_bytes(harm + whole[len(harm) :] if harm else b"")
    with caplog.at_level(logging.WARNING, "recollect.memory.stores.edge.shard"):
        async with opened(tmp_path) as index:
            found = await index.search(Query(Scope("ada"), vector(1), limit=20))
            aside = set_aside(tmp_path)
            if aside:
                assert found == []
                assert await index.count() == 0
            assert await index.other_collections() == []
            await index.upsert([point(seed, "bob") for seed in range(3)])
            assert len(await index.search(Query(Scope("bob"), vector(1), limit=9))) == 3
    told = [record for record in caplog.records if getattr(record, "action", None) == "index_damaged"]
    assert len(told) == len(aside) <= 1
    if not harm:
        assert aside, "an emptied file is always noticed"
    async with opened(tmp_path) as index:
        assert await index.count(user_id="bob") == 3


async def test_a_start_that_was_killed_while_creating_is_taken_up(tmp_path: Path) -> None:
    (tmp_path / NAME / "segments").mkdir(parents=True)
    async with opened(tmp_path) as index:
        await index.upsert([point(1)])
        assert await index.count() == 1


async def test_another_layout_under_the_same_name_is_moved_aside(tmp_path: Path) -> None:
    async with opened(tmp_path, 4):
        pass
    other = collection_name("edge", model=MODEL, dimension=4)
    (tmp_path / other).rename(tmp_path / NAME)
    async with opened(tmp_path) as index:
        await index.upsert([point(1)])
        assert await index.count() == 1
    (aside,) = set_aside(tmp_path)
    assert (aside / "edge_config.json").exists()


async def test_an_open_collection_is_not_opened_again_and_not_taken_for_damaged(tmp_path: Path) -> None:
    async with opened(tmp_path) as index:
        await index.upsert([point(1)])
        with pytest.raises(IndexUnavailable):
            async with opened(tmp_path):
                pass
        assert await index.count() == 1
    assert not set_aside(tmp_path)


async def test_a_folder_that_cannot_be_made_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(IndexUnavailable):
        async with opened(tmp_path / "file"):
            pass


async def test_closing_waits_for_a_write_under_way(tmp_path: Path) -> None:
    async with opened(tmp_path) as index:
        writing = asyncio.create_task(index.upsert([point(seed) for seed in range(64)]))
        await asyncio.sleep(0)  # the task hands its batch to the writer
    await writing
    async with opened(tmp_path) as index:
        assert await index.count() == 64


async def test_a_cancelled_caller_leaves_the_index_serving(tmp_path: Path) -> None:
    async with opened(tmp_path) as index:
        writing = asyncio.create_task(index.upsert([point(seed) for seed in range(1_000)]))
        await asyncio.sleep(0)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        await index.upsert([point(1, "bob")])
        assert await index.count(user_id="bob") == 1


async def test_searches_answer_while_a_long_upsert_runs(tmp_path: Path) -> None:
    async with opened(tmp_path, 256) as index:
        await index.upsert([point_of(0)])
        writing = asyncio.create_task(index.upsert([point_of(seed, "bob") for seed in range(2_000)]))
        answered = 0
        while not writing.done():
            assert len(await index.search(Query(Scope("ada"), vector(0, 256), limit=5))) == 1
            answered += 1
        await writing
        assert answered > 5


def point_of(seed: int, user_id: str = "ada") -> Point:
    return replace(point(seed, user_id), dense=vector(seed, 256))
