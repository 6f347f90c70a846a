"""Opening the models that learn: of extraction and summaries, and the files that steer them. A composition root."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from memory.chat_model import ChatModel
from memory.extraction_schema import WantedKeys
from memory.extractor import Extractor
from memory.mem_config import MemoryConfig
from memory.observed import ObservedChat
from memory.observing import Observer
from memory.providers.catalog import ExtractionChats, open_extraction_chats
from memory.providers.endpoint import endpoint
from memory.summarizer import Summarizer


@dataclass(frozen=True, slots=True)
class LearningModels:
    """The models that learn; `name` is the first of EXTRACTION_MODEL, `schema` limits what is learned."""

    name: str
    extractor: Extractor
    summarizer: Summarizer
    schema: WantedKeys | None


async def open_models(stack: AsyncExitStack, config: MemoryConfig, observer: Observer) -> LearningModels:
    """Open what `config` names until the stack closes; without a provider, the offline rules.

    Raises:
        ConfigurationError: a setting is wrong, or a file cannot be read.
    """
    chats = _watched(await stack.enter_async_context(open_extraction_chats(config)), observer)
    rules, schema = await asyncio.to_thread(_extraction_files, config)
    name = chats.first.name
    if endpoint(config) is None:
        from memory.extractive_summary import ExtractiveSummarizer
        from memory.providers.offline import OfflineExtractor

        return LearningModels(name, OfflineExtractor(schema=schema), ExtractiveSummarizer(), schema)
    from memory.extraction import ModelExtractor
    from memory.summarizer import ModelSummarizer

    extractor = ModelExtractor(chats.models, open_named=chats.open_named, rules=rules, schema=schema)
    return LearningModels(name, extractor, ModelSummarizer(chats.models), schema)


def _watched(chats: ExtractionChats, observer: Observer) -> ExtractionChats:
    open_named = chats.open_named

    @asynccontextmanager
    async def open_watched(name: str) -> AsyncGenerator[ChatModel]:
        assert open_named is not None
        async with open_named(name) as chat:
            yield ObservedChat(chat, observer)

    models = tuple(ObservedChat(chat, observer) for chat in chats.models)
    return ExtractionChats(models, open_watched if open_named is not None else None)


def _extraction_files(config: MemoryConfig) -> tuple[str | None, WantedKeys | None]:
    """The extraction's own instructions and the keys that are wanted, where files give them."""
    from memory.providers.extraction_files import read_rules, read_schema

    return read_rules(config.extraction_prompt_file), read_schema(config.extraction_schema_file)
