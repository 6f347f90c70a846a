"""Opens what an evaluation needs: the recall that serves, and others beside it. A composition root."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

from recollect.memory.evaluation.evaluation import Evaluation
from recollect.memory.index.indexing import IndexRepair
from recollect.memory.index.sides import Side
from recollect.memory.opening.embedders import configured_for, spec_of
from recollect.memory.opening.stores import Stores, open_stores
from recollect.memory.ports.embedder import EmbedderSpec
from recollect.memory.providers.catalog import open_reranker
from recollect.memory.recall.attachments import Attachments
from recollect.memory.recall.recall import Recall
from recollect.memory.recall.search import Search
from recollect.memory.values.filtering.keys import read_filter_keys
from recollect.memory.values.mem_config import MemoryConfig
from recollect.memory.values.scope import GLOBAL_USER


@asynccontextmanager
async def open_evaluation(config: MemoryConfig) -> AsyncGenerator[Evaluation]:
    """Open the stores for an evaluation alone; nothing is repaired or learned meanwhile.

    Raises:
        ConfigurationError: a setting is wrong, or DATA_DIR has another owner.
    """
    async with open_stores(config) as stores, open_reranker(stores.config) as reranker:
        search = Search(stores.store, stores.index, stores.embedder, stores.config, reranker)
        attachments = Attachments(stores.store, stores.clock, read_filter_keys(stores.config.filter_keys))
        yield evaluation_of(stores, Recall(stores.store, search, stores.config, stores.clock, attachments))


def evaluation_of(stores: Stores, recall: Recall) -> Evaluation:
    """Return the evaluation of `recall`, which opens others over the same stores."""
    visiting = asyncio.Lock()

    @asynccontextmanager
    async def other(changes: Mapping[str, Any], users: Sequence[str]) -> AsyncGenerator[Recall]:
        # The embedder that serves may be another one than the configured one: changes are of what serves.
        serving = (await stores.sides.settled()).spec
        config = _changed(configured_for(recall.config, serving), changes)
        async with AsyncExitStack() as stack:
            search = replace(recall.vector_search, config=config)
            if _reranking(config) != _reranking(recall.config):
                search = replace(search, reranker=await stack.enter_async_context(open_reranker(config)))
            if (spec := spec_of(config)) != serving:
                await stack.enter_async_context(visiting)  # a collection can be opened once at a time
                side = await stack.enter_async_context(_filled_for(users, stores, spec))
                search = replace(search, index=side.index, embedder=side.embedder)
            yield replace(recall, config=config, vector_search=search)

    return Evaluation(recall, other)


@asynccontextmanager
async def _filled_for(users: Sequence[str], stores: Stores, spec: EmbedderSpec) -> AsyncGenerator[Side]:
    """Open another embedder with the points of `users`; a collection that was not there before goes at exit."""
    there = await stores.index.other_collections()
    async with stores.sides.opened(spec) as side:
        named = await side.named()
        try:
            for user_id in () if side is stores.sides.serving else [*users, GLOBAL_USER]:
                await IndexRepair(stores.store, side.index, side.embedder, user_id).run()
            yield side
        finally:
            is_kept = side not in stores.sides.visitors or named.collection in there
    if not is_kept:
        await stores.sides.serving.index.drop_other(named.collection or "")


def _reranking(config: MemoryConfig) -> tuple[object, ...]:
    return config.reranker, config.reranker_path


def _changed(config: MemoryConfig, changes: Mapping[str, Any]) -> MemoryConfig:
    """Return `config` with `changes`; another embedding model takes the place of the caller's own embedder."""
    own = {"embedder": None, "given_embeddings": None} if "embedding_model" in changes else {}
    return config.replace(**own, **changes)
