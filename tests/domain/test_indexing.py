"""The index step and the repair, over a real store and a real index."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from memory.documents import Documents
from memory.errors import ModelUnavailable
from memory.indexing import IndexStep, Repaired, repair
from memory.providers.lexical import LexicalEmbedder
from memory.scope import Scope
from memory.stores.edge_index import open_edge_index
from memory.stores.sqlite import open_sqlite_documents
from memory.turn import Message
from memory.update import owed
from memory.vector_index import Point, Query, VectorIndex, episode
from tests.contracts.documents.samples import asked, finish, indexed
from tests.domain.updating import updater

COUNT = 40


@dataclass
class CountingEmbedder:
    """The lexical embedder, counting the texts; it fails where it is told to."""

    texts: list[str] = field(default_factory=list[str])
    fails_after: int | None = None
    model = "lexical-v1"

    async def dimension(self) -> int:
        return await LexicalEmbedder().dimension()

    async def embed_query(self, text: str) -> Sequence[float]:
        return await LexicalEmbedder().embed_query(text)

    async def embed_documents(self, texts: Sequence[str]) -> list[Sequence[float]]:
        if self.fails_after is not None and len(self.texts) >= self.fails_after:
            raise ModelUnavailable
        self.texts += texts
        return await LexicalEmbedder().embed_documents(texts)

    async def ping(self) -> None:
        """It is here."""


@pytest.fixture
async def documents(tmp_path: Path) -> AsyncGenerator[Documents]:
    async with open_sqlite_documents(tmp_path / "recollect.db") as opened:
        yield opened


@pytest.fixture
async def index(tmp_path: Path) -> AsyncGenerator[VectorIndex]:
    embedder = CountingEmbedder()
    async with open_edge_index(
        tmp_path / "index", base="test", model=embedder.model, dimension=await embedder.dimension()
    ) as opened:
        yield opened


async def finish_all(documents: Documents, count: int = COUNT, **how: str) -> list[Message]:
    exchanges = [await finish(documents, f"turn{number}", update=indexed(), **how) for number in range(count)]
    return [message for exchange in exchanges for message in exchange.messages]


async def all_ids(index: VectorIndex) -> list[str]:
    return await index.ids(limit=500)


async def test_a_turn_is_indexed_once_however_often_it_is_done(documents: Documents, index: VectorIndex) -> None:
    embedder = CountingEmbedder()
    exchange = await finish(documents, "turn1", update=owed())
    step = IndexStep(index, embedder)
    await step.add([exchange.user])  # A kill came between the point and its record.
    async with updater(documents, index=step) as works:
        ended = await works.wait_ended(user_id="ada", turn_id="turn1", seconds=10)
    assert ended is not None
    assert ended.status == "done"
    assert await all_ids(index) == sorted([exchange.user.id, exchange.assistant.id])
    query = Query(Scope("ada", "t1"), await embedder.embed_query("Hello."), limit=1)
    (found,) = await index.search(query)
    assert found.entry == episode(exchange.user)


async def test_repair_finds_nothing_to_do_without_embedding(documents: Documents, index: VectorIndex) -> None:
    embedder = CountingEmbedder()
    await IndexStep(index, embedder).add(await finish_all(documents, 3))
    embedder.texts.clear()
    assert await repair(documents.conversations, index, embedder) == Repaired(0, 0)
    assert embedder.texts == []


async def test_repair_fills_an_empty_index(documents: Documents, index: VectorIndex) -> None:
    messages = await finish_all(documents)
    messages += await finish_all(documents, 3, user_id="bob")
    assert await repair(documents.conversations, index, CountingEmbedder()) == Repaired(len(messages), 0)
    assert await all_ids(index) == sorted(message.id for message in messages)
    assert await index.count(user_id="bob") == 6


async def test_repair_adds_only_what_is_missing(documents: Documents, index: VectorIndex) -> None:
    messages = await finish_all(documents)
    embedder = CountingEmbedder()
    await IndexStep(index, embedder).add([message for place, message in enumerate(messages) if place % 5])
    embedder.texts.clear()
    missing = len(messages) // 5
    assert await repair(documents.conversations, index, embedder) == Repaired(missing, 0)
    assert len(embedder.texts) == missing
    assert await index.count() == len(messages)


async def test_repair_removes_what_no_message_stands_behind(documents: Documents, index: VectorIndex) -> None:
    messages = await finish_all(documents, 5)
    embedder = CountingEmbedder()
    await IndexStep(index, embedder).add(messages)
    gone = [replace(asked(f"gone{number}"), user_id=user) for number, user in enumerate(("ada", "bob"))]
    await IndexStep(index, embedder).add(gone)
    assert await repair(documents.conversations, index, embedder) == Repaired(0, 2)
    assert await all_ids(index) == sorted(message.id for message in messages)


async def test_repair_leaves_a_turn_that_is_being_indexed(documents: Documents, index: VectorIndex) -> None:
    messages = await finish_all(documents, 2)
    exchange = await finish(documents, "now", update=owed())
    embedder = CountingEmbedder()
    await IndexStep(index, embedder).add([exchange.user, exchange.assistant])
    assert await repair(documents.conversations, index, embedder) == Repaired(len(messages), 0)
    assert await index.count() == len(messages) + 2


async def test_repair_leaves_points_of_other_kinds(documents: Documents, index: VectorIndex) -> None:
    (message, _) = await finish_all(documents, 1)
    embedder = CountingEmbedder()
    (dense,) = await embedder.embed_documents(["The user's name is Ada."])
    other = replace(episode(asked("other")), kind="fact", turn_id=None, thread_id=None, message_id=None)
    await index.upsert([Point(other, dense)])
    await repair(documents.conversations, index, embedder)
    assert {other.id, message.id} < set(await all_ids(index))
    assert await index.count() == 3


async def test_a_repair_that_was_cut_off_goes_on_where_it_was(documents: Documents, index: VectorIndex) -> None:
    messages = await finish_all(documents, 100)
    embedder = CountingEmbedder(fails_after=64)
    with pytest.raises(ModelUnavailable):
        await repair(documents.conversations, index, embedder)
    done = await index.count()
    assert 64 <= done < len(messages)
    embedder = CountingEmbedder()
    assert await repair(documents.conversations, index, embedder) == Repaired(len(messages) - done, 0)
    assert len(embedder.texts) == len(messages) - done


async def test_repairs_at_once_do_no_harm(documents: Documents, index: VectorIndex) -> None:
    messages = await finish_all(documents)
    await asyncio.gather(*(repair(documents.conversations, index, CountingEmbedder()) for _ in range(3)))
    assert await all_ids(index) == sorted(message.id for message in messages)
