"""The composition root of the memory: chooses the backends that a configuration names, opens them and closes them."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

from memory.batching import Batching
from memory.bounds import Bounds
from memory.data_holders import data_holders
from memory.document_book import DocumentBook
from memory.document_indexing import DocumentIndexing
from memory.erasing import Erasing
from memory.errors import ConfigurationError, RecollectError
from memory.fact_book import FactBook
from memory.finding import Finding
from memory.following import Following
from memory.indexing import IndexStep, repair
from memory.key_ring import KeyRing
from memory.known_facts import Nomination
from memory.known_passages import KnownPassages
from memory.learning import FactsStep
from memory.mem_config import MemoryConfig
from memory.memory import Memory
from memory.observed import ObservedChat, ObservedStep
from memory.observing import UNOBSERVED, Observer
from memory.opening_models import LearningModels, open_models
from memory.opening_stores import Stores, enter_stores, take_data_dir, terminal_history
from memory.owed_points import OwedPoints
from memory.providers.catalog import (
    open_chat_model,
    open_reranker,
)
from memory.providers.probe import check_models
from memory.recall import Recall
from memory.reconciliation import Review
from memory.shelf import Shelf
from memory.summaries import SummaryStep
from memory.text_learning import TextLearning
from memory.thread_book import ThreadBook
from memory.times import Clock, utc_now
from memory.turn_book import TurnBook
from memory.update import StepName
from memory.updater import Updater
from memory.user_work import StepWork

logger = logging.getLogger(__name__)

REPAIR_HEAD_START_SECONDS = 1.0
"""How long a start waits for the index's repair; a longer one goes on behind the service."""
REPAIR_RETRY_SECONDS = 5.0


@asynccontextmanager
async def open_memory(
    config: MemoryConfig,
    *,
    url: str | None = None,
    token: str | None = None,
    clock: Clock = utc_now,
    observer: Observer = UNOBSERVED,
) -> AsyncGenerator[Memory]:
    """Open everything that `config` names; at the end drain the updates and close it all.

    `url` is where this process serves, and `token` what it takes from this machine's administrator, for the lock file
    of DATA_DIR. `observer` hears of the work.

    Raises:
        ConfigurationError: a setting is wrong, DATA_DIR has another owner, or the provider refuses key or model. A
            provider, MongoDB or Qdrant that cannot be reached is no error.
    """
    async with AsyncExitStack() as stack:
        await take_data_dir(stack, config, url, token)
        await check_models(config)
        chat = ObservedChat(await stack.enter_async_context(open_chat_model(config)), observer)
        models = await open_models(stack, config, observer)
        reranker = await stack.enter_async_context(open_reranker(config))
        stores = await enter_stores(stack, config, clock, observer)
        documents, index, embedder = stores.documents, stores.index, stores.embedder
        points = OwedPoints(documents, index, embedder, sweep_seconds=config.sweep_seconds)
        bounds = Bounds(documents, index, config, clock)
        shelf = Shelf(documents.library, clock)
        facts_step = _facts_step(stores, models, points, bounds, shelf)
        stores.fences.listeners.append(facts_step.forget)
        steps: dict[StepName, StepWork] = {
            "facts": facts_step,
            "index": IndexStep(index, embedder, documents.timeline),
            "summary": SummaryStep(documents, models.summarizer, config, clock, points),
        }
        updater = Updater(
            documents,
            {name: ObservedStep(name, step, observer) for name, step in steps.items()},
            clock=clock,
            concurrency=config.update_concurrency,
            sweep_seconds=config.sweep_seconds,
        )
        keys = KeyRing(documents.keys, clock)
        erasing = _erasing(stores, keys)
        await erasing.prepare()
        updater.start()
        stack.push_async_callback(updater.drain, config.shutdown_seconds)
        repairing = asyncio.create_task(_keep_repairing(stores), name="index-repair")
        stack.push_async_callback(_cancel, repairing)
        await asyncio.wait({repairing}, timeout=REPAIR_HEAD_START_SECONDS)
        if repairing.done():
            repairing.result()
        threads = ThreadBook(documents, index, points, updater, erasing, models.summarizer, config, clock)
        indexing = DocumentIndexing(
            documents, index, embedder, stores.fences, clock, sweep_seconds=config.sweep_seconds
        )
        following = [_following(stores)] if documents.erasures.is_shared else []
        for keeper in (points, bounds, threads, indexing, erasing, *following):
            keeper.start()
            stack.push_async_callback(keeper.close)
        yield Memory(
            config=config,
            documents=documents,
            index=index,
            embedder=embedder,
            chat=chat,
            extraction_model=models.name,
            recall=Recall(documents, Finding(documents, index, embedder, config, reranker), config, clock, shelf),
            updater=updater,
            facts=FactBook(documents, points, updater, clock, config.memory_wait_seconds, bounds, stores.fences),
            turns=TurnBook(documents, points, updater, facts_step, clock, config.memory_wait_seconds),
            threads=threads,
            library=_document_book(stores, indexing, shelf),
            texts=TextLearning(
                documents, facts_step, points, updater, bounds, stores.fences, clock, config.memory_wait_seconds
            ),
            points=points,
            bounds=bounds,
            keys=keys,
            fences=stores.fences,
            erasing=erasing,
            clock=clock,
            observer=observer,
        )


def _following(stores: Stores) -> Following:
    """What lets this process's index follow erasures of other processes, at the latest when their users come back."""
    lines = terminal_history(stores.config)
    following = Following(stores.documents, stores.index, stores.fences, lines, stores.clock)
    stores.fences.follow = following.follow
    return following


def _erasing(stores: Stores, keys: KeyRing) -> Erasing:
    """What erases, over every data holder: the stores, and what lies beside them in DATA_DIR."""
    holders = data_holders(
        stores.documents,
        stores.index,
        keys=keys.delete,
        lines=terminal_history(stores.config),
        cache=stores.embedder,
    )
    return Erasing(stores.documents.erasures, stores.fences, holders, stores.clock, stores.config.sweep_seconds)


def _facts_step(stores: Stores, models: LearningModels, points: OwedPoints, bounds: Bounds, shelf: Shelf) -> FactsStep:
    config = stores.config
    return FactsStep(
        documents=stores.documents,
        extractor=models.extractor,
        nomination=Nomination(stores.index, stores.embedder, config.duplicate_similarity),
        passages=KnownPassages(
            shelf, stores.documents.library, stores.index, stores.embedder, config.duplicate_similarity
        ),
        points=points,
        batching=Batching(stores.documents, config),
        review=Review(config.review, config.sensitive_tags),
        schema=models.schema,
        bounds=bounds,
        fences=stores.fences,
        clock=stores.clock,
    )


def _document_book(stores: Stores, indexing: DocumentIndexing, shelf: Shelf) -> DocumentBook:
    from memory.providers.reading.limits import Limits
    from memory.providers.reading.reader import FileReader
    from memory.providers.splitter import LangChainSplitter

    config = stores.config
    limits = Limits(config.max_document_pages, config.max_document_characters, config.max_unpacked_mb * 1_000_000)
    return DocumentBook(
        documents=stores.documents,
        reader=FileReader(limits),
        splitter=LangChainSplitter(),
        indexing=indexing,
        shelf=shelf,
        fences=stores.fences,
        config=config,
        clock=stores.clock,
    )


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


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
