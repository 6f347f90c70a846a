"""The composition root of the memory: chooses the backends that a configuration names, opens them and closes them."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory.batching import Batching
from memory.bounds import Bounds
from memory.documents import Documents
from memory.embedder import Embedder
from memory.errors import ConfigurationError, RecollectError
from memory.extraction_schema import WantedKeys
from memory.extractor import Extractor
from memory.fact_book import FactBook
from memory.finding import Finding
from memory.indexing import IndexStep, repair
from memory.known_facts import Nomination
from memory.lazy_index import LazyIndex
from memory.learning import FactsStep
from memory.mem_config import MemoryConfig
from memory.memory import Memory
from memory.owed_points import OwedPoints
from memory.providers.catalog import open_chat_model, open_embedder, open_extraction_chats, open_reranker
from memory.providers.endpoint import endpoint
from memory.providers.probe import check_models
from memory.query_cache import CachedEmbedder
from memory.recall import Recall
from memory.reconciliation import Review
from memory.summaries import SummaryStep
from memory.summarizer import Summarizer
from memory.thread_book import ThreadBook
from memory.times import Clock, utc_now
from memory.turn_book import TurnBook
from memory.updater import Updater
from memory.vector_index import VectorIndex

if TYPE_CHECKING:
    from memory.stores.data_dir import Owner

logger = logging.getLogger(__name__)

REPAIR_HEAD_START_SECONDS = 1.0
"""How long a start waits for the index's repair; a longer one goes on behind the service."""
REPAIR_RETRY_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Stores:
    """Open stores with nothing at work in them: for commands that look at them, or rebuild the index."""

    config: MemoryConfig
    documents: Documents
    index: LazyIndex
    embedder: Embedder
    clock: Clock


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
        await _take_data_dir(stack, config, url)
        yield await _enter_stores(stack, config, clock)


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
        await _take_data_dir(stack, config, url)
        await check_models(config)
        chat = await stack.enter_async_context(open_chat_model(config))
        models = await _open_models(stack, config)
        reranker = await stack.enter_async_context(open_reranker(config))
        stores = await _enter_stores(stack, config, clock)
        documents, index, embedder = stores.documents, stores.index, stores.embedder
        points = OwedPoints(documents, index, embedder, sweep_seconds=config.sweep_seconds)
        bounds = Bounds(documents, index, config, clock)
        facts_step = _facts_step(stores, models, points, bounds)
        updater = Updater(
            documents,
            {
                "facts": facts_step,
                "index": IndexStep(index, embedder, documents.timeline),
                "summary": SummaryStep(documents, models.summarizer, config, clock, points),
            },
            clock=clock,
            concurrency=config.update_concurrency,
            sweep_seconds=config.sweep_seconds,
        )
        updater.start()
        stack.push_async_callback(updater.drain, config.shutdown_seconds)
        repairing = asyncio.create_task(_keep_repairing(stores), name="index-repair")
        stack.push_async_callback(_cancel, repairing)
        await asyncio.wait({repairing}, timeout=REPAIR_HEAD_START_SECONDS)
        if repairing.done():
            repairing.result()
        threads = ThreadBook(documents, index, points, updater, models.summarizer, config, clock)
        for keeper in (points, bounds, threads):
            keeper.start()
            stack.push_async_callback(keeper.close)
        yield Memory(
            config=config,
            documents=documents,
            index=index,
            embedder=embedder,
            chat=chat,
            extraction_model=models.name,
            recall=Recall(documents, Finding(documents, index, embedder, config, reranker), config, clock),
            updater=updater,
            facts=FactBook(documents, points, updater, clock, config.memory_wait_seconds, bounds),
            turns=TurnBook(documents, points, updater, facts_step, clock, config.memory_wait_seconds),
            threads=threads,
            points=points,
            bounds=bounds,
            clock=clock,
        )


async def _take_data_dir(stack: AsyncExitStack, config: MemoryConfig, url: str | None) -> None:
    if config.mongodb_url is None or config.qdrant_url is None:
        await _enter_in_thread(stack, await asyncio.to_thread(_owned_data_dir, config, url))


async def _enter_stores(stack: AsyncExitStack, config: MemoryConfig, clock: Clock) -> Stores:
    embedder = CachedEmbedder(await stack.enter_async_context(open_embedder(config)))
    documents = await stack.enter_async_context(await asyncio.to_thread(_open_documents, config))
    index = await stack.enter_async_context(_lazy_index(config, embedder))
    return Stores(config, documents, index, embedder, clock)


def _facts_step(stores: Stores, models: "_Models", points: OwedPoints, bounds: Bounds) -> FactsStep:
    config = stores.config
    return FactsStep(
        documents=stores.documents,
        extractor=models.extractor,
        nomination=Nomination(stores.index, stores.embedder, config.duplicate_similarity),
        points=points,
        batching=Batching(stores.documents, config),
        review=Review(config.review, config.sensitive_tags),
        schema=models.schema,
        bounds=bounds,
        clock=stores.clock,
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


def _owned_data_dir(config: MemoryConfig, url: str | None) -> contextlib.AbstractContextManager[object]:
    """The lock on DATA_DIR. Like every opener below it imports what it opens, from disk: not on the event loop."""
    from memory.stores.data_dir import own_data_dir

    return own_data_dir(config.data_dir, url=url)


@dataclass(frozen=True, slots=True)
class _Models:
    """The models that learn; `name` is the first of EXTRACTION_MODEL, `schema` limits what is learned."""

    name: str
    extractor: Extractor
    summarizer: Summarizer
    schema: WantedKeys | None


async def _open_models(stack: AsyncExitStack, config: MemoryConfig) -> _Models:
    chats = await stack.enter_async_context(open_extraction_chats(config))
    rules, schema = await asyncio.to_thread(_extraction_files, config)
    name = chats.first.name
    if endpoint(config) is None:
        from memory.extractive_summary import ExtractiveSummarizer
        from memory.providers.offline import OfflineExtractor

        return _Models(name, OfflineExtractor(schema=schema), ExtractiveSummarizer(), schema)
    from memory.extraction import ModelExtractor
    from memory.summarizer import ModelSummarizer

    extractor = ModelExtractor(chats.models, open_named=chats.open_named, rules=rules, schema=schema)
    return _Models(name, extractor, ModelSummarizer(chats.models), schema)


def _extraction_files(config: MemoryConfig) -> tuple[str | None, WantedKeys | None]:
    """The extraction's own instructions and the keys that are wanted, where files give them."""
    from memory.providers.extraction_files import read_rules, read_schema

    return read_rules(config.extraction_prompt_file), read_schema(config.extraction_schema_file)


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


async def _keep_repairing(stores: Stores) -> None:
    """Repair the index once, trying again while a backend is down.

    Raises:
        ConfigurationError: the index can never serve (a Qdrant server that is too old, say); it stops the start.
    """
    while True:
        try:
            repaired = await repair(stores.documents, stores.index, stores.embedder)
            if repaired.added or repaired.removed:
                logger.warning(
                    "index repaired from the documents",
                    extra={"action": "index_repaired", "added": repaired.added, "removed": repaired.removed},
                )
            others = await stores.index.other_collections()
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
