"""Asks each model for one token, for the check at start-up of providers that keep no list for everybody."""

from collections.abc import Awaitable

from recollect.memory.ports.chat_model import ChatRequest
from recollect.memory.providers.catalog import open_chat_at, open_embedder
from recollect.memory.providers.endpoint import Endpoint
from recollect.memory.providers.probe import Wanted
from recollect.memory.providers.verdict import all_of, judge_status, unreachable
from recollect.memory.values.errors import ModelUnavailable
from recollect.memory.values.mem_config import MemoryConfig

_QUESTION = ChatRequest([{"role": "user", "content": "Hi"}], parameters={"max_tokens": 1})


async def check_by_asking(source: Endpoint, wanted: Wanted, config: MemoryConfig) -> None:
    """Ask each model as the service will.

    Raises:
        ConfigurationError: as `probe.check_models`, or a package is missing.
    """
    asks = [_chat(source, name, setting, config) for name, setting in wanted.chats.items()]
    await all_of([*asks, *([_embedding(source, config)] if wanted.embedding else [])])


async def _chat(source: Endpoint, name: str, setting: str, config: MemoryConfig) -> None:
    async with open_chat_at(source, config, model=name, model_setting=setting) as chat:
        # A model that thinks first has no text after one token: that it answers is enough.
        await _judged(chat.complete(_QUESTION), source, setting)


async def _embedding(source: Endpoint, config: MemoryConfig) -> None:
    async with open_embedder(config) as embedder:
        await _judged(embedder.embed_query("dimension"), source, "EMBEDDING_MODEL")


async def _judged(asked: Awaitable[object], source: Endpoint, setting: str) -> None:
    try:
        await asked
    except ModelUnavailable as error:
        if error.status is not None:
            judge_status(source, error.status, setting)
        elif error.outage:
            unreachable(None)
