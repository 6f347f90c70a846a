import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest

from recollect.memory.index.query_cache import LONGEST_KEPT, CachedEmbedder
from recollect.memory.ports.embedder import Embedder
from recollect.memory.values.errors import ModelUnavailable


class ScriptedEmbedder:
    """Counts its calls of each text; they wait while `released` is clear, and the next `failures` of them fail."""

    def __init__(self) -> None:
        self.model = "scripted"
        self.knows_meaning = True
        self.embeds_alike = False
        self.calls = Counter[str]()
        self.cancelled = 0
        self.failures = 0
        self.begun = asyncio.Semaphore(0)
        self.released = asyncio.Event()
        self.released.set()

    async def dimension(self) -> int:
        return 3

    async def embed_query(self, text: str) -> Sequence[float]:
        self.calls[text] += 1
        self.begun.release()
        try:
            await self.released.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.failures:
            self.failures -= 1
            raise ModelUnavailable
        return [len(text) / 3, 0.1, -1e-300]

    async def embed_documents(self, texts: Sequence[str]) -> list[Sequence[float]]:
        self.calls.update(texts)
        return [[float(len(text))] * 3 for text in texts]

    async def ping(self) -> None:
        self.calls["ping"] += 1


@pytest.fixture
async def scripted() -> ScriptedEmbedder:
    return ScriptedEmbedder()


async def test_a_query_is_embedded_once_and_comes_back_equal_to_the_last_bit(scripted: ScriptedEmbedder) -> None:
    cached: Embedder = CachedEmbedder(scripted)
    first = await cached.embed_query("Where did I park?")
    assert first == [17 / 3, 0.1, -1e-300]
    assert isinstance(first, list)
    first[0] = 9.0  # what a caller does with its vector is its own business
    assert await cached.embed_query("Where did I park?") == [17 / 3, 0.1, -1e-300]
    assert scripted.calls == {"Where did I park?": 1}


async def test_everything_else_is_the_embedders_own(scripted: ScriptedEmbedder) -> None:
    cached = CachedEmbedder(scripted)
    assert (cached.model, cached.knows_meaning, await cached.dimension()) == ("scripted", True, 3)
    assert await cached.embed_documents(["ab", "ab"]) == [[2.0] * 3] * 2
    await cached.embed_query("ab")
    await cached.ping()
    assert scripted.calls == {"ab": 3, "ping": 1}


async def test_a_message_that_was_searched_for_takes_its_query_s_vector(scripted: ScriptedEmbedder) -> None:
    scripted.embeds_alike = True
    cached = CachedEmbedder(scripted)
    asked = await cached.embed_query("ab")
    assert await cached.embed_documents(["abc", "ab", "abcd", "ab"]) == [[3.0] * 3, asked, [4.0] * 3, asked]
    assert await cached.embed_documents(["ab"]) == [asked]
    assert scripted.calls == {"ab": 1, "abc": 1, "abcd": 1}
    cached.clear()
    assert await cached.embed_documents(["ab"]) == [[2.0] * 3]


async def test_the_model_is_part_of_what_is_remembered(scripted: ScriptedEmbedder) -> None:
    cached = CachedEmbedder(scripted)
    await cached.embed_query("tea")
    scripted.model = "another"
    await cached.embed_query("tea")
    assert scripted.calls["tea"] == 2


async def test_the_query_that_was_not_asked_for_longest_is_forgotten(scripted: ScriptedEmbedder) -> None:
    cached = CachedEmbedder(scripted, most=2)
    for text in ("one", "two", "one", "three", "one", "two"):
        await cached.embed_query(text)
    assert scripted.calls == {"one": 1, "two": 2, "three": 1}


async def test_very_long_texts_are_not_kept(scripted: ScriptedEmbedder) -> None:
    cached = CachedEmbedder(scripted)
    for length in (LONGEST_KEPT, LONGEST_KEPT, LONGEST_KEPT + 1, LONGEST_KEPT + 1):
        await cached.embed_query("x" * length)
    assert [scripted.calls["x" * (LONGEST_KEPT + more)] for more in (0, 1)] == [1, 2]


async def test_equal_queries_at_the_same_time_share_one_call(scripted: ScriptedEmbedder) -> None:
    cached = CachedEmbedder(scripted)
    scripted.released.clear()
    waiting = [asyncio.create_task(cached.embed_query("tea")) for _ in range(5)]
    await scripted.begun.acquire()
    scripted.released.set()
    assert await asyncio.gather(*waiting) == [[1.0, 0.1, -1e-300]] * 5
    assert scripted.calls["tea"] == 1


async def test_a_failure_reaches_all_who_wait_and_is_not_kept(scripted: ScriptedEmbedder) -> None:
    cached = CachedEmbedder(scripted)
    scripted.released.clear()
    scripted.failures = 1
    waiting = [asyncio.create_task(cached.embed_query("tea")) for _ in range(3)]
    await scripted.begun.acquire()
    scripted.released.set()
    ended = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(end) for end in ended] == [ModelUnavailable] * 3
    assert await cached.embed_query("tea") == [1.0, 0.1, -1e-300]
    assert scripted.calls["tea"] == 2


async def test_whoever_leaves_first_takes_nothing_from_the_others(scripted: ScriptedEmbedder) -> None:
    cached = CachedEmbedder(scripted)
    scripted.released.clear()
    first, second = (asyncio.create_task(cached.embed_query("tea")) for _ in range(2))
    await scripted.begun.acquire()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    scripted.released.set()
    assert await second == [1.0, 0.1, -1e-300]
    assert (scripted.calls["tea"], scripted.cancelled) == (1, 0)


async def test_a_call_that_nobody_waits_for_ends_and_the_next_asks_again(scripted: ScriptedEmbedder) -> None:
    cached = CachedEmbedder(scripted)
    scripted.released.clear()
    left = [asyncio.create_task(cached.embed_query("tea")) for _ in range(2)]
    await scripted.begun.acquire()
    for task in left:
        task.cancel()
    await asyncio.wait(left)
    again = asyncio.create_task(cached.embed_query("tea"))
    await scripted.begun.acquire()
    scripted.released.set()
    assert await again == [1.0, 0.1, -1e-300]
    assert scripted.cancelled == 1
