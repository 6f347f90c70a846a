"""The index is rebuilt from the documents while it serves, and after a kill."""

import asyncio
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from recollect.memory.index.index_outbox import IndexOutbox
from recollect.memory.index.indexing import IndexStep, make_points
from recollect.memory.index.reindexing import Reindexed, Reindexer, reindex
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import Query, VectorIndex, episode
from recollect.memory.values.errors import ModelUnavailable, Rebuilding
from recollect.memory.values.turn import Message
from tests.contracts.store.samples import asked
from tests.domain.support.indexed import (
    CountingEmbedder,
    all_ids,
    archive,
    called_for_ids,
    finish_all,
    learn,
    open_documents,
    open_index,
    point_of,
    scope,
    tell,
)
from tests.domain.support.updating import eventually


async def test_everything_is_rebuilt_and_what_is_wrong_is_gone(store: Store, index: VectorIndex) -> None:
    messages, embedder = await tell(store, index, 20), CountingEmbedder()
    fact, record = await learn(store), await archive(store)
    await IndexOutbox(store, index, embedder).sync("ada")
    (false,) = await make_points([replace(episode(messages[0]), content="Something else.")], embedder)
    await index.upsert([false])
    await index.remove(user_id="ada", ids=[messages[1].id, record.point_id])
    await IndexStep(index, embedder, store.timeline).add([replace(asked("gone"), user_id="bob")])

    assert await reindex(store, index, embedder, dry_run=True) == Reindexed(42, 42, 0, 1, dry_run=True)
    assert len(await all_ids(index)) == 41

    progress = list[tuple[int, int]]()
    report = await reindex(store, index, embedder, progress=lambda done, total: progress.append((done, total)))
    assert report == Reindexed(42, 42, 0, 1)
    assert await all_ids(index) == await called_for_ids(store)
    assert point_of(fact) in await all_ids(index)
    assert {entry.content for entry in await index.entries([messages[0].id])} == {messages[0].content}
    assert progress == [(40, 42), (41, 42), (42, 42)]


async def test_a_user_is_rebuilt_in_place(store: Store, index: VectorIndex) -> None:
    ours, theirs = await tell(store, index, 3), await tell(store, index, 3, user_id="bob")
    embedder = CountingEmbedder()
    await index.remove(user_id="ada", ids=[ours[0].id])
    await index.remove(user_id="bob", ids=[theirs[0].id])
    await IndexStep(index, embedder, store.timeline).add([asked("gone"), replace(asked("gone"), user_id="bob")])
    expected = Reindexed(6, 6, 0, 1, user_id="ada")
    assert await reindex(store, index, embedder, user_id="ada", dry_run=True) == replace(expected, dry_run=True)
    assert await reindex(store, index, embedder, user_id="ada") == expected
    assert await index.count(user_id="ada") == 6
    assert await index.count(user_id="bob") == 6  # one missing, one orphaned, as before


async def test_nothing_at_all_is_rebuilt_too(store: Store, index: VectorIndex) -> None:
    assert await reindex(store, index, CountingEmbedder()) == Reindexed(0, 0, 0, 0)
    assert await all_ids(index) == []


async def test_an_outage_leaves_the_old_index_and_the_next_rebuild_goes_on(store: Store, index: VectorIndex) -> None:
    await tell(store, index, 100)
    embedder = CountingEmbedder(fails_after=64)
    with pytest.raises(ModelUnavailable):
        await reindex(store, index, embedder)
    assert await index.count() == 200
    embedded = len(embedder.texts)
    assert await reindex(store, index, CountingEmbedder()) == Reindexed(200, 200 - embedded, embedded, 0)
    assert await all_ids(index) == await called_for_ids(store)


async def test_facts_that_change_meanwhile_are_right_in_the_end(store: Store, index: VectorIndex) -> None:
    await tell(store, index, 30)
    embedder, slow = CountingEmbedder(), CountingEmbedder()
    points = IndexOutbox(store, index, embedder)
    fact, gone = await learn(store), await learn(store, "f2", key="k2")
    await points.sync("ada")
    slow.gate.clear()
    rebuilding = asyncio.create_task(reindex(store, index, slow))
    await eventually(lambda: slow.waiting == 1)
    assert await store.facts.replace(fact.revised(at=fact.created_at, statement="Ada is Eve."), revision=1)
    assert await store.facts.remove(user_id="ada", fact_ids=[gone.id]) == 1
    await index.remove(user_id="ada", ids=[point_of(gone)])
    await learn(store, "f3", key="k3")
    await points.sync("ada")
    slow.gate.set()
    await rebuilding
    assert await all_ids(index) == await called_for_ids(store)
    assert [entry.content for entry in await index.entries([point_of(fact)])] == ["Ada is Eve."]


async def test_what_is_owed_is_followed_first(store: Store, index: VectorIndex) -> None:
    fact = await learn(store)
    await reindex(store, index, CountingEmbedder())
    assert await all_ids(index) == [point_of(fact)] == await called_for_ids(store)


async def test_searches_and_writes_go_on_while_thousands_are_rebuilt(store: Store, index: VectorIndex) -> None:
    messages = await tell(store, index, 1_500)
    query = Query(scope("t1"), await CountingEmbedder().embed_query("Hello."), limit=1_000)
    hits, told = list[int](), 0
    rebuilding = asyncio.create_task(reindex(store, index, CountingEmbedder()))
    while not rebuilding.done():
        hits.append(len(await index.search(query)))
        await IndexStep(index, CountingEmbedder(), store.timeline).add(await finish_all_more(store, told))
        told += 1
    report = await rebuilding
    assert min(hits) == 1_000
    assert len(hits) > 20
    assert report.points >= len(messages)
    assert await all_ids(index) == await called_for_ids(store)


async def finish_all_more(store: Store, number: int) -> list[Message]:
    return await finish_all(store, 1, thread_id=f"later{number}", user_id=f"user{number}")


async def test_a_killed_rebuild_is_taken_up(tmp_path: Path) -> None:
    async with open_documents(tmp_path) as store, open_index(tmp_path) as index:
        await tell(store, index, 400)
    for _ in range(3):
        kill_on_the_way(tmp_path)
        async with open_documents(tmp_path) as store, open_index(tmp_path) as index:
            assert await index.count() == 800
    async with open_documents(tmp_path) as store, open_index(tmp_path) as index:
        report = await reindex(store, index, CountingEmbedder())
        assert report.points == 800
        assert report.reused >= 3 * 64
        assert report.embedded == 800 - report.reused
        assert await all_ids(index) == await called_for_ids(store)
        assert len(list((tmp_path / "index").glob("*.r*"))) == 1


def kill_on_the_way(folder: Path) -> None:
    """Start a rebuild and kill it after its second batch."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.domain.support.reindex_child", str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout
    told = [child.stdout.readline() for _ in range(2)]
    os.kill(child.pid, signal.SIGKILL)
    child.stdout.close()
    assert child.wait() == -signal.SIGKILL
    assert all(told)


async def test_one_rebuild_at_a_time_which_outlives_who_asked(store: Store, index: VectorIndex) -> None:
    await tell(store, index, 10)
    embedder = CountingEmbedder()
    embedder.gate.clear()
    reindexer = Reindexer(store, index, embedder)
    running = reindexer.begin()

    async def follow() -> list[tuple[int, int]]:
        return [at async for at in running.progress()]

    following = asyncio.create_task(follow())
    await eventually(lambda: embedder.waiting == 1)
    with pytest.raises(Rebuilding):
        reindexer.begin(user_id="ada")
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    embedder.gate.set()
    assert await running.outcome() == Reindexed(20, 20, 0, 0)
    assert await reindexer.begin(dry_run=True).outcome() == Reindexed(20, 20, 0, 0, dry_run=True)
    await reindexer.close()


async def test_closing_stops_it_and_leaves_the_old_index(store: Store, index: VectorIndex) -> None:
    await tell(store, index, 10)
    embedder = CountingEmbedder()
    embedder.gate.clear()
    reindexer = Reindexer(store, index, embedder)
    running = reindexer.begin()
    await eventually(lambda: embedder.waiting == 1)
    await reindexer.close()
    assert not running.is_running
    assert await index.count() == 20
    assert await reindex(store, index, CountingEmbedder()) == Reindexed(20, 20, 0, 0)
