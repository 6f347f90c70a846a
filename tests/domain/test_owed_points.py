"""The index follows facts and thread records, through outages, kills and changes that come in between."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from memory.documents import Documents
from memory.errors import ModelUnavailable
from memory.expected import fact_entry, summary_entry
from memory.fact import Ended, Fact
from memory.owed_points import OwedPoints
from memory.scope import GLOBAL_USER, Scope
from memory.vector_index import VectorIndex
from tests.contracts.documents.samples import NOW
from tests.domain.indexed import (
    CountingEmbedder,
    a_uuid,
    all_ids,
    archive,
    called_for_ids,
    learn,
)
from tests.domain.updating import eventually


@asynccontextmanager
async def started(points: OwedPoints) -> AsyncGenerator[OwedPoints]:
    points.start()
    try:
        yield points
    finally:
        await points.close()


async def stored(documents: Documents, fact: Fact) -> Fact:
    found = await documents.facts.fact(user_id=fact.user_id, fact_id=fact.id)
    assert found is not None
    return found


async def nothing_owed(points: OwedPoints) -> None:
    async with asyncio.timeout(10):
        while await points.users():  # noqa: ASYNC110 - the background's work
            await asyncio.sleep(0.01)


def ended(fact: Fact) -> Fact:
    return fact.revised(at=NOW, ended=Ended("turn", NOW, "turn2"), valid_to=NOW)


async def test_open_facts_get_points_and_ended_ones_lose_them(documents: Documents, index: VectorIndex) -> None:
    points = OwedPoints(documents, index, embedder := CountingEmbedder())
    fact, other = await learn(documents), await learn(documents, "f2", key=None, statement="Ada likes tea.")
    await points.sync("ada")
    assert len(embedder.texts) == 2
    assert {entry.id: entry for entry in await index.entries([fact.id, other.id])} == {
        fact.id: fact_entry(fact),
        other.id: fact_entry(other),
    }
    assert await documents.facts.replace(ended(fact), revision=1)
    await points.sync("ada")
    assert await all_ids(index) == [other.id]
    assert (await stored(documents, fact)).indexed
    assert await points.users() == []


async def test_a_fact_is_found_where_it_belongs(documents: Documents, index: VectorIndex) -> None:
    points = OwedPoints(documents, index, CountingEmbedder())
    of_thread = await learn(documents, "f1", scope="thread", thread_id="t1", turn_id="turn1")
    of_user = await learn(documents, "f2", key=None, thread_id="t1", turn_id="turn1")
    of_all = await learn(documents, "f3", user_id=GLOBAL_USER, scope="global")
    for user_id in await points.users():
        await points.sync(user_id)
    found = {entry.id: entry for entry in await index.entries([of_thread.id, of_user.id, of_all.id])}
    assert found[of_thread.id].thread_id == "t1"
    assert found[of_user.id].thread_id is None
    assert found[of_user.id].turn_id == "turn1"
    assert await index.count(user_id=GLOBAL_USER) == 1


async def test_a_proposed_or_rejected_fact_has_no_point(documents: Documents, index: VectorIndex) -> None:
    await learn(documents, status="proposed")
    await learn(documents, "f2", key=None, status="rejected")
    await OwedPoints(documents, index, CountingEmbedder()).sync("ada")
    assert await all_ids(index) == [] == await called_for_ids(documents)
    assert await documents.facts.owed(user_id="ada", limit=9) == []


async def test_an_archived_threads_summary_is_followed(documents: Documents, index: VectorIndex) -> None:
    points = OwedPoints(documents, index, CountingEmbedder())
    record = await archive(documents)
    await points.sync("ada")
    assert await index.entries([record.point_id]) == [summary_entry(record)]
    edited = record.revised(summary="Ada likes coffee.")
    assert await documents.threads.put(edited, revision=1)
    await points.sync("ada")
    assert [entry.content for entry in await index.entries([record.point_id])] == ["Ada likes coffee."]
    assert await documents.threads.put(edited.revised(summary=None), revision=2)
    await points.sync("ada")
    assert await all_ids(index) == [] == await called_for_ids(documents)


async def test_many_facts_are_embedded_together(documents: Documents, index: VectorIndex) -> None:
    facts = [await learn(documents, f"f{number}", key=f"k{number}") for number in range(150)]
    embedder = CountingEmbedder()
    embedder.gate.clear()
    syncing = asyncio.create_task(OwedPoints(documents, index, embedder).sync("ada"))
    await eventually(lambda: embedder.waiting == 1)
    embedder.gate.set()
    await syncing
    assert len(embedder.texts) == 150
    assert await all_ids(index) == sorted(fact.id for fact in facts)


async def test_what_was_killed_between_document_and_point_is_done_at_the_next_start(
    documents: Documents, index: VectorIndex
) -> None:
    fact = await learn(documents)
    record = await archive(documents)
    async with started(OwedPoints(documents, index, CountingEmbedder(), sweep_seconds=3600)) as points:
        await nothing_owed(points)
    assert await all_ids(index) == sorted([fact.id, record.point_id])


async def test_what_was_killed_between_point_and_mark_is_done_again(documents: Documents, index: VectorIndex) -> None:
    fact = await learn(documents)
    points = OwedPoints(documents, index, CountingEmbedder())
    await points.sync("ada")
    assert await documents.facts.replace(replace(fact, revision=2), revision=1)  # as if never marked
    await points.sync("ada")
    assert await all_ids(index) == [fact.id]
    assert (await stored(documents, fact)).indexed


async def test_an_outage_is_waited_for_in_the_background(documents: Documents, index: VectorIndex) -> None:
    fact = await learn(documents)
    embedder = CountingEmbedder(outage=True)
    async with started(OwedPoints(documents, index, embedder, sweep_seconds=3600)) as points:
        with pytest.raises(ModelUnavailable):
            await points.sync("ada")
        await points.sync_soon("ada")  # says nothing
        assert not (await stored(documents, fact)).indexed
        embedder.outage = False
        await nothing_owed(points)
    assert await all_ids(index) == [fact.id]


async def test_what_the_embedder_refuses_holds_up_nothing_else(documents: Documents, index: VectorIndex) -> None:
    refused = await learn(documents, statement="Unspeakable.")
    others = [await learn(documents, f"g{number}", key=f"k{number}") for number in range(5)]
    with pytest.raises(ModelUnavailable):
        await OwedPoints(documents, index, CountingEmbedder(refuses="Unspeakable")).sync("ada")
    assert await all_ids(index) == sorted(fact.id for fact in others)
    assert [fact.id for fact in await documents.facts.owed(user_id="ada", limit=9)] == [refused.id]


async def test_a_revision_that_ends_while_its_point_is_made_leaves_none(
    documents: Documents, index: VectorIndex
) -> None:
    fact = await learn(documents)
    slow = CountingEmbedder()
    slow.gate.clear()
    syncing = asyncio.create_task(OwedPoints(documents, index, slow).sync("ada"))
    await eventually(lambda: slow.waiting == 1)
    assert await documents.facts.replace(ended(fact), revision=1)
    # Another process is quicker: by its mark nothing is owed any more.
    await OwedPoints(documents, index, CountingEmbedder()).sync("ada")
    assert (await stored(documents, fact)).indexed
    slow.gate.set()
    await syncing
    assert await all_ids(index) == [] == await called_for_ids(documents)


async def test_a_fact_that_is_deleted_while_its_point_is_made_leaves_none(
    documents: Documents, index: VectorIndex
) -> None:
    fact, record = await learn(documents), await archive(documents)
    slow = CountingEmbedder()
    slow.gate.clear()
    syncing = asyncio.create_task(OwedPoints(documents, index, slow).sync("ada"))
    await eventually(lambda: slow.waiting == 1)
    assert await documents.facts.remove(user_id="ada", fact_ids=[fact.id]) == 1
    assert await documents.threads.delete(Scope("ada", record.thread_id)) == 1
    slow.gate.set()
    await syncing
    assert await all_ids(index) == []


async def test_a_fact_that_changes_again_and_again_ends_as_it_is_stored(
    documents: Documents, index: VectorIndex
) -> None:
    fact = await learn(documents)
    async with started(OwedPoints(documents, index, CountingEmbedder(), sweep_seconds=0.01)) as points:
        for number in range(40):
            changed = fact.revised(at=NOW, statement=f"Ada is {number}.")
            assert await documents.facts.replace(changed, revision=fact.revision)
            fact = changed
            points.notify("ada")
            await asyncio.sleep(0)
        await points.sync("ada")
    assert [entry.content for entry in await index.entries([fact.id])] == ["Ada is 39."]


async def test_a_later_sweep_finds_what_nobody_told_of(documents: Documents, index: VectorIndex) -> None:
    embedder = CountingEmbedder()
    async with started(OwedPoints(documents, index, embedder, sweep_seconds=0.02)) as points:
        fact = await learn(documents)
        await nothing_owed(points)
    assert embedder.texts == [fact.statement]
    assert await all_ids(index) == [a_uuid("f1")]


async def test_closed_it_stops_and_leaves_what_is_owed(documents: Documents, index: VectorIndex) -> None:
    await learn(documents)
    embedder = CountingEmbedder()
    embedder.gate.clear()
    points = OwedPoints(documents, index, embedder)
    points.start()
    await eventually(lambda: embedder.waiting == 1)
    await points.close()
    embedder.gate.set()
    await points.sync_soon("ada")
    points.notify("ada")
    assert await points.users() == ["ada"]
    assert await all_ids(index) == []
