"""Opens the models for extraction and summaries, and reads the files that steer them. A composition root."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

from recollect.memory.learning.extraction.schema import WantedKeys
from recollect.memory.opening.late_rules import LateRules, offline_rules
from recollect.memory.opening.observed import OTHER_MODEL, ObservedChat
from recollect.memory.ports.chat_model import ChatModel
from recollect.memory.ports.extractor import Extractor
from recollect.memory.ports.observing import Observer
from recollect.memory.ports.summariser import Summariser
from recollect.memory.providers.catalog import ExtractionChats, open_extraction_chats
from recollect.memory.providers.roles import extraction_endpoint, extracts_as_given
from recollect.memory.providers.told_names import GIVEN, told_name
from recollect.memory.values.frozen import frozen
from recollect.memory.values.mem_config import MemoryConfig


@frozen
class LearningModels:
    """Holds the models that learn; `name` is the first of EXTRACTION_MODEL, `schema` limits the keys of facts.

    `rules` are the instructions of EXTRACTION_PROMPT_FILE, or None.
    """

    name: str
    extractor: Extractor
    summariser: Summariser
    schema: WantedKeys | None
    rules: str | None = None


async def open_models(stack: AsyncExitStack, config: MemoryConfig, observer: Observer) -> LearningModels:
    """Open the models that `config` names, until the stack closes; without a provider, open the offline rules.

    Raises:
        ConfigurationError: a setting is wrong, or a file cannot be read.
    """
    provider = GIVEN if extracts_as_given(config) else told_name(extraction_endpoint(config))
    chats = _watched(await stack.enter_async_context(open_extraction_chats(config)), observer, provider)
    rules, schema = await asyncio.to_thread(_extraction_files, config)
    name = chats.first.name
    if not extracts_as_given(config) and extraction_endpoint(config) is None:
        from recollect.memory.threads.extractive_summary import ExtractiveSummariser

        return LearningModels(name, offline_rules(schema), ExtractiveSummariser(), schema, rules)
    from recollect.memory.learning.extraction.model_extractor import ModelExtractor
    from recollect.memory.threads.model_summariser import ModelSummariser

    second_look = LateRules(schema=schema)
    extractor = ModelExtractor(
        chats.models, open_named=chats.open_named, rules=rules, schema=schema, second_look=second_look
    )
    return LearningModels(name, extractor, ModelSummariser(chats.models), schema, rules)


def _watched(chats: ExtractionChats, observer: Observer, provider: str) -> ExtractionChats:
    """Return `chats` with an observer of their calls; models that callers name share one label."""
    open_named = chats.open_named

    @asynccontextmanager
    async def open_watched(name: str) -> AsyncGenerator[ChatModel]:
        assert open_named is not None
        async with open_named(name) as chat:
            yield ObservedChat(chat, observer, provider, OTHER_MODEL)

    models = tuple(ObservedChat(chat, observer, provider) for chat in chats.models)
    return ExtractionChats(models, open_watched if open_named is not None else None)


def _extraction_files(config: MemoryConfig) -> tuple[str | None, WantedKeys | None]:
    """Read the extraction's instructions and its schema of keys, each None where `config` names no file."""
    from recollect.memory.providers.extraction_files import read_rules, read_schema

    return read_rules(config.extraction_prompt_file), read_schema(config.extraction_schema_file)
