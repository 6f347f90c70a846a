"""The index follows facts and thread records, through outages, kills and changes that come in between."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from recollect.memory.index.expected import fact_entry, summary_entry
from recollect.memory.index.index_outbox import IndexOutbox
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import VectorIndex, episode
from recollect.memory.values.errors import ModelUnavailable
from recollect.memory.values.fact import Ended, Fact
from recollect.memory.values.scope import GLOBAL_USER, Scope
from recollect.memory.values.turn import Message
from tests.contracts.store.samples import NOW
from tests.domain.support.indexed import CountingEmbedder, all_ids, archive, called_for_ids, learn, point_of
from tests.domain.support.updating import eventually


@asynccontextmanager
async def started(points: IndexOutbox) -> AsyncGenerator[IndexOutbox]:
    points.start()
    try:
        yield points
    finally:
        await points.close()


async def stored(store: Store, fact: Fact) -> Fact:
    found = await store.facts.fact(user_id=fact.user_id, fact_id=fact.id)
    assert found is not None
    return found


async def nothing_owed(points: IndexOutbox) -> None:
    async with asyncio.timeout(10):
        while await points.users():  # noqa: ASYNC110 - the background's work
            await asyncio.sleep(0.01)


def ended(fact: Fact) -> Fact:
    return fact.revised(at=NOW, ended=Ended("turn", NOW, "turn2"), valid_to=NOW)


async def test_open_facts_get_points_and_ended_ones_lose_them(store: Store, index: VectorIndex) -> None:
    points = IndexOutbox(store, index, embedder := CountingEmbedder())
    fact, other = await learn(store), await learn(store, "f2", key=None, statement="Ada likes tea.")
    await points.sync("ada")
    assert len(embedder.texts) == 2
    assert {entry.memory_id: entry for entry in await index.entries([point_of(fact), point_of(other)])} == {
        fact.id: fact_entry(fact),
        other.id: fact_entry(other),
    }
    assert await store.facts.replace(ended(fact), revision=1)
    await points.sync("ada")
    assert await all_ids(index) == [point_of(other)]
    assert (await stored(store, fact)).indexed
    assert await points.users() == []


async def test_what_waits_for_a_turn_is_indexed_beside_it_in_one_call(store: Store, index: VectorIndex) -> None:
    points = IndexOutbox(store, index, embedder := CountingEmbedder(refuses="Unspeakable"))
    fact = await learn(store)
    points.notify_later("ada")
    message = episode(Message("ada", "t1", "turn7", "user", "Hello.", NOW))
    await points.index_beside("ada", [message], {})
    assert embedder.calls == 1
    assert (await stored(store, fact)).indexed
    refused = await learn(store, "f2", key=None, statement="Unspeakable.")
    points.notify_later("ada")
    other = episode(Message("ada", "t1", "turn8", "user", "Hello again.", NOW))
    await points.index_beside("ada", [other], {})
    assert sorted(await all_ids(index)) == sorted([point_of(fact), message.id, other.id])
    assert not (await stored(store, refused)).indexed
    await points.close()


async def test_facts_that_a_turn_has_written_are_not_read_again(store: Store, index: VectorIndex) -> None:
    points = IndexOutbox(store, index, CountingEmbedder())
    fact, changed = await learn(store), await learn(store, "f2", key=None, statement="Ada likes tea.")
    other = await learn(store, "f3", key=None, statement="Ada likes milk.")
    points.notify_later("ada", [fact])
    points.notify_later("ada", [changed])
    assert await store.facts.replace(ended(changed), revision=1), "changed by another process since it was written"
    message = episode(Message("ada", "t1", "turn7", "user", "Hello.", NOW))
    await points.index_beside("ada", [message], {})
    assert sorted(await all_ids(index)) == sorted([point_of(fact), message.id])
    assert (await stored(store, fact)).indexed
    assert (await stored(store, changed)).indexed
    assert not (await stored(store, other)).indexed, "whoever wrote it sees to it"
    await points.close()


async def test_what_waits_for_a_turn_that_never_comes_is_indexed_by_itself(store: Store, index: VectorIndex) -> None:
    points = IndexOutbox(store, index, CountingEmbedder())
    fact = await learn(store)
    points.notify_later("ada")
    points.notify_later("ada")
    await points.settled("ada")
    assert (await stored(store, fact)).indexed
    await learn(store, "f2", key=None, statement="Ada likes tea.")
    points.notify_later("ada")
    await nothing_owed(points)
    await points.close()


async def test_a_fact_is_found_where_it_belongs(store: Store, index: VectorIndex) -> None:
    points = IndexOutbox(store, index, CountingEmbedder())
    of_thread = await learn(store, "f1", scope="thread", thread_id="t1", turn_id="turn1")
    of_user = await learn(store, "f2", key=None, thread_id="t1", turn_id="turn1")
    of_all = await learn(store, "f3", user_id=GLOBAL_USER, scope="global")
    for user_id in await points.users():
        await points.sync(user_id)
    found = {entry.memory_id: entry for entry in await index.entries([*map(point_of, (of_thread, of_user, of_all))])}
    assert found[of_thread.id].thread_id == "t1"
    assert found[of_user.id].thread_id is None
    assert found[of_user.id].turn_id == "turn1"
    assert await index.count(user_id=GLOBAL_USER) == 1


async def test_a_proposed_or_rejected_fact_has_no_point(store: Store, index: VectorIndex) -> None:
    await learn(store, status="proposed")
    await learn(store, "f2", key=None, status="rejected")
    await IndexOutbox(store, index, CountingEmbedder()).sync("ada")
    assert await all_ids(index) == [] == await called_for_ids(store)
    assert await store.facts.owed(user_id="ada", limit=9) == []


async def test_an_archived_threads_summary_is_followed(store: Store, index: VectorIndex) -> None:
    points = IndexOutbox(store, index, CountingEmbedder())
    record = await archive(store)
    await points.sync("ada")
    assert await index.entries([record.point_id]) == [summary_entry(record)]
    edited = record.revised(summary="Ada likes coffee.")
    assert await store.threads.put(edited, revision=1)
    await points.sync("ada")
    assert [entry.content for entry in await index.entries([record.point_id])] == ["Ada likes coffee."]
    assert await store.threads.put(edited.revised(summary=None), revision=2)
    await points.sync("ada")
    assert await all_ids(index) == [] == await called_for_ids(store)


async def test_many_facts_are_embedded_together(store: Store, index: VectorIndex) -> None:
    facts = [await learn(store, f"f{number}", key=f"k{number}") for number in range(150)]
    embedder = CountingEmbedder()
    embedder.gate.clear()
    syncing = asyncio.create_task(IndexOutbox(store, index, embedder).sync("ada"))
    await eventually(lambda: embedder.waiting == 1)
    embedder.gate.set()
    await syncing
    assert len(embedder.texts) == 150
    assert await all_ids(index) == sorted(map(point_of, facts))


async def test_what_was_killed_between_document_and_point_is_done_at_the_next_start(
    store: Store, index: VectorIndex
) -> None:
    fact = await learn(store)
    record = await archive(store)
    async with started(IndexOutbox(store, index, CountingEmbedder(), sweep_seconds=3600)) as points:
        await nothing_owed(points)
    assert await all_ids(index) == sorted([point_of(fact), record.point_id])


async def test_what_was_killed_between_point_and_mark_is_done_again(store: Store, index: VectorIndex) -> None:
    fact = await learn(store)
    points = IndexOutbox(store, index, CountingEmbedder())
    await points.sync("ada")
    assert await store.facts.replace(replace(fact, revision=2), revision=1)  # as if never marked
    await points.sync("ada")
    assert await all_ids(index) == [point_of(fact)]
    assert (await stored(store, fact)).indexed


async def test_an_outage_is_waited_for_in_the_background(store: Store, index: VectorIndex) -> None:
    fact = await learn(store)
    embedder = CountingEmbedder(outage=True)
    async with started(IndexOutbox(store, index, embedder, sweep_seconds=3600)) as points:
        with pytest.raises(ModelUnavailable):
            await points.sync("ada")
        await points.sync_soon("ada")  # says nothing
        assert not (await stored(store, fact)).indexed
        embedder.outage = False
        await nothing_owed(points)
    assert await all_ids(index) == [point_of(fact)]


async def test_what_the_embedder_refuses_holds_up_nothing_else(store: Store, index: VectorIndex) -> None:
    refused = await learn(store, statement="Unspeakable.")
    others = [await learn(store, f"g{number}", key=f"k{number}") for number in range(5)]
    with pytest.raises(ModelUnavailable):
        await IndexOutbox(store, index, CountingEmbedder(refuses="Unspeakable")).sync("ada")
    assert await all_ids(index) == sorted(map(point_of, others))
    assert [fact.id for fact in await store.facts.owed(user_id="ada", limit=9)] == [refused.id]


async def test_a_revision_that_ends_while_its_point_is_made_leaves_none(store: Store, index: VectorIndex) -> None:
    fact = await learn(store)
    slow = CountingEmbedder()
    slow.gate.clear()
    syncing = asyncio.create_task(IndexOutbox(store, index, slow).sync("ada"))
    await eventually(lambda: slow.waiting == 1)
    assert await store.facts.replace(ended(fact), revision=1)
    # Another process is quicker: by its mark nothing is owed any more.
    await IndexOutbox(store, index, CountingEmbedder()).sync("ada")
    assert (await stored(store, fact)).indexed
    slow.gate.set()
    await syncing
    assert await all_ids(index) == [] == await called_for_ids(store)


async def test_a_fact_that_is_deleted_while_its_point_is_made_leaves_none(store: Store, index: VectorIndex) -> None:
    fact, record = await learn(store), await archive(store)
    slow = CountingEmbedder()
    slow.gate.clear()
    syncing = asyncio.create_task(IndexOutbox(store, index, slow).sync("ada"))
    await eventually(lambda: slow.waiting == 1)
    assert await store.facts.remove(user_id="ada", fact_ids=[fact.id]) == 1
    assert await store.threads.delete(Scope("ada", record.thread_id)) == 1
    slow.gate.set()
    await syncing
    assert await all_ids(index) == []


async def test_a_fact_that_changes_again_and_again_ends_as_it_is_stored(store: Store, index: VectorIndex) -> None:
    fact = await learn(store)
    async with started(IndexOutbox(store, index, CountingEmbedder(), sweep_seconds=0.01)) as points:
        for number in range(40):
            changed = fact.revised(at=NOW, statement=f"Ada is {number}.")
            assert await store.facts.replace(changed, revision=fact.revision)
            fact = changed
            points.notify("ada")
            await asyncio.sleep(0)
        await points.sync("ada")
    assert [entry.content for entry in await index.entries([point_of(fact)])] == ["Ada is 39."]


async def test_a_later_sweep_finds_what_nobody_told_of(store: Store, index: VectorIndex) -> None:
    embedder = CountingEmbedder()
    async with started(IndexOutbox(store, index, embedder, sweep_seconds=0.02)) as points:
        fact = await learn(store)
        await nothing_owed(points)
    assert embedder.texts == [fact.statement]
    assert await all_ids(index) == [point_of(fact)]


async def test_closed_it_stops_and_leaves_what_is_owed(store: Store, index: VectorIndex) -> None:
    await learn(store)
    embedder = CountingEmbedder()
    embedder.gate.clear()
    points = IndexOutbox(store, index, embedder)
    points.start()
    await eventually(lambda: embedder.waiting == 1)
    await points.close()
    embedder.gate.set()
    await points.sync_soon("ada")
    points.notify("ada")
    assert await points.users() == ["ada"]
    assert await all_ids(index) == []
