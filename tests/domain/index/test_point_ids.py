"""No id that a caller names is a point's id: a fact that is given another's id takes nobody's memory out of search."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from recollect.memory.index.doctor import examine
from recollect.memory.index.expected import fact_entry
from recollect.memory.index.index_outbox import IndexOutbox
from recollect.memory.index.indexing import PLACES, IndexStep, make_points, repair
from recollect.memory.index.reindexing import reindex
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import Entry, Query, VectorIndex, episode, fact_point_id
from recollect.memory.values.errors import PointTaken
from recollect.memory.values.fact import Fact
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Message, derived_id
from tests.contracts.store.samples import NOW
from tests.domain.support.indexed import (
    CountingEmbedder,
    all_ids,
    called_for_ids,
    learn,
    open_documents,
    open_index,
    tell,
)

EMBEDDER = CountingEmbedder()


@asynccontextmanager
async def opened(folder: Path) -> AsyncGenerator[tuple[Store, VectorIndex]]:
    async with open_documents(folder) as store, open_index(folder) as index:
        yield store, index


async def planted(store: Store, index: VectorIndex, fact_id: str, *, statement: str = "Planted.") -> Fact:
    """Bob's fact with this id, followed by the index."""
    fact = await learn(store, user_id="bob", id=fact_id, statement=statement)
    await IndexOutbox(store, index, EMBEDDER).sync("bob")
    return fact


async def found(index: VectorIndex, user_id: str) -> set[tuple[str, str]]:
    """Kind and own id of all that a search finds of the user."""
    query = Query(Scope(user_id), await EMBEDDER.embed_query("anything"), limit=100, kinds=("episode", "fact"))
    return {(match.entry.kind, match.entry.memory_id) for match in await index.search(query)}


def as_before(fact: Fact) -> Entry:
    """Return what an earlier version stored of a fact: under the fact's own id, and without it."""
    return replace(fact_entry(fact), id=fact.id, fact_id=None)


async def insert(index: VectorIndex, *entries: Entry) -> None:
    await index.upsert(await make_points(entries, EMBEDDER))


async def is_healthy(store: Store, index: VectorIndex) -> bool:
    return (await examine(store, index, EMBEDDER, now=NOW)).healthy


def test_a_facts_point_is_derived_from_its_owner() -> None:
    assert fact_point_id("ada", "f1") == derived_id("ada", "fact", "f1")
    assert len({fact_point_id(user, name) for user in ("ada", "bob") for name in ("f1", "f2")}) == 4


async def test_a_fact_with_anothers_message_id_hides_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as (store, index):
        messages = await tell(store, index, 2)
        before = await found(index, "ada")
        fact = await planted(store, index, messages[0].id)
        assert await found(index, "ada") == before
        assert await found(index, "bob") == {("fact", fact.id)}
        ended = fact.revised(at=NOW, status="forgotten")
        assert await store.facts.replace(ended, revision=fact.revision)
        await IndexOutbox(store, index, EMBEDDER).sync("bob")
        assert await found(index, "ada") == before
        assert await found(index, "bob") == set()
        assert await is_healthy(store, index)


async def test_one_id_under_two_users_is_two_facts(tmp_path: Path) -> None:
    async with opened(tmp_path) as (store, index):
        own = await learn(store, "f1")
        await IndexOutbox(store, index, EMBEDDER).sync("ada")
        other = await planted(store, index, own.id, statement="Bob likes coffee.")
        assert await found(index, "ada") == await found(index, "bob") == {("fact", own.id)}
        assert await index.count() == 2
        assert await store.facts.remove(user_id="bob", fact_ids=[other.id]) == 1
        await reindex(store, index, EMBEDDER, user_id="bob")
        assert await found(index, "ada") == {("fact", own.id)}
        assert await is_healthy(store, index)


async def test_points_of_facts_from_before_move_at_the_start(tmp_path: Path) -> None:
    async with opened(tmp_path) as (store, index):
        await tell(store, index, 20)
        facts = [await learn(store, f"f{number}") for number in range(3)]
        for fact in facts:
            assert await store.facts.mark_indexed([fact])
        await insert(index, *map(as_before, facts))
        assert await found(index, "ada") >= {("fact", fact.id) for fact in facts}, "they are found until they move"
        assert not await is_healthy(store, index)
        repaired = await repair(store, index, EMBEDDER)
        assert (repaired.added, repaired.removed) == (3, 3)
        assert await all_ids(index) == await called_for_ids(store)
        assert not {fact.id for fact in facts} & set(await all_ids(index))
        assert await found(index, "ada") >= {("fact", fact.id) for fact in facts}
        assert (await repair(store, index, EMBEDDER)).added == 0


async def test_an_owed_fact_does_not_keep_its_point_from_before(tmp_path: Path) -> None:
    async with opened(tmp_path) as (store, index):
        fact = await learn(store)
        await insert(index, as_before(fact))
        await repair(store, index, EMBEDDER)
        assert await all_ids(index) == []
        await IndexOutbox(store, index, EMBEDDER).sync("ada")
        assert await all_ids(index) == [fact_point_id("ada", fact.id)]


async def damaged(store: Store, index: VectorIndex) -> Message:
    """Ada's message in whose place an earlier version has put Bob's fact."""
    messages = await tell(store, index, 3)
    fact = await learn(store, user_id="bob", id=messages[2].id)
    assert await store.facts.mark_indexed([fact])
    await index.remove(user_id="ada", ids=[fact.id])
    await insert(index, as_before(fact))
    return messages[2]


@pytest.mark.parametrize("how", ["start", "whole", "users"])
async def test_what_was_damaged_before_is_found_and_mended(tmp_path: Path, how: str) -> None:
    async with opened(tmp_path) as (store, index):
        message = await damaged(store, index)
        assert ("episode", message.id) not in await found(index, "ada")
        report = await examine(store, index, EMBEDDER, now=NOW)
        assert report.users["ada"].wrong_fingerprint == 1
        assert report.users["bob"].missing == 1
        if how == "start":
            await repair(store, index, EMBEDDER)
        elif how == "whole":
            await reindex(store, index, EMBEDDER)
        else:
            await reindex(store, index, EMBEDDER, user_id="ada")
            await reindex(store, index, EMBEDDER, user_id="bob")
        assert ("episode", message.id) in await found(index, "ada")
        assert await found(index, "bob") == {("fact", message.id)}
        assert await is_healthy(store, index)


async def test_a_late_writer_of_the_index_step_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path) as (store, index):
        message = await damaged(store, index)
        with pytest.raises(PointTaken):
            await IndexStep(index, EMBEDDER, store.timeline).add([message])
        assert await found(index, "bob") == {("fact", message.id)}


async def test_a_start_looks_at_points_from_throughout(tmp_path: Path) -> None:
    async with opened(tmp_path) as (store, index):
        messages = await tell(store, index, 400)
        expected = [message.id async for batch in store.conversations.indexed_messages() for message in batch]
        late = set(expected[500:])
        points = [message for message in messages if message.id in late]
        stale = [
            replace(point, fingerprint="0" * 16)
            for start in range(0, len(points), 64)
            for point in await make_points([*map(episode, points[start : start + 64])], EMBEDDER)
        ]
        await index.upsert(stale)
        assert len(stale) > PLACES
        repaired = await repair(store, index, EMBEDDER)
        assert repaired.added == len(stale)
        assert await is_healthy(store, index)
