"""Checks at start-up that the provider accepts the key and knows the models.

An error that only a person can correct stops the start and names the setting. An outage, which may pass, does not.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from recollect.memory.providers.endpoint import Endpoint, chat_model_name, endpoint, extraction_model_names
from recollect.memory.providers.verdict import unreachable
from recollect.memory.values.mem_config import MemoryConfig

CHECK_SECONDS = 2.5
"""How long all checks together may hold up the start."""

_Checks = Callable[[Endpoint, Mapping[str, str], MemoryConfig], Awaitable[None]]


async def check_models(config: MemoryConfig) -> None:
    """Ask the configured provider for its list of models; ask each model that it does not settle for one token.

    The built-in and local models need no check: `catalog` opens them or says what is missing. Takes 2.5 s at most.

    Raises:
        ConfigurationError: the key is refused, a model does not exist, or its vectors have another length than stated.
    """
    source = endpoint(config)
    if source is None:
        return
    extracting, setting = extraction_model_names(config, source)
    names = {**dict.fromkeys(extracting, setting), chat_model_name(config, source): "CHAT_MODEL"}
    checks = await asyncio.to_thread(_checks, source)
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            await checks(source, names, config)
    except TimeoutError:
        unreachable(None)


def _checks(source: Endpoint) -> _Checks:
    """Import the provider's kind of check. It reads libraries from disk: not on the event loop."""
    if source.native:
        from recollect.memory.providers.native_probe import check_native

        return check_native
    from recollect.memory.providers.openai.probe import check_compatible

    return check_compatible
