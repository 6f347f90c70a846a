"""Checks at start-up that each role's provider accepts the key and knows the models.

An error that only a person can correct stops the start and names the setting. An outage, which may pass, does not.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from recollect.memory.providers.endpoint import (
    FASTEMBED,
    LEXICAL,
    Endpoint,
    chat_model_name,
    embedding_model_name,
    extraction_model_names,
)
from recollect.memory.providers.presets import Protocol
from recollect.memory.providers.roles import embedding_endpoint, endpoint, extraction_endpoint, extracts_as_given
from recollect.memory.providers.verdict import all_of, unreachable
from recollect.memory.values.mem_config import MemoryConfig

CHECK_SECONDS = 2.5
"""How long all checks together may hold up the start."""


@dataclass
class Wanted:
    """The models that are asked of one provider: chat models with the setting of each, and one that embeds."""

    chats: dict[str, str] = field(default_factory=dict[str, str])
    embedding: str | None = None


_Check = Callable[[Endpoint, Wanted, MemoryConfig], Awaitable[None]]


async def check_models(config: MemoryConfig) -> None:
    """Ask each provider for its list of models; ask each model that it does not settle for one token.

    The built-in and local models need no check: `catalog` opens them or says what is missing. Takes 2.5 s at most.

    Raises:
        ConfigurationError: a key is refused, a model does not exist, or its vectors have another length than stated.
    """
    wanted = _wanted(config)
    checks = await asyncio.to_thread(lambda: [_check(source.protocol) for source in wanted])
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            await all_of(
                check(source, models, config) for check, (source, models) in zip(checks, wanted.items(), strict=True)
            )
    except TimeoutError:
        unreachable(None)


def _wanted(config: MemoryConfig) -> dict[Endpoint, Wanted]:
    """Return what each provider is asked about; roles at one provider with one key are asked about together."""
    wanted: dict[Endpoint, Wanted] = {}
    if not extracts_as_given(config) and (source := extraction_endpoint(config)):
        names, setting = extraction_model_names(config, source)
        wanted.setdefault(source, Wanted()).chats.update(dict.fromkeys(names, setting))
    if config.given_chat is None and (source := endpoint(config)):
        wanted.setdefault(source, Wanted()).chats[chat_model_name(config, source)] = "CHAT_MODEL"
    if config.given_embeddings is None and config.embedder is None:
        source = embedding_endpoint(config)
        name = embedding_model_name(config, source)
        if source and name != LEXICAL and not name.startswith(FASTEMBED):
            wanted.setdefault(source, Wanted()).embedding = name
    return wanted


def _check(protocol: Protocol) -> _Check:
    """Import the provider's kind of check. It reads libraries from disk: not on the event loop."""
    if protocol in {"anthropic", "gemini"}:
        from recollect.memory.providers.native_probe import check_native

        return check_native
    if protocol in {"bedrock", "vertex"}:
        from recollect.memory.providers.asking_probe import check_by_asking

        return check_by_asking
    from recollect.memory.providers.openai.probe import check_compatible

    return check_compatible
