"""A search whose vector was asked for before it began, over real stores, with an embedder that waits."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from typing_extensions import override

from recollect.memory.ports.embedder import ForwardingEmbedder
from recollect.memory.providers.lexical import LexicalEmbedder
from recollect.memory.recall.attachments import Attachments
from recollect.memory.recall.recall import Recall
from recollect.memory.recall.recall_options import RecallOptions
from recollect.memory.recall.search import Search
from recollect.memory.recall.shown import Shown
from recollect.memory.values.errors import ModelUnavailable, StoreUnavailable
from recollect.memory.values.mem_config import MemoryConfig
from recollect.memory.values.turn import Exchange
from tests.contracts.store.samples import NOW
from tests.domain.support.talks import T1, Stores, index_all, open_stores, say_all

CONFIG = MemoryConfig(window=1)
OPTIONS = RecallOptions(window=1, top_k=5)
QUESTION = "Which tea do I like?"


@dataclass
class Gated(ForwardingEmbedder):
    """The lexical embedder; a query waits at its gate, and raises the error that is set."""

    gate: asyncio.Event = field(default_factory=asyncio.Event)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    error: Exception | None = None
    cancelled: bool = False
    is_trained: bool = False

    def __post_init__(self) -> None:
        super().__init__(LexicalEmbedder())

    @property
    @override
    def knows_meaning(self) -> bool:
        return self.is_trained

    @override
    async def embed_query(self, text: str) -> Sequence[float]:
        self.asked.set()
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        if self.error is not None:
            raise self.error
        return await super().embed_query(text)


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncGenerator[Stores]:
    async with open_stores(tmp_path) as opened:
        await index_all(opened, await say_all(opened.store, ["I like green tea.", "My dog is Rex.", "Good night."]))
        yield opened


def recall(stores: Stores, embedder: ForwardingEmbedder) -> Recall:
    search = Search(stores.store, stores.index, embedder, CONFIG)
    return Recall(stores.store, search, CONFIG, lambda: NOW, Attachments(stores.store, lambda: NOW))


async def test_hits_are_those_of_an_embedder_that_answers_at_once(stores: Stores) -> None:
    slow, quick = Gated(), Gated()
    quick.gate.set()
    searching = asyncio.create_task(recall(stores, slow).search(T1, QUESTION, OPTIONS))
    await asyncio.wait_for(slow.asked.wait(), 5)
    slow.gate.set()
    late, at_once = await searching, await recall(stores, quick).search(T1, QUESTION, OPTIONS)
    assert late.hits
    assert late.hits == at_once.hits
    assert late.trace_json() == at_once.trace_json()


async def test_the_vector_is_asked_for_before_the_window_is_read(stores: Stores) -> None:
    embedder = Gated()
    embedder.gate.set()

    async def window() -> list[Exchange]:
        await asyncio.wait_for(embedder.asked.wait(), 5)
        return []

    assert (await recall(stores, embedder).search(T1, QUESTION, OPTIONS, shown=Shown(window))).hits


async def test_nothing_is_embedded_while_all_may_be_shown(stores: Stores) -> None:
    embedder = Gated()
    found = await recall(stores, embedder).search(T1, QUESTION, RecallOptions(window=3, top_k=5))
    assert not found.hits
    assert not embedder.asked.is_set()


async def test_a_search_that_fails_meanwhile_gives_the_vector_up(stores: Stores) -> None:
    embedder = Gated()

    async def window() -> list[Exchange]:
        await embedder.asked.wait()
        raise StoreUnavailable

    with pytest.raises(StoreUnavailable):
        await recall(stores, embedder).search(T1, QUESTION, OPTIONS, shown=Shown(window))
    await asyncio.sleep(0)
    assert embedder.cancelled


async def test_an_embedder_that_fails_early_is_the_searchs_failure(stores: Stores) -> None:
    embedder = Gated(error=ModelUnavailable())
    embedder.gate.set()
    with pytest.raises(ModelUnavailable):
        await recall(stores, embedder).search(T1, QUESTION, OPTIONS)


async def test_a_vector_is_asked_for_before_the_search_where_the_last_search_needed_one(stores: Stores) -> None:
    embedder = Gated(is_trained=True)
    embedder.gate.set()
    recalling = recall(stores, embedder)

    async def is_foreseen(options: RecallOptions) -> bool:
        embedder.asked.clear()
        recalling.foresee(T1, QUESTION, options)
        await asyncio.sleep(0)  # in which the task that asks begins
        return embedder.asked.is_set()

    assert not await is_foreseen(OPTIONS), "nothing is known of the user yet"
    await recalling.search(T1, QUESTION, OPTIONS)
    assert await is_foreseen(OPTIONS)
    assert not await is_foreseen(replace(OPTIONS, window=3)), "the window shows all that was found"
    assert not await is_foreseen(replace(OPTIONS, enabled=False))
    assert not await is_foreseen(replace(OPTIONS, top_k=0))
    assert not await is_foreseen(replace(OPTIONS, scope="thread")), "nothing is known of the thread alone"
