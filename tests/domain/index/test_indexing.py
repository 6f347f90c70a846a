"""The index step and the repair, over a real store and a real index."""

import asyncio
from dataclasses import dataclass, replace

import pytest

from recollect.memory.index.bm25 import query_weights
from recollect.memory.index.index_outbox import IndexOutbox
from recollect.memory.index.indexing import IndexStep, StartRepair, make_points, repair
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import Query, VectorIndex, episode
from recollect.memory.values.errors import ModelUnavailable
from recollect.memory.values.scope import Scope
from recollect.memory.values.update import owed
from tests.contracts.store.samples import asked, finish
from tests.domain.support.indexed import (
    LEARNED,
    CountingEmbedder,
    all_ids,
    archive,
    begin,
    called_for_ids,
    finish_all,
    learn,
    point_of,
    tell,
)
from tests.domain.support.updating import eventually, updater

COUNT = 40


async def test_a_turn_is_indexed_once_however_often_it_is_done(store: Store, index: VectorIndex) -> None:
    embedder = CountingEmbedder()
    exchange = await finish(store, "turn1", update=owed())
    step = IndexStep(index, embedder, store.timeline)
    await step.add([exchange.user])  # A kill came between the point and its record.
    async with updater(store, index=step) as works:
        ended = await works.wait_ended(user_id="ada", turn_id="turn1", seconds=10)
    assert ended is not None
    assert ended.status == "done"
    assert await all_ids(index) == sorted([exchange.user.id, exchange.assistant.id])
    query = Query(Scope("ada", "t1"), await embedder.embed_query("Hello."), limit=1)
    (found,) = await index.search(query)
    assert found.entry == episode(exchange.user)


@dataclass
class Meaning(CountingEmbedder):
    """An embedder of words that is taken for one that knows meaning."""

    knows_meaning = True


async def test_a_message_is_also_indexed_behind_what_stood_before_it(store: Store, index: VectorIndex) -> None:
    embedder = Meaning()
    first, second = [await finish(store, f"turn{number}", update=LEARNED) for number in (1, 2)]
    step = IndexStep(index, embedder, store.timeline)
    await step.add([second.user, second.assistant])
    assert embedder.texts == ["Hello.", "Hi!", "Hi!\nHello.", "Hello.\nHi!"]
    embedder.texts.clear()
    await step.add([first.user, first.assistant])
    assert embedder.texts == ["Hello.", "Hi!", "Hello.\nHi!"]
    behind = await embedder.embed_query("Hi!\nHello.")
    by_context, by_words = await index.rank(
        [
            Query(Scope("ada"), behind, limit=9, channel="context"),
            Query(Scope("ada"), query_weights("hello"), limit=9, channel="bm25"),
        ]
    )
    assert by_context[second.user.id] == pytest.approx(1.0, abs=1e-4)
    assert by_context[first.user.id] < 0.9
    assert set(by_words) == {message.id for turn in (first, second) for message in turn.messages}
    assert by_words[first.user.id] > by_words[first.assistant.id] > 0


async def test_a_long_message_is_no_context(store: Store) -> None:
    embedder = Meaning()
    points = await make_points([episode(asked())], embedder, preceding={asked().id: ["x" * 301, "Hi!"]})
    assert embedder.texts == ["Hello."]
    assert points[0].context == points[0].dense
    (alone,) = await make_points([episode(asked())], CountingEmbedder(), preceding={asked().id: ["Hi!"]})
    assert alone.context is None
    assert alone.bm25 is not None
    assert len(alone.bm25.indices) == 2


async def test_repair_remakes_points_of_an_older_scheme(store: Store, index: VectorIndex) -> None:
    messages, embedder = await finish_all(store, 3), CountingEmbedder()
    points = await make_points([episode(message) for message in messages], embedder)
    await index.upsert([replace(point, bm25=None, fingerprint="0123456789abcdef") for point in points])
    assert await repair(store, index, embedder) == StartRepair(6, 0)
    found = await index.rank([Query(Scope("ada"), query_weights("hello"), limit=9, channel="bm25")])
    assert len(found[0]) == 6
    assert await repair(store, index, embedder) == StartRepair(0, 0)


async def test_repair_finds_nothing_to_do_without_embedding(store: Store, index: VectorIndex) -> None:
    embedder = CountingEmbedder()
    await IndexStep(index, embedder, store.timeline).add(await finish_all(store, 3))
    embedder.texts.clear()
    assert await repair(store, index, embedder) == StartRepair(0, 0)
    assert embedder.texts == []


async def test_repair_fills_an_empty_index(store: Store, index: VectorIndex) -> None:
    messages = await finish_all(store, COUNT)
    messages += await finish_all(store, 3, user_id="bob")
    assert await repair(store, index, CountingEmbedder()) == StartRepair(len(messages), 0)
    assert await all_ids(index) == sorted(message.id for message in messages)
    assert await index.count(user_id="bob") == 6


async def test_repair_adds_only_what_is_missing(store: Store, index: VectorIndex) -> None:
    messages = await finish_all(store, COUNT)
    embedder = CountingEmbedder()
    kept = [message for place, message in enumerate(messages) if place % 5]
    await IndexStep(index, embedder, store.timeline).add(kept)
    embedder.texts.clear()
    missing = len(messages) // 5
    assert await repair(store, index, embedder) == StartRepair(missing, 0)
    assert len(embedder.texts) == missing
    assert await index.count() == len(messages)


async def test_repair_removes_what_no_message_stands_behind(store: Store, index: VectorIndex) -> None:
    messages = await finish_all(store, 5)
    embedder = CountingEmbedder()
    await IndexStep(index, embedder, store.timeline).add(messages)
    gone = [replace(asked(f"gone{number}"), user_id=user) for number, user in enumerate(("ada", "bob"))]
    await IndexStep(index, embedder, store.timeline).add(gone)
    assert await repair(store, index, embedder) == StartRepair(0, 2)
    assert await all_ids(index) == sorted(message.id for message in messages)


async def test_repair_leaves_a_turn_that_is_being_indexed(store: Store, index: VectorIndex) -> None:
    messages = await finish_all(store, 2)
    exchange = await finish(store, "now", update=owed())
    embedder = CountingEmbedder()
    await IndexStep(index, embedder, store.timeline).add([exchange.user, exchange.assistant])
    assert await repair(store, index, embedder) == StartRepair(len(messages), 0)
    assert await index.count() == len(messages) + 2


async def test_repair_mends_the_points_of_facts_and_summaries(store: Store, index: VectorIndex) -> None:
    messages, embedder = await tell(store, index, 2), CountingEmbedder()
    kept, lost, ended = [await learn(store, name, key=name) for name in ("kept", "lost", "end")]
    record = await archive(store)
    await IndexOutbox(store, index, embedder).sync("ada")
    await index.remove(user_id="ada", ids=[point_of(lost), record.point_id])
    assert await store.facts.remove(user_id="ada", fact_ids=[ended.id]) == 1
    assert await repair(store, index, embedder) == StartRepair(2, 1)
    points = [*(message.id for message in messages), point_of(kept), point_of(lost), record.point_id]
    assert await all_ids(index) == sorted(points) == await called_for_ids(store)


async def test_repair_leaves_facts_that_are_still_owed(store: Store, index: VectorIndex) -> None:
    embedder = CountingEmbedder()
    fact = await learn(store)
    assert await repair(store, index, embedder) == StartRepair(0, 0)
    await IndexOutbox(store, index, embedder).sync("ada")
    changed = fact.revised(at=fact.created_at, statement="The user's name is Eve.")
    assert await store.facts.replace(changed, revision=1)
    assert await repair(store, index, embedder) == StartRepair(0, 0)
    assert await all_ids(index) == [point_of(fact)]


async def test_repair_makes_points_anew_that_say_something_else(store: Store, index: VectorIndex) -> None:
    messages, embedder = await tell(store, index, 3), CountingEmbedder()
    (false,) = await make_points([replace(episode(messages[0]), content="Something else.")], embedder)
    await index.upsert([false])
    await index.remove(user_id="ada", ids=[messages[1].id])
    assert await repair(store, index, embedder) == StartRepair(2, 0)
    entries = {entry.id: entry for entry in await index.entries([message.id for message in messages])}
    assert entries == {message.id: episode(message) for message in messages}


async def test_a_turn_that_is_deleted_while_it_is_indexed_leaves_no_point(store: Store, index: VectorIndex) -> None:
    embedder = CountingEmbedder()
    embedder.gate.clear()
    await begin(store)
    async with updater(store, index=IndexStep(index, embedder, store.timeline)) as works:
        await eventually(lambda: embedder.waiting > 0)
        await store.conversations.delete(Scope("ada", "t1"))
        embedder.gate.set()
        await eventually(lambda: len(embedder.texts) == 2)
        await works.drain(10)
    assert await all_ids(index) == []


async def test_a_repair_that_was_cut_off_goes_on_where_it_was(store: Store, index: VectorIndex) -> None:
    messages = await finish_all(store, 100)
    embedder = CountingEmbedder(fails_after=64)
    with pytest.raises(ModelUnavailable):
        await repair(store, index, embedder)
    done = await index.count()
    assert 64 <= done < len(messages)
    embedder = CountingEmbedder()
    assert await repair(store, index, embedder) == StartRepair(len(messages) - done, 0)
    assert len(embedder.texts) == len(messages) - done


async def test_repairs_at_once_do_no_harm(store: Store, index: VectorIndex) -> None:
    messages = await finish_all(store, COUNT)
    await asyncio.gather(*(repair(store, index, CountingEmbedder()) for _ in range(3)))
    assert await all_ids(index) == sorted(message.id for message in messages)
