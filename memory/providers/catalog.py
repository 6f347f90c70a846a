"""Opens the models that a configuration asks for, importing only those.

    async with open_chat_model(config) as chat, open_extraction_chats(config) as chats, open_embedder(config) as e:
    async with open_reranker(config) as reranker:

Who opens, closes: leaving the block closes the connections.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial

from recollect.memory.background.bulk import Bulk
from recollect.memory.ports.chat_model import ChatModel
from recollect.memory.ports.embedder import Embedder
from recollect.memory.ports.reranker import Reranker
from recollect.memory.providers.bounded_chat import BoundedChat
from recollect.memory.providers.endpoint import (
    FASTEMBED,
    KNOWN_DIMENSIONS,
    LEXICAL,
    Endpoint,
    chat_model_name,
    embedding_model_name,
    endpoint,
    extraction_model_names,
    reranker_name,
)
from recollect.memory.values.errors import ConfigurationError
from recollect.memory.values.mem_config import MemoryConfig


@asynccontextmanager
async def open_chat_model(config: MemoryConfig) -> AsyncGenerator[ChatModel]:
    """Open the model that answers: CHAT_MODEL at the configured provider, else the built-in offline one.

    Raises:
        ConfigurationError: a setting or a package is missing; the message names it.
    """
    source = endpoint(config)
    name = chat_model_name(config, source) if source else ""
    async with _open(config, model=name, model_setting="CHAT_MODEL") as chat:
        yield chat


@dataclass(frozen=True, slots=True)
class ExtractionChats:
    """The models that extract facts, in order of preference (at least one).

    `open_named` opens another model of the same provider; None where there is no provider.
    """

    models: tuple[ChatModel, ...]
    open_named: Callable[[str], AbstractAsyncContextManager[ChatModel]] | None = None

    @property
    def first(self) -> ChatModel:
        """Return the preferred model."""
        return self.models[0]


@asynccontextmanager
async def open_extraction_chats(config: MemoryConfig) -> AsyncGenerator[ExtractionChats]:
    """Open all models that EXTRACTION_MODEL lists, else the one of `open_chat_model`.

    Raises:
        ConfigurationError: a setting or a package is missing; the message names it.
    """
    source = endpoint(config)
    names, setting = extraction_model_names(config, source) if source else ([""], "CHAT_MODEL")
    async with AsyncExitStack() as stack:
        models = [await stack.enter_async_context(_open(config, model=name, model_setting=setting)) for name in names]
        named = partial(_open_named, config) if source else None
        yield ExtractionChats(tuple(models), named)


def _open_named(config: MemoryConfig, name: str) -> AbstractAsyncContextManager[ChatModel]:
    return _open(config, model=name, model_setting="model")


@asynccontextmanager
async def _open(config: MemoryConfig, *, model: str, model_setting: str) -> AsyncGenerator[ChatModel]:
    source = endpoint(config)
    if source is None:
        from recollect.memory.providers.offline import OfflineChat

        yield OfflineChat()
        return
    opener = await asyncio.to_thread(_chat_opener, native=source.native)
    async with opener(
        source, model=model, model_setting=model_setting, timeout_seconds=config.chat_timeout_seconds
    ) as chat:
        yield BoundedChat(chat, config.max_reply_characters)


def _chat_opener(*, native: bool) -> Callable[..., AbstractAsyncContextManager[ChatModel]]:
    """Import the opener of the provider's kind of client. It reads libraries from disk: not on the event loop."""
    if native:
        from recollect.memory.providers.native_chat import open_native_chat

        return open_native_chat
    from recollect.memory.providers.openai.chat import open_openai_chat

    return open_openai_chat


@asynccontextmanager
async def open_embedder(config: MemoryConfig, bulk: Bulk | None = None) -> AsyncGenerator[Embedder]:
    """Open EMBEDDING_MODEL; if unset, OpenAI's default with OpenAI itself, and the lexical embedder with all others.

    The lexical embedder works on long texts in `bulk`, else in threads of its own.

    Raises:
        ConfigurationError: a setting, a file or a package is missing, or EMBEDDING_DIMENSIONS contradicts the model.
    """
    if config.given_embeddings is not None:
        from recollect.memory.providers.given_embeddings import GivenEmbedder

        yield GivenEmbedder(config.given_embeddings)
        return
    source = endpoint(config)
    name = embedding_model_name(config, source)
    known, stated = KNOWN_DIMENSIONS.get(name), config.embedding_dimensions
    if known and stated and (stated > known or (stated != known and not name.startswith("text-embedding-3"))):
        raise _contradiction(stated, known)
    opener = await asyncio.to_thread(_embedder_opener, config, name, source, bulk)
    async with opener as embedder:
        if name == LEXICAL or name.startswith(FASTEMBED):
            await _agree(embedder, config)
        yield embedder


def _embedder_opener(
    config: MemoryConfig, name: str, source: Endpoint | None, bulk: Bulk | None
) -> AbstractAsyncContextManager[Embedder]:
    if name.startswith(FASTEMBED):
        from recollect.memory.providers.local.fastembed_embeddings import open_local_embedder

        return open_local_embedder(name.removeprefix(FASTEMBED), path=config.embedding_model_path)
    if name == LEXICAL or source is None:
        from recollect.memory.providers.lexical import LexicalEmbedder

        return nullcontext(LexicalEmbedder(bulk))
    from recollect.memory.providers.openai.embeddings import open_openai_embedder

    return open_openai_embedder(
        source,
        model=name,
        dimensions=config.embedding_dimensions,
        timeout_seconds=config.embedding_timeout_seconds,
    )


@asynccontextmanager
async def open_reranker(config: MemoryConfig) -> AsyncGenerator[Reranker | None]:
    """Open the reranker of RERANKER or RERANKER_PATH; yield None where neither is set.

    Raises:
        ConfigurationError: a setting, a file or a package is missing, or the model hub cannot be reached.
    """
    name = reranker_name(config)
    if name is None:
        yield None
        return
    opener = await asyncio.to_thread(_reranker_opener, config, name)
    async with opener as reranker:
        yield reranker


def _reranker_opener(config: MemoryConfig, name: str) -> AbstractAsyncContextManager[Reranker]:
    from recollect.memory.providers.local.fastembed_reranker import open_local_reranker

    return open_local_reranker(name, path=config.reranker_path)


async def _agree(embedder: Embedder, config: MemoryConfig) -> None:
    stated, found = config.embedding_dimensions, await embedder.dimension()
    if stated is not None and stated != found:
        raise _contradiction(stated, found)


def _contradiction(stated: int, found: int) -> ConfigurationError:
    return ConfigurationError(
        f"EMBEDDING_DIMENSIONS is {stated}, but the embedding model's vectors have {found}: unset it."
    )
