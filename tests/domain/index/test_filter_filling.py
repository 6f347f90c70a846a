"""Terms are filled in after a change of the keys: over kills and outages, without embedding, and for every embedder."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from typing_extensions import override

from recollect.memory.index.expected import fact_entry
from recollect.memory.index.filter_filling import FilterFilling
from recollect.memory.index.indexing import make_points
from recollect.memory.ports.embedder import Embedder
from recollect.memory.ports.filtering.filter_terms import Filling
from recollect.memory.ports.forwarding_index import ForwardingIndex
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import Allowance, Entry, Point, Query, VectorIndex
from recollect.memory.stores.edge.index import open_edge_index
from recollect.memory.stores.sqlite import open_sqlite_store
from recollect.memory.values.errors import IndexUnavailable
from recollect.memory.values.filtering.keys import NO_KEYS, FilterKeys, read_filter_keys
from recollect.memory.values.filtering.narrowing import narrowing
from recollect.memory.values.filtering.reading import read_filter
from recollect.memory.values.scope import Scope
from tests.contracts.store.samples import fact
from tests.domain.support.indexed import CountingEmbedder, tell

KEYS = read_filter_keys("k:keyword")
USERS = ("ada", "bob", "eve")
IN_K = narrowing(read_filter({"k": "a"}), KEYS, "fact").surely


class DownFor(ForwardingIndex):
    """Forwards to an index, and is down for one user's terms."""

    name = "qdrant-edge"

    def __init__(self, index: VectorIndex, user_id: str | None) -> None:
        self._index = index
        self.user_id = user_id
        self.seen: list[str] = []

    @override
    async def _opened(self) -> VectorIndex:
        return self._index

    @override
    async def retouch(self, entries: Sequence[Entry]) -> int:
        self.seen += [entry.user_id for entry in entries]
        if self.user_id in self.seen:
            raise IndexUnavailable
        return await super().retouch(entries)


@asynccontextmanager
async def opened(folder: Path, keys: FilterKeys) -> AsyncGenerator[tuple[Store, VectorIndex]]:
    embedder = CountingEmbedder()
    dimension = await embedder.dimension()
    async with (
        open_sqlite_store(folder / "recollect.db", keys=keys) as store,
        open_edge_index(folder / "index", base="test", model=embedder.model, dimension=dimension, keys=keys) as index,
    ):
        yield store, index


async def fill_until(store: Store, index: VectorIndex, embedder: Embedder, wanted: Filling, keys: FilterKeys) -> None:
    """Run a filling until the store's record is the wanted one, then stop it."""
    filling = FilterFilling(store, index, embedder, keys)
    filling.start()
    async with asyncio.timeout(10):
        while await store.filter_terms.filling() != wanted:  # noqa: ASYNC110 - the record is the store's
            await asyncio.sleep(0.005)
    await filling.close()


async def found(index: VectorIndex, user_id: str) -> set[str]:
    vector = await CountingEmbedder().embed_query("name")
    query = Query(Scope(user_id), vector, 99, ("fact", "episode"), allowed=Allowance(frozenset(), IN_K))
    return {match.entry.kind for match in await index.search(query)}


async def points_of(user_id: str, store: Store) -> Sequence[Point]:
    """Make the points of the user's facts."""
    entries = [fact_entry(one) async for page in store.facts.indexed(user_id=user_id) for one in page]
    return await make_points(entries, CountingEmbedder())


async def test_a_filling_goes_on_where_it_was_cut_off_and_embeds_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path, NO_KEYS) as (store, index):
        for user_id in USERS:
            await tell(store, index, 2, user_id=user_id)
            await store.facts.insert(fact(user_id=user_id, metadata={"k": "a"}, indexed=True))
            await index.upsert(await points_of(user_id, store))
    embedder = CountingEmbedder()
    name = f"{embedder.model}/{await embedder.dimension()}"
    async with opened(tmp_path, KEYS) as (store, index):
        down = DownFor(index, "bob")
        await fill_until(store, down, embedder, Filling(KEYS.digest, name, "bo", keys="k:keyword"), KEYS)
        assert [await found(index, user_id) for user_id in USERS] == [{"fact"}, set(), set()]
    async with opened(tmp_path, KEYS) as (store, index):
        up = DownFor(index, None)
        await fill_until(store, up, embedder, Filling(KEYS.digest, name, is_done=True, keys="k:keyword"), KEYS)
        assert "ada" not in up.seen
        assert [await found(index, user_id) for user_id in USERS] == [{"fact"}] * 3
        assert embedder.texts == []
        again = DownFor(index, None)
        filling = FilterFilling(store, again, embedder, KEYS)
        filling.start()
        await asyncio.sleep(0.05)
        await filling.close()
        assert again.seen == []


async def test_another_embedders_points_get_their_terms_too(tmp_path: Path) -> None:
    embedder, other = CountingEmbedder(), CountingEmbedder()
    other.model = "lexical-v2"
    names = [f"{each.model}/{await each.dimension()}" for each in (embedder, other)]
    async with opened(tmp_path, KEYS) as (store, index):
        await tell(store, index, 1)
        await fill_until(store, index, embedder, Filling(KEYS.digest, names[0], is_done=True, keys="k:keyword"), KEYS)
        seen = DownFor(index, None)
        await fill_until(store, seen, other, Filling(KEYS.digest, names[1], is_done=True, keys="k:keyword"), KEYS)
        assert set(seen.seen) == {"ada"}


async def test_of_two_processes_with_different_keys_the_later_one_fills_and_both_say_so(tmp_path: Path) -> None:
    async with opened(tmp_path, KEYS) as (store, index):
        first = FilterFilling(store, index, CountingEmbedder(), NO_KEYS, seconds=0.01)
        first.start()
        await until_filled(store, NO_KEYS)
        later = FilterFilling(store, index, CountingEmbedder(), KEYS, seconds=0.01)
        later.start()
        async with asyncio.timeout(10):
            while first.warning is None or later.warning is None:  # noqa: ASYNC110 - each reads the record in its turn
                await asyncio.sleep(0.005)
        assert "none here, and k:keyword in a process that started later" in first.warning
        assert "k:keyword here, and none in a process beside this one" in later.warning
        await first.close()
        await later.close()
        # A start fills in what the first one has written meanwhile, and has nothing to say.
        await tell(store, index, 1)
        up = DownFor(index, None)
        again = FilterFilling(store, up, CountingEmbedder(), KEYS, seconds=0.01)
        again.start()
        await until_filled(store, KEYS)
        assert (again.warning, set(up.seen)) == (None, {"ada"})
        await again.close()


async def until_filled(store: Store, keys: FilterKeys) -> None:
    """Wait until the record says that all items have terms of these keys, and names no others."""
    async with asyncio.timeout(10):
        while True:
            seen = await store.filter_terms.filling()
            if seen is not None and seen.is_done and (seen.keys, seen.others) == (keys.as_text, ""):
                return
            await asyncio.sleep(0.005)
