"""Opens the models that a configuration asks for, importing only those.

    async with open_chat_model(config) as chat, open_extraction_chats(config) as chats, open_embedder(config) as e:
    async with open_reranker(config) as reranker:

Who opens, closes: leaving the block closes the connections.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
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
    extraction_model_names,
    reranker_name,
)
from recollect.memory.providers.extras import imported
from recollect.memory.providers.presets import Protocol
from recollect.memory.providers.roles import embedding_endpoint, endpoint, extraction_endpoint, extracts_as_given
from recollect.memory.values.errors import ConfigurationError
from recollect.memory.values.frozen import frozen
from recollect.memory.values.given import GivenEmbeddings, load_named
from recollect.memory.values.mem_config import MemoryConfig


@asynccontextmanager
async def open_chat_model(config: MemoryConfig) -> AsyncGenerator[ChatModel]:
    """Open the model that answers: CHAT_MODEL at the configured provider, else the built-in offline one.

    Raises:
        ConfigurationError: a setting or a package is missing; the message names it.
    """
    if config.given_chat is not None:
        yield await _given_chat(config)
        return
    source = endpoint(config)
    name = chat_model_name(config, source) if source else ""
    async with open_chat_at(source, config, model=name, model_setting="CHAT_MODEL") as chat:
        yield chat


@frozen
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
    """Open all models that EXTRACTION_MODEL lists, at the extraction's own provider or the chat's.

    Without one, open the model of `open_chat_model`, or the built-in offline one.

    Raises:
        ConfigurationError: a setting or a package is missing; the message names it.
    """
    if extracts_as_given(config):
        yield ExtractionChats((await _given_chat(config),))
        return
    source = extraction_endpoint(config)
    names, setting = extraction_model_names(config, source) if source else ([""], "CHAT_MODEL")
    async with AsyncExitStack() as stack:
        opened = (open_chat_at(source, config, model=name, model_setting=setting) for name in names)
        models = [await stack.enter_async_context(item) for item in opened]
        named = partial(_open_named, config, source) if source else None
        yield ExtractionChats(tuple(models), named)


def _open_named(config: MemoryConfig, source: Endpoint, name: str) -> AbstractAsyncContextManager[ChatModel]:
    return open_chat_at(source, config, model=name, model_setting="model")


async def _given_chat(config: MemoryConfig) -> ChatModel:
    """Return the object that a program gave. LangChain is imported from disk: not on the event loop."""
    assert config.given_chat is not None
    opener = await asyncio.to_thread(_given_opener)
    chat = opener(config.given_chat, timeout_seconds=config.chat_timeout_seconds)
    return BoundedChat(chat, config.max_reply_characters)


def _given_opener() -> Callable[..., ChatModel]:
    from recollect.memory.providers.given.chat import given_chat

    return given_chat


@asynccontextmanager
async def open_chat_at(
    source: Endpoint | None, config: MemoryConfig, *, model: str, model_setting: str
) -> AsyncGenerator[ChatModel]:
    """Open the chat model `model` at `source`; None stands for the built-in offline one.

    Raises:
        ConfigurationError: a package is missing; the message names its extra.
    """
    if source is None:
        from recollect.memory.providers.offline import OfflineChat

        yield OfflineChat()
        return
    opener = await asyncio.to_thread(_chat_opener, source.protocol)
    async with opener(
        source, model=model, model_setting=model_setting, timeout_seconds=config.chat_timeout_seconds
    ) as chat:
        yield BoundedChat(chat, config.max_reply_characters)


def _chat_opener(protocol: Protocol) -> Callable[..., AbstractAsyncContextManager[ChatModel]]:
    """Import the opener of the provider's kind of client. It reads libraries from disk: not on the event loop."""
    if protocol in {"anthropic", "gemini", "vertex"}:
        from recollect.memory.providers.native_chat import open_native_chat

        return open_native_chat
    if protocol == "bedrock":
        imported("langchain_aws", "PROVIDER=bedrock", extra="bedrock")
        from recollect.memory.providers.bedrock.chat import open_bedrock_chat

        return open_bedrock_chat
    from recollect.memory.providers.openai.chat import open_openai_chat

    return open_openai_chat


@asynccontextmanager
async def open_embedder(config: MemoryConfig, bulk: Bulk | None = None) -> AsyncGenerator[Embedder]:
    """Open EMBEDDING_MODEL; if unset, the default of the provider that embeds, else the lexical embedder.

    The lexical embedder works on long texts in `bulk`, else in threads of its own.

    Raises:
        ConfigurationError: a setting, a file or a package is missing, or EMBEDDING_DIMENSIONS contradicts the model.
    """
    if (given := await _given_embeddings(config)) is not None:
        from recollect.memory.providers.given.embedder import GivenEmbedder

        embedder = GivenEmbedder(given, timeout_seconds=config.embedding_timeout_seconds)
        if config.embedding_dimensions is not None:
            await _agree(embedder, config)
        yield embedder
        return
    source = embedding_endpoint(config)
    name = embedding_model_name(config, source)
    known, stated = KNOWN_DIMENSIONS.get(name), config.embedding_dimensions
    if known and stated and (stated > known or (stated != known and not name.startswith("text-embedding-3"))):
        raise _contradiction(stated, known)
    opener = await asyncio.to_thread(_embedder_opener, config, name, source, bulk)
    async with opener as embedder:
        if name == LEXICAL or name.startswith(FASTEMBED):
            await _agree(embedder, config)
        yield embedder


async def _given_embeddings(config: MemoryConfig) -> GivenEmbeddings | None:
    """Return the object that embeds: the one that a program gave, else the one that EMBEDDER names, else None."""
    if config.given_embeddings is not None or config.embedder is None:
        return config.given_embeddings
    return GivenEmbeddings(await asyncio.to_thread(load_named, "EMBEDDER", config.embedder), setting="EMBEDDER")


def _embedder_opener(
    config: MemoryConfig, name: str, source: Endpoint | None, bulk: Bulk | None
) -> AbstractAsyncContextManager[Embedder]:
    if name.startswith(FASTEMBED):
        from recollect.memory.providers.local.fastembed_embeddings import open_local_embedder

        return open_local_embedder(
            name.removeprefix(FASTEMBED),
            path=config.embedding_model_path,
            query_precision=config.embedding_query_precision,
        )
    if name == LEXICAL or source is None:
        from recollect.memory.providers.lexical import LexicalEmbedder

        return nullcontext(LexicalEmbedder(bulk))
    return _remote_embedder(source.protocol)(
        source,
        model=name,
        dimensions=config.embedding_dimensions,
        timeout_seconds=config.embedding_timeout_seconds,
    )


def _remote_embedder(protocol: Protocol) -> Callable[..., AbstractAsyncContextManager[Embedder]]:
    """Import the opener of the provider's kind of embedder. It reads libraries from disk: not on the event loop."""
    if protocol in {"gemini", "vertex"}:
        from recollect.memory.providers.google.embeddings import open_google_embedder

        return open_google_embedder
    if protocol == "bedrock":
        imported("langchain_aws", "EMBEDDING_PROVIDER=bedrock", extra="bedrock")
        from recollect.memory.providers.bedrock.embeddings import open_bedrock_embedder

        return open_bedrock_embedder
    from recollect.memory.providers.openai.embeddings import open_openai_embedder

    return open_openai_embedder


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
