"""Judges a provider's answer to the check at start-up: a wrong setting, an outage, or nothing certain."""

import asyncio
import logging
from collections.abc import Awaitable, Iterable

from recollect.memory.providers.endpoint import Endpoint
from recollect.memory.values.errors import ConfigurationError

logger = logging.getLogger(__name__)


def judge_status(source: Endpoint, status: int, setting: str) -> None:
    """Judge a status of 400 or more; only log what is not certainly a wrong setting.

    Raises:
        ConfigurationError: the key is refused, or the model does not exist.
    """
    if status in {401, 403}:
        raise key_refused(source, status)
    if status == 404:
        raise ConfigurationError(
            f"The provider does not know the model that {setting} names (404); correct it, or the address in "
            f"{source.address_setting}."
        )
    if status == 429 or status >= 500:
        unreachable(status)
        return
    logger.warning(
        "the model could not be checked", extra={"action": "model_unchecked", "setting": setting, "status": status}
    )


def key_refused(source: Endpoint, status: int) -> ConfigurationError:
    """Return the error that names the key's setting."""
    return ConfigurationError(f"The model's provider refuses the key ({status}); correct {source.key_setting}.")


def unreachable(status: int | None) -> None:
    """Log that the provider cannot be reached (`status` is None) or is out of order."""
    logger.warning(
        "the model's provider cannot be reached; starting without it",
        extra={"action": "model_unreachable", "status": status},
    )


async def all_of(asks: Iterable[Awaitable[None]]) -> None:
    """Ask all at once, wait for all, and raise the first error."""
    for result in await asyncio.gather(*asks, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result
