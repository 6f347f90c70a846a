"""Opens the stores that a configuration names: the lock on DATA_DIR, the store, the index and its embedder.

A composition root below `opening`, which adds the services. A backend is imported when it is opened, in a thread: an
import reads from the disk.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from recollect.memory.background.bulk import Bulk
from recollect.memory.erasure.fenced_index import FencedIndex
from recollect.memory.erasure.fences import Fences
from recollect.memory.index.paired_index import PairedIndex
from recollect.memory.index.query_cache import CachedEmbedder
from recollect.memory.index.serving_embedder import ServingEmbedder
from recollect.memory.index.sides import EmbedderSides, Side
from recollect.memory.opening.embedders import configured_for, index_opener, provider_of, spec_of
from recollect.memory.opening.observed import ObservedEmbedder
from recollect.memory.ports.embedder import EmbedderSpec
from recollect.memory.ports.observing import UNOBSERVED, Observer
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import VectorIndex
from recollect.memory.providers.catalog import open_embedder
from recollect.memory.values.filtering.keys import read_filter_keys
from recollect.memory.values.frozen import frozen
from recollect.memory.values.mem_config import IN_MEMORY, MemoryConfig
from recollect.memory.values.times import Clock, utc_now

if TYPE_CHECKING:
    from recollect.memory.stores.data_dir import Owner
    from recollect.memory.stores.terminal_history import TerminalHistory


Entered = TypeVar("Entered")


@frozen
class Stores:
    """Holds open stores without services: for commands that look at them, or rebuild the index."""

    config: MemoryConfig
    store: Store
    index: VectorIndex
    embedder: ServingEmbedder
    clock: Clock
    fences: Fences
    bulk: Bulk
    sides: EmbedderSides


@asynccontextmanager
async def open_stores(
    config: MemoryConfig, *, url: str | None = None, clock: Clock = utc_now
) -> AsyncGenerator[Stores]:
    """Open store, index and embedder alone: no updates run, nothing is repaired.

    `url` is this process's address, for the lock file of DATA_DIR.

    Raises:
        ConfigurationError: a setting is wrong, or DATA_DIR has another owner. A server that is down raises no error.
    """
    async with AsyncExitStack() as stack:
        config = await take_data_dir(stack, config, url)
        yield await enter_stores(stack, config, clock, open_bulk(stack, config))


@asynccontextmanager
async def open_store(config: MemoryConfig) -> AsyncGenerator[Store]:
    """Open the store alone.

    Raises:
        ConfigurationError: a setting is wrong, or the store is in a DATA_DIR that has another owner.
    """
    async with AsyncExitStack() as stack:
        if config.mongodb_url is None:
            config = await take_data_dir(stack, config, None)
        yield await stack.enter_async_context(await asyncio.to_thread(_open_store, config))


async def take_data_dir(
    stack: AsyncExitStack, config: MemoryConfig, url: str | None, token: str | None = None
) -> MemoryConfig:
    """Own DATA_DIR until the stack closes, where one of the stores is in it; see `own_data_dir`.

    Return the configuration to use: where DATA_DIR is `:memory:`, it names the folder that was made for it.

    Raises:
        ConfigurationError: another process owns DATA_DIR, or it cannot be used.
    """
    if config.data_dir == IN_MEMORY:
        from recollect.memory.stores.private_dir import private_dir

        config = config.replace(data_dir=await _enter_in_thread(stack, private_dir()))
    if config.mongodb_url is None or config.qdrant_url is None:
        await _enter_in_thread(stack, await asyncio.to_thread(_owned_data_dir, config, url, token))
    return config


def open_bulk(stack: AsyncExitStack, config: MemoryConfig) -> Bulk:
    """Open the threads for bulk work until the stack closes."""
    bulk = Bulk(config.bulk_workers)
    stack.callback(bulk.close)
    return bulk


async def enter_stores(
    stack: AsyncExitStack, config: MemoryConfig, clock: Clock, bulk: Bulk, observer: Observer = UNOBSERVED
) -> Stores:
    """Open store, index and embedder until the stack closes."""
    store = observer.store(await stack.enter_async_context(await asyncio.to_thread(_open_store, config)))
    fences = Fences(store.erasures)
    open_index = index_opener(config)

    @asynccontextmanager
    async def open_side(spec: EmbedderSpec) -> AsyncGenerator[Side]:
        async with open_embedder(configured_for(config, spec), bulk) as opened:
            embedder = CachedEmbedder(ObservedEmbedder(opened, observer, provider_of(spec, config)))
            async with open_index(embedder) as index:
                fenced = FencedIndex(observer.index(index), store, fences)
                yield Side(spec, embedder, fenced, config.qdrant_collection)

    # An object that embeds, given by a program, has no name by which a record could open it again.
    choices = None if config.given_embeddings is not None else store.embedder_choices
    sides = await stack.enter_async_context(EmbedderSides(choices, spec_of(config), open_side))
    index = PairedIndex(sides, store.timeline, name=sides.serving.index.name)
    return Stores(config, store, index, ServingEmbedder(sides), clock, fences, bulk, sides)


def data_dir_owner(config: MemoryConfig) -> "Owner | None":
    """Return the process that owns DATA_DIR now; None where none does, or the configuration keeps nothing in it.

    Raises:
        ConfigurationError: DATA_DIR cannot be used.
    """
    if config.data_dir == IN_MEMORY or (config.mongodb_url is not None and config.qdrant_url is not None):
        return None
    from recollect.memory.stores.data_dir import read_owning_process

    return read_owning_process(config.data_dir)


def terminal_history(config: MemoryConfig) -> "TerminalHistory":
    """Return the history of terminals for this DATA_DIR; its files are opened when they are read or written."""
    from recollect.memory.stores.terminal_history import TerminalHistory

    return TerminalHistory(config.data_dir)


def _owned_data_dir(
    config: MemoryConfig, url: str | None, token: str | None
) -> contextlib.AbstractContextManager[object]:
    """Return the lock on DATA_DIR. Call it in a thread, like every opener below: it imports from the disk."""
    from recollect.memory.stores.data_dir import own_data_dir

    return own_data_dir(config.data_dir, url=url, token=token)


def _open_store(config: MemoryConfig) -> AbstractAsyncContextManager[Store]:
    keys = read_filter_keys(config.filter_keys)
    if config.mongodb_url is not None:
        from recollect.memory.stores.mongo import open_mongo_store

        return open_mongo_store(
            config.mongodb_url,
            config.mongodb_database,
            prefix=config.mongodb_prefix,
            pool=config.mongodb_pool,
            keys=keys,
        )
    from recollect.memory.stores.sqlite import open_sqlite_store

    return open_sqlite_store(config.data_dir / "recollect.db", keys=keys)


async def _enter_in_thread(stack: AsyncExitStack, manager: contextlib.AbstractContextManager[Entered]) -> Entered:
    """Enter `manager` in a thread, and leave it in one: both use the disk."""
    entered = await asyncio.to_thread(manager.__enter__)

    async def leave(
        kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await asyncio.to_thread(manager.__exit__, kind, error, traceback)

    stack.push_async_exit(leave)
    return entered
