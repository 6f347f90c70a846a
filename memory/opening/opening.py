"""Opens and closes a memory with the backends that a configuration names. The composition root."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from recollect.memory.documents.document_indexing import DocumentIndexing
from recollect.memory.documents.document_service import DocumentService
from recollect.memory.erasure.data_holders import ForeignHolder, data_holders
from recollect.memory.erasure.erasing import Erasing
from recollect.memory.erasure.tombstone_follower import TombstoneFollower
from recollect.memory.facts.fact_service import FactService
from recollect.memory.index.embedder_change import EmbedderChange
from recollect.memory.index.filter_filling import RETRY_SECONDS, FilterFilling
from recollect.memory.index.index_outbox import IndexOutbox
from recollect.memory.index.indexing import IndexStep, repair
from recollect.memory.index.vacuum import IndexVacuum
from recollect.memory.learning.batching import Batching
from recollect.memory.learning.facts_step import FactsStep
from recollect.memory.learning.known_facts import Nomination
from recollect.memory.learning.known_passages import KnownPassages
from recollect.memory.learning.reconciliation import Review
from recollect.memory.learning.text_learning import TextLearning
from recollect.memory.learning.turns.explaining import Explaining
from recollect.memory.learning.turns.turn_service import TurnService
from recollect.memory.memory import Memory
from recollect.memory.opening.evaluating import evaluation_of
from recollect.memory.opening.file_reading import open_reader
from recollect.memory.opening.models import LearningModels, open_models
from recollect.memory.opening.observed import ObservedChat, ObservedStep
from recollect.memory.opening.sharing import check_shared
from recollect.memory.opening.stores import Stores, enter_stores, open_bulk, take_data_dir, terminal_history
from recollect.memory.operations import Operations
from recollect.memory.parts import Parts
from recollect.memory.ports.document_reader import DocumentReader
from recollect.memory.ports.key_ring import KeyRing
from recollect.memory.ports.observing import UNOBSERVED, Observer
from recollect.memory.ports.store import Store
from recollect.memory.providers.catalog import open_chat_model, open_reranker
from recollect.memory.providers.fallbacks import warnings
from recollect.memory.providers.probe import check_models
from recollect.memory.providers.roles import endpoint
from recollect.memory.providers.told_names import GIVEN, told_name
from recollect.memory.recall.attachments import Attachments
from recollect.memory.recall.recall import Recall
from recollect.memory.recall.search import Search
from recollect.memory.threads.summary_step import SummaryStep
from recollect.memory.threads.thread_service import ThreadService
from recollect.memory.updates.retention import Retention
from recollect.memory.updates.step_work import StepWork
from recollect.memory.updates.updater import Updater
from recollect.memory.values.errors import ConfigurationError, RecollectError, StoreUnavailable
from recollect.memory.values.filtering.keys import read_filter_keys
from recollect.memory.values.mem_config import MemoryConfig
from recollect.memory.values.times import Clock, utc_now
from recollect.memory.values.update import StepName

logger = logging.getLogger(__name__)

ASK_SECONDS = 1.0
"""Longest time that a start waits for the store's first answer."""
REPAIR_HEAD_START_SECONDS = 1.0
"""Longest time that a start waits for the index's repair, which then goes on while the service runs."""
REPAIR_RETRY_SECONDS = 5.0
LOOK_SECONDS = 0.25
"""How often a process that only works looks for users: nobody tells it of a turn that another process has committed."""


@asynccontextmanager
async def open_memory(
    config: MemoryConfig,
    *,
    url: str | None = None,
    token: str | None = None,
    clock: Clock = utc_now,
    observer: Observer = UNOBSERVED,
    foreign: Sequence[ForeignHolder] = (),
) -> AsyncGenerator[Memory]:
    """Open everything that `config` names; at the end drain the updates and close everything.

    `url` is this process's address, and `token` the one it accepts from this machine's administrator, for the lock file
    of DATA_DIR. `observer` sees the work. `foreign` are places of other programs that erasures empty too.

    Raises:
        ConfigurationError: a setting is wrong, DATA_DIR has another owner, or the provider refuses key or model. A
            provider, MongoDB or Qdrant that cannot be reached is no error.
    """
    if config.worker != "on":
        check_shared(config, "WORKER=off" if config.worker == "off" else "A worker")
    is_worker = config.worker == "only"
    async with AsyncExitStack() as stack:
        config = await take_data_dir(stack, config, url, token)
        # The providers answer while the stores are opened.
        checking = asyncio.create_task(check_models(config), name="check-models")
        stack.push_async_callback(_cancel, checking)
        chat = ObservedChat(await stack.enter_async_context(open_chat_model(config)), observer, _chats_name(config))
        models = await open_models(stack, config, observer)
        reranker = await stack.enter_async_context(open_reranker(config))
        bulk = open_bulk(stack, config)
        reader = open_reader(stack, config, bulk, is_asked=url is not None)
        stores = await enter_stores(stack, config, clock, bulk, observer)
        await checking
        fallen_back = _fallbacks(config)
        store, index, embedder = stores.store, stores.index, stores.embedder
        points = IndexOutbox(store, index, embedder, sweep_seconds=config.sweep_seconds)
        retention = Retention(store, index, config, clock)
        attachments = Attachments(store, clock, read_filter_keys(config.filter_keys))
        facts_step = _facts_step(stores, models, points, retention, attachments)
        stores.fences.listeners.append(facts_step.forget)
        steps: dict[StepName, StepWork] = {
            "facts": facts_step,
            "index": IndexStep(index, embedder, store.timeline, points.index_beside),
            "summary": SummaryStep(store, models.summariser, config, clock, points),
        }
        updater = Updater(
            store,
            {name: ObservedStep(name, step, observer) for name, step in steps.items()},
            clock=clock,
            concurrency=config.update_concurrency,
            sweep_seconds=min(config.sweep_seconds, LOOK_SECONDS) if is_worker else config.sweep_seconds,
            works=config.worker != "off",
        )
        keys = KeyRing(store.keys, clock)
        erasing = _erasing(stores, keys, foreign)
        await _ask(store)
        # Before the updater, the first writer: an erasure that a kill cut off keeps its scope blocked.
        await erasing.prepare()
        updater.start()
        stack.push_async_callback(updater.drain, 0.0 if is_worker else config.shutdown_seconds)
        repairing = asyncio.create_task(_keep_repairing(stores), name="index-repair")
        stack.push_async_callback(_cancel, repairing)
        await asyncio.wait({repairing}, timeout=REPAIR_HEAD_START_SECONDS)
        if repairing.done():
            repairing.result()
        threads = ThreadService(
            store, index, points, updater.notify, erasing.erase_if_any, models.summariser, config, clock
        )
        indexing = DocumentIndexing(store, index, embedder, stores.fences, clock, sweep_seconds=config.sweep_seconds)
        following = [_following(stores)] if store.erasures.is_shared else []
        vacuum = IndexVacuum(index, seconds=config.index_vacuum_seconds)
        embedders = EmbedderChange(store, stores.sides)
        filling = FilterFilling(
            store,
            index,
            embedder,
            read_filter_keys(config.filter_keys),
            seconds=min(config.sweep_seconds, RETRY_SECONDS),
        )
        for keeper in (embedders, filling, points, retention, threads, indexing, erasing, vacuum, *following):
            keeper.start()
            stack.push_async_callback(keeper.close)
        searching = Search(store, index, embedder, config, reranker)
        recall = Recall(store, searching, config, clock, attachments, observer=observer)
        parts = Parts(store, index, embedder, updater, points, retention, stores.fences, clock)
        yield Memory(
            config=config,
            chat=chat,
            recall=recall,
            facts=FactService(store, clock, points, updater, config.memory_wait_seconds, retention, stores.fences),
            turns=TurnService(
                store,
                points,
                updater,
                facts_step,
                clock,
                config.memory_wait_seconds,
                Explaining(store, config.recall_tokens),
            ),
            threads=threads,
            documents=_document_service(stores, reader, indexing, attachments),
            texts=TextLearning(
                store,
                facts_step.plan_text,
                points,
                updater,
                retention,
                stores.fences,
                clock,
                wait_seconds=config.memory_wait_seconds,
                most_characters=config.max_message_characters,
            ),
            keys=keys,
            erasing=erasing,
            evaluation=evaluation_of(stores, recall),
            embedders=embedders,
            operations=Operations(parts, chat, models.name, config.memory_wait_seconds, filling, fallen_back),
            bulk=stores.bulk,
            observer=observer,
            parts=parts,
        )


def _chats_name(config: MemoryConfig) -> str:
    return GIVEN if config.given_chat is not None else told_name(endpoint(config))


def _fallbacks(config: MemoryConfig) -> tuple[str, ...]:
    """Return what the models fall back to, in sentences, and log each."""
    found = warnings(config)
    for sentence in found:
        logger.warning(sentence, extra={"action": "model_fallback"})
    return found


def _following(stores: Stores) -> TombstoneFollower:
    """Make this process's index follow erasures of other processes, at the latest when their users come back."""
    lines = terminal_history(stores.config)
    following = TombstoneFollower(stores.store, stores.index, stores.fences, lines, stores.clock)
    stores.fences.follow = following.follow
    return following


def _erasing(stores: Stores, keys: KeyRing, foreign: Sequence[ForeignHolder]) -> Erasing:
    """Return what erases every data holder: the stores, the files beside them in DATA_DIR, and `foreign` places."""
    holders = data_holders(
        stores.store,
        stores.index,
        keys=keys.delete,
        lines=terminal_history(stores.config),
        cache=stores.embedder,
    )
    return Erasing(stores.store.erasures, stores.fences, holders, stores.clock, stores.config.sweep_seconds, foreign)


def _facts_step(
    stores: Stores, models: LearningModels, points: IndexOutbox, retention: Retention, attachments: Attachments
) -> FactsStep:
    config = stores.config
    return FactsStep(
        store=stores.store,
        extractor=models.extractor,
        nomination=Nomination(stores.index, stores.embedder, config.duplicate_similarity),
        passages=KnownPassages(
            attachments, stores.store.documents, stores.index, stores.embedder, config.duplicate_similarity
        ),
        points=points,
        batching=Batching(stores.store, config),
        review=Review.of(config),
        schema=models.schema,
        rules=models.rules,
        retention=retention,
        fences=stores.fences,
        clock=stores.clock,
    )


def _document_service(
    stores: Stores, reader: DocumentReader, indexing: DocumentIndexing, attachments: Attachments
) -> DocumentService:
    from recollect.memory.providers.splitter import LangChainSplitter

    config = stores.config
    return DocumentService(
        store=stores.store,
        reader=reader,
        splitter=LangChainSplitter(),
        indexing=indexing,
        attachments=attachments,
        fences=stores.fences,
        bulk=stores.bulk,
        config=config,
        clock=stores.clock,
    )


async def _ask(store: Store) -> None:
    """Ping the store once before anything works with it: a database of another program stops the start.

    A server that does not answer yet raises no error.
    """
    with contextlib.suppress(StoreUnavailable, TimeoutError):
        async with asyncio.timeout(ASK_SECONDS):
            await store.ping()


async def _keep_repairing(stores: Stores) -> None:
    """Repair the index once, with retries while a backend is down.

    Raises:
        ConfigurationError: the index can never serve (the Qdrant server is too old, say); it stops the start.
    """
    while True:
        try:
            repaired = await repair(stores.store, stores.index, stores.embedder)
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
