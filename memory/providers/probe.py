"""The check at start-up: does the provider take the key, and does it know the models?

What only a person can mend stops the start with the setting to change. What may pass by itself does not.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from memory.mem_config import MemoryConfig
from memory.providers.endpoint import Endpoint, chat_model_name, endpoint, extraction_model_names
from memory.providers.verdict import unreachable

CHECK_SECONDS = 2.5
"""How long all checks together may hold up the start."""

_Checks = Callable[[Endpoint, Mapping[str, str], MemoryConfig], Awaitable[None]]


async def check_models(config: MemoryConfig) -> None:
    """Ask the configured provider for its list of models; where that does not settle it, ask each model for one token.

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
    """The provider's own kind of check. Its libraries are read from disk: not on the event loop."""
    if source.native:
        from memory.providers.native_probe import check_native

        return check_native
    from memory.providers.openai_probe import check_compatible

    return check_compatible
