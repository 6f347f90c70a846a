"""How many candidates a search goes on with, over real stores."""

import random
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from typing_extensions import override

from recollect.memory.index.expected import fact_entry
from recollect.memory.index.indexing import make_points
from recollect.memory.ports.forwarding_index import ForwardingIndex
from recollect.memory.ports.vector_index import Entry, Query, VectorIndex
from recollect.memory.providers.lexical import LexicalEmbedder
from recollect.memory.recall.attachments import Attachments
from recollect.memory.recall.candidates.candidate_query import SMALL_MEMORY, WHOLE_DEPTH, depth_for
from recollect.memory.recall.candidates.choosing import promising
from recollect.memory.recall.recall import Recall
from recollect.memory.recall.recall_options import RecallOptions
from recollect.memory.recall.request import Request
from recollect.memory.recall.search import Search
from recollect.memory.values.mem_config import MemoryConfig
from recollect.memory.values.scope import Scope
from tests.contracts.store.samples import NOW
from tests.domain.support.indexed import learn
from tests.domain.support.talks import T1, Stores, index_all, open_stores, say, say_all

TEA = "Which tea do I like in the morning?"
OPTIONS = RecallOptions(top_k=5)
SHOWN = 2 * OPTIONS.window
"""The messages that a turn shows: they are named with the others of a small memory, and dropped afterwards."""
SAID = 260
WORDS = [first + second for first in "bdfgklmnprstvz" for second in ("abu", "eko", "imi", "ona", "uta", "ande")]


@dataclass
class Counted(ForwardingIndex):
    """Passes every call on, and keeps what was asked for."""

    index: VectorIndex
    listed: list[int] = field(default_factory=list[int])
    read: int = 0

    def __post_init__(self) -> None:
        self.name = self.index.name

    @override
    async def _opened(self) -> VectorIndex:
        return self.index

    @override
    async def rank(self, queries: Sequence[Query]) -> list[dict[str, float]]:
        self.listed += [query.limit for query in queries if query.ids is None]
        return await self.index.rank(queries)

    @override
    async def entries(self, ids: Sequence[str]) -> list[Entry]:
        self.read += len(ids)
        return await self.index.entries(ids)


def different(count: int) -> list[str]:
    """Return texts of which none says what another does."""
    chosen = random.Random(7)
    others = [" ".join(chosen.choices(WORDS, k=chosen.randint(2, 30))) for _ in range(count)]
    return [f"I like tea in the morning, {other}." for other in others]


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncGenerator[Stores]:
    async with open_stores(tmp_path) as opened:
        await index_all(opened, await say_all(opened.store, different(SAID)))
        yield opened


async def asked(stores: Stores, request: Request) -> Counted:
    index = Counted(stores.index)
    found = await Search(stores.store, index, LexicalEmbedder(), MemoryConfig()).find(request, now=NOW)
    assert found.hits
    return index


@pytest.mark.parametrize(("hits", "depth"), [(1, 55), (5, 75), (10, 100), (30, 200), (50, 200)])
async def test_more_hits_are_looked_for_among_more(stores: Stores, hits: int, depth: int) -> None:
    index = await asked(stores, Request(Scope(T1.user_id), TEA, replace(OPTIONS, top_k=hits)))
    assert set(index.listed) == {min(150, depth)}
    assert depth_for(hits) == depth
    assert min(150, depth) <= index.read < 1.1 * depth, "and those whose texts may equal theirs"


@pytest.mark.parametrize(
    "request_",
    [
        Request(T1, TEA, OPTIONS),
        Request(Scope(T1.user_id), TEA, replace(OPTIONS, score_threshold=0.01)),
        Request(Scope(T1.user_id), "List all tea that I like in the morning.", OPTIONS),
    ],
    ids=["a thread", "a threshold", "coverage"],
)
async def test_a_late_candidate_is_kept_where_another_measure_may_keep_it(stores: Stores, request_: Request) -> None:
    index = await asked(stores, request_)
    assert set(index.listed) == {150}
    assert index.read > 150


@pytest.mark.parametrize(
    ("repeats", "others", "rounds"),
    [(45, 60, 1), (60, 10, 2), (80, 90, 3)],
    ids=["enough others are left", "few others are left", "some may not have been named"],
)
async def test_repeats_are_left_out_of_another_round_where_they_crowd(
    tmp_path: Path, repeats: int, others: int, rounds: int
) -> None:
    async with open_stores(tmp_path) as opened:
        texts = [*different(others), *["I like tea!"] * repeats]
        said = [await say(opened.store, text, turn_id=f"t{n}", reply=f"{n}") for n, text in enumerate(texts)]
        await index_all(opened, said)
        index = await asked(opened, Request(Scope(T1.user_id), TEA, OPTIONS))
    assert len(index.listed) == 2 * rounds


@pytest.mark.parametrize(
    ("turns", "listed"),
    [(SMALL_MEMORY, [150 + SHOWN, 150 + SHOWN]), (SMALL_MEMORY + 1, [75, 75, 50])],
    ids=["all of it", "the best, and those of the turn's thread"],
)
async def test_a_turn_lists_a_small_memory_whole(tmp_path: Path, turns: int, listed: list[int]) -> None:
    async with open_stores(tmp_path) as stores:
        await index_all(stores, await say_all(stores.store, different(turns)))
        index = Counted(stores.index)
        search = Search(stores.store, index, LexicalEmbedder(), MemoryConfig())
        attachments = Attachments(stores.store, lambda: NOW)
        recall = Recall(stores.store, search, MemoryConfig(), lambda: NOW, attachments)
        assert (await recall.search(T1, TEA, replace(OPTIONS, scope="auto"))).hits
    assert index.listed == listed


async def test_what_a_turn_shows_is_no_candidate_of_a_small_memory_either(tmp_path: Path) -> None:
    texts = [f"I like {tea} tea in the morning." for tea in ("green", "red", "mint")]
    async with open_stores(tmp_path) as stores:
        turns = [await say(stores.store, text, turn_id=f"t{n}") for n, text in enumerate(texts)]
        await index_all(stores, turns)
        learned = [
            await learn(stores.store, f"f{n}", user_id=T1.user_id, key=None, statement=text, turn_id=f"t{n}")
            for n, text in enumerate(texts)
        ]
        await stores.index.upsert(await make_points([fact_entry(fact) for fact in learned], LexicalEmbedder()))
        search = Search(stores.store, stores.index, LexicalEmbedder(), MemoryConfig())
        request = Request(Scope(T1.user_id), TEA, OPTIONS, shown=["t1", "t2"], for_turn=True, thread_id=T1.thread_id)

        small, large = [await search.find(replace(request, is_small=small), now=NOW) for small in (True, False)]

    assert {hit.entry.turn_id for hit in small.hits} == {"t0"}
    assert {hit.entry.kind for hit in small.hits} == {"episode", "fact"}
    assert small.hits == large.hits
    assert small.trace_json() == large.trace_json()


def test_the_best_sums_are_taken_and_all_that_may_equal_them() -> None:
    dense = {"a": 0.9, "b": 0.5, "c": 0.5000001, "d": 0.3, "e": 0.0, "f": 0.0}
    words = {"b": 9.0, "e": 8.0, "f": 1.0}
    assert promising([dense, words], 2) == ["b", "a", "c"], "c has the cosine of b"
    assert set(promising([dense, words], 3)) == {"a", "b", "c", "e"}, "a cosine of 0 says nothing of a text"
    assert set(promising([dense, words], WHOLE_DEPTH)) == {*dense}
