"""Opening the stores that a configuration names: the lock on DATA_DIR, documents, index, and the embedder between them.

A composition root, as `opening` is, which puts the work on top. What is opened is imported then, from disk: in threads.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory.documents import Documents
from memory.embedder import Embedder
from memory.fenced_index import FencedIndex
from memory.fences import Fences
from memory.lazy_index import LazyIndex
from memory.mem_config import MemoryConfig
from memory.observed import ObservedEmbedder
from memory.observing import UNOBSERVED, Observer
from memory.providers.catalog import open_embedder
from memory.query_cache import CachedEmbedder
from memory.times import Clock, utc_now
from memory.vector_index import VectorIndex

if TYPE_CHECKING:
    from memory.stores.data_dir import Owner
    from memory.stores.terminal_history import TerminalHistory


@dataclass(frozen=True, slots=True)
class Stores:
    """Open stores with nothing at work in them: for commands that look at them, or rebuild the index."""

    config: MemoryConfig
    documents: Documents
    index: VectorIndex
    embedder: CachedEmbedder
    clock: Clock
    fences: Fences


@asynccontextmanager
async def open_stores(
    config: MemoryConfig, *, url: str | None = None, clock: Clock = utc_now
) -> AsyncGenerator[Stores]:
    """Open documents, index and embedder alone: no updates are worked off, nothing is repaired.

    `url` is where this process serves, for the lock file of DATA_DIR.

    Raises:
        ConfigurationError: a setting is wrong, or DATA_DIR has another owner. A server that is down is no error.
    """
    async with AsyncExitStack() as stack:
        await take_data_dir(stack, config, url)
        yield await enter_stores(stack, config, clock)


@asynccontextmanager
async def open_documents(config: MemoryConfig) -> AsyncGenerator[Documents]:
    """Open the documents alone.

    Raises:
        ConfigurationError: a setting is wrong, or DATA_DIR, where they are kept, has another owner.
    """
    async with AsyncExitStack() as stack:
        if config.mongodb_url is None:
            await take_data_dir(stack, config, None)
        yield await stack.enter_async_context(await asyncio.to_thread(_open_documents, config))


async def take_data_dir(stack: AsyncExitStack, config: MemoryConfig, url: str | None, token: str | None = None) -> None:
    """Own DATA_DIR until the stack closes, where one of the stores is in it; see `own_data_dir`.

    Raises:
        ConfigurationError: another process has it, or it cannot be used.
    """
    if config.mongodb_url is None or config.qdrant_url is None:
        await _enter_in_thread(stack, await asyncio.to_thread(_owned_data_dir, config, url, token))


async def enter_stores(
    stack: AsyncExitStack, config: MemoryConfig, clock: Clock, observer: Observer = UNOBSERVED
) -> Stores:
    """Open documents, index and embedder until the stack closes."""
    embedder = CachedEmbedder(ObservedEmbedder(await stack.enter_async_context(open_embedder(config)), observer))
    documents = await stack.enter_async_context(await asyncio.to_thread(_open_documents, config))
    index = await stack.enter_async_context(_lazy_index(config, embedder))
    documents = observer.store("documents", documents)
    fences = Fences(documents.erasures)
    return Stores(
        config, documents, FencedIndex(observer.store("index", index), documents, fences), embedder, clock, fences
    )


def data_dir_owner(config: MemoryConfig) -> "Owner | None":
    """The process that owns DATA_DIR now; None where none does, or where everything is kept on servers.

    Raises:
        ConfigurationError: DATA_DIR cannot be used.
    """
    if config.mongodb_url is not None and config.qdrant_url is not None:
        return None
    from memory.stores.data_dir import read_owner

    return read_owner(config.data_dir)


def terminal_history(config: MemoryConfig) -> "TerminalHistory":
    """What users typed at terminals beside this DATA_DIR; nothing is opened before it is read or written."""
    from memory.stores.terminal_history import TerminalHistory

    return TerminalHistory(config.data_dir)


def _owned_data_dir(
    config: MemoryConfig, url: str | None, token: str | None
) -> contextlib.AbstractContextManager[object]:
    """The lock on DATA_DIR. Like every opener below it imports what it opens, from disk: not on the event loop."""
    from memory.stores.data_dir import own_data_dir

    return own_data_dir(config.data_dir, url=url, token=token)


def _open_documents(config: MemoryConfig) -> AbstractAsyncContextManager[Documents]:
    if config.mongodb_url is not None:
        from memory.stores.mongo import open_mongo_documents

        return open_mongo_documents(config.mongodb_url, config.mongodb_database)
    from memory.stores.sqlite import open_sqlite_documents

    return open_sqlite_documents(config.data_dir / "recollect.db")


def _lazy_index(config: MemoryConfig, embedder: Embedder) -> LazyIndex:
    base, model = config.qdrant_collection, embedder.model

    def open_server(dimension: int) -> AbstractAsyncContextManager[VectorIndex]:
        from memory.stores.qdrant_index import QdrantServer, open_qdrant_index

        server = QdrantServer(
            config.qdrant_url or "",
            api_key=config.qdrant_api_key,
            prefer_grpc=config.qdrant_prefer_grpc,
            grpc_port=config.qdrant_grpc_port,
        )
        return open_qdrant_index(server, base=base, model=model, dimension=dimension)

    def open_embedded(dimension: int) -> AbstractAsyncContextManager[VectorIndex]:
        from memory.stores.edge_index import open_edge_index

        return open_edge_index(config.data_dir / "index", base=base, model=model, dimension=dimension)

    if config.qdrant_url is not None:
        return LazyIndex("qdrant", embedder, open_server)
    return LazyIndex("qdrant-edge", embedder, open_embedded)


async def _enter_in_thread(stack: AsyncExitStack, manager: contextlib.AbstractContextManager[object]) -> None:
    """Enter a manager whose entry may block for a moment; its exit does not."""
    await asyncio.to_thread(manager.__enter__)
    stack.push(manager.__exit__)
