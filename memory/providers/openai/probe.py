"""Asks an OpenAI-compatible server about the models, for the check at start-up."""

import asyncio
from collections.abc import Awaitable, Callable

from recollect.memory.providers.endpoint import Endpoint, known_dimension
from recollect.memory.providers.openai.listing import PING_SECONDS, ask_list, model_ids
from recollect.memory.providers.openai.single_get import SingleGet
from recollect.memory.providers.probe import Wanted
from recollect.memory.providers.verdict import key_refused, unreachable
from recollect.memory.values.errors import ModelUnavailable
from recollect.memory.values.mem_config import MemoryConfig

_Ask = Callable[[Endpoint, Wanted, int | None], Awaitable[None]]


async def check_compatible(source: Endpoint, wanted: Wanted, config: MemoryConfig) -> None:
    """Ask for the list of models; ask each model that it does not settle for one token.

    Raises:
        ConfigurationError: as `probe.check_models`.
    """
    listed = await _listed(source)
    if listed is None:
        return
    model, stated = wanted.embedding, config.embedding_dimensions
    is_settled = model in listed and known_dimension(model, stated) is not None if model else True
    unsettled = Wanted(
        {name: setting for name, setting in wanted.chats.items() if name not in listed}, None if is_settled else model
    )
    if unsettled.chats or unsettled.embedding:
        ask_models = await asyncio.to_thread(_import_asking)
        await ask_models(source, unsettled, stated)


async def _listed(source: Endpoint) -> set[str] | None:
    """Return the models that the server lists: empty without a readable list, None if it cannot be reached."""
    try:
        status, text = await ask_list(SingleGet(source, PING_SECONDS))
    except ModelUnavailable:
        unreachable(None)
        return None
    except ValueError:
        return set()
    if status == 401:
        raise key_refused(source, 401)
    if status == 429 or (status >= 500 and status != 501):
        unreachable(status)
        return None
    # Without such a route, or not for this key, `check_compatible` asks the models. Azure lists base models, which
    # say nothing of the deployments that have to be asked.
    return set() if status >= 400 or source.protocol == "azure" else set(model_ids(text))


def _import_asking() -> _Ask:
    """Import what asks models. It reads libraries from disk: not on the event loop."""
    from recollect.memory.providers.openai.asking import ask_models

    return ask_models
