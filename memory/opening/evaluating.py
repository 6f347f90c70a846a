"""Opens what an evaluation needs: the recall that serves, and others beside it. A composition root."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from recollect.memory.evaluation.evaluation import Evaluation
from recollect.memory.opening.stores import Stores, open_stores
from recollect.memory.providers.catalog import open_reranker
from recollect.memory.recall.attachments import Attachments
from recollect.memory.recall.recall import Recall
from recollect.memory.recall.search import Search
from recollect.memory.values.mem_config import MemoryConfig


@asynccontextmanager
async def open_evaluation(config: MemoryConfig) -> AsyncGenerator[Evaluation]:
    """Open the stores for an evaluation alone; nothing is repaired or learned meanwhile.

    Raises:
        ConfigurationError: a setting is wrong, or DATA_DIR has another owner.
    """
    async with open_stores(config) as stores, open_reranker(stores.config) as reranker:
        search = Search(stores.store, stores.index, stores.embedder, stores.config, reranker)
        attachments = Attachments(stores.store.documents, stores.clock)
        yield evaluation_of(stores, Recall(stores.store, search, stores.config, stores.clock, attachments))


def evaluation_of(stores: Stores, recall: Recall) -> Evaluation:
    """Return the evaluation of `recall`, which opens others over the same stores."""

    @asynccontextmanager
    async def other(config: MemoryConfig, users: Sequence[str]) -> AsyncGenerator[Recall]:
        async with AsyncExitStack() as stack:
            search = replace(recall.vector_search, config=config)
            if _reranking(config) != _reranking(recall.config):
                search = replace(search, reranker=await stack.enter_async_context(open_reranker(config)))
            yield replace(recall, config=config, vector_search=search)

    return Evaluation(recall, other)


def _reranking(config: MemoryConfig) -> tuple[object, ...]:
    return config.reranker, config.reranker_path
