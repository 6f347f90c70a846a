"""The composition root of the memory: chooses the backends that a configuration names, opens them and closes them."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from memory.chat_model import ChatModel
from memory.documents import Documents
from memory.embedder import Embedder
from memory.errors import ConfigurationError, RecollectError
from memory.extractor import Extractor
from memory.indexing import IndexStep, repair
from memory.lazy_index import LazyIndex
from memory.learning import FactsStep
from memory.mem_config import MemoryConfig
from memory.memory import Memory
from memory.providers.catalog import open_chat_model, open_embedder, open_extraction_chat
from memory.providers.endpoint import endpoint
from memory.providers.probe import check_models
from memory.recall import Recall
from memory.times import Clock, utc_now
from memory.updater import Updater
from memory.vector_index import VectorIndex

logger = logging.getLogger(__name__)

REPAIR_HEAD_START_SECONDS = 1.0
"""How long a start waits for the index's repair; a longer one goes on behind the service."""
REPAIR_RETRY_SECONDS = 5.0


@asynccontextmanager
async def open_memory(
    config: MemoryConfig, *, url: str | None = None, clock: Clock = utc_now
) -> AsyncGenerator[Memory]:
    """Open everything that `config` names; at the end drain the updates and close it all.

    `url` is where this process serves, for the lock file of DATA_DIR.

    Raises:
        ConfigurationError: a setting is wrong, DATA_DIR has another owner, or the provider refuses key or model. A
            provider, MongoDB or Qdrant that cannot be reached is no error.
    """
    async with AsyncExitStack() as stack:
        if config.mongodb_url is None or config.qdrant_url is None:
            await _enter_in_thread(stack, await asyncio.to_thread(_owned_data_dir, config, url))
        await check_models(config)
        chat = await stack.enter_async_context(open_chat_model(config))
        extraction_model, extractor = await _open_extractor(stack, config)
        embedder = await stack.enter_async_context(open_embedder(config))
        documents = await stack.enter_async_context(await asyncio.to_thread(_open_documents, config))
        index = await stack.enter_async_context(_lazy_index(config, embedder))
        updater = Updater(
            documents,
            {
                "facts": FactsStep(documents.facts, extractor, clock),
                "index": IndexStep(index, embedder),
            },
            clock=clock,
            concurrency=config.update_concurrency,
            sweep_seconds=config.sweep_seconds,
        )
        updater.start()
        stack.push_async_callback(updater.drain, config.shutdown_seconds)
        repairing = asyncio.create_task(_keep_repairing(documents, index, embedder), name="index-repair")
        stack.push_async_callback(_cancel, repairing)
        await asyncio.wait({repairing}, timeout=REPAIR_HEAD_START_SECONDS)
        if repairing.done():
            repairing.result()
        yield Memory(
            config=config,
            documents=documents,
            index=index,
            embedder=embedder,
            chat=chat,
            extraction_model=extraction_model,
            recall=Recall(documents, index, embedder, config, clock),
            updater=updater,
            clock=clock,
        )


def _owned_data_dir(config: MemoryConfig, url: str | None) -> contextlib.AbstractContextManager[object]:
    """The lock on DATA_DIR. Like every opener below it imports what it opens, from disk: not on the event loop."""
    from memory.stores.data_dir import own_data_dir

    return own_data_dir(config.data_dir, url=url)


async def _open_extractor(stack: AsyncExitStack, config: MemoryConfig) -> tuple[str, Extractor]:
    chat: ChatModel = await stack.enter_async_context(open_extraction_chat(config))
    if endpoint(config) is None:
        from memory.providers.offline import OfflineExtractor

        return chat.name, OfflineExtractor()
    from memory.extraction import ModelExtractor

    return chat.name, ModelExtractor(chat)


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


async def _keep_repairing(documents: Documents, index: VectorIndex, embedder: Embedder) -> None:
    """Repair the index once, trying again while a backend is down.

    Raises:
        ConfigurationError: the index can never serve (a Qdrant server that is too old, say); it stops the start.
    """
    while True:
        try:
            repaired = await repair(documents.conversations, index, embedder)
            if repaired.added or repaired.removed:
                logger.warning(
                    "index repaired from the documents",
                    extra={"action": "index_repaired", "added": repaired.added, "removed": repaired.removed},
                )
            others = await index.other_collections()
        except ConfigurationError:
            raise
        except RecollectError as error:
            logger.warning("index not repaired yet", extra={"action": "repair_waits", "error": type(error).__name__})
            await asyncio.sleep(REPAIR_RETRY_SECONDS)
        else:
            if others:
                logger.warning(
                    "collections of other embedders are not searched",
                    extra={"action": "other_collections", "collections": others},
                )
            return


async def _enter_in_thread(stack: AsyncExitStack, manager: contextlib.AbstractContextManager[object]) -> None:
    """Enter a manager whose entry may block for a moment; its exit does not."""
    await asyncio.to_thread(manager.__enter__)
    stack.push(manager.__exit__)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
