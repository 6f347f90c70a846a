"""Asks Anthropic or Google about the models, for the check at start-up."""

import httpx

from recollect.memory.providers.endpoint import Endpoint
from recollect.memory.providers.probe import Wanted
from recollect.memory.providers.verdict import all_of, judge_status, unreachable
from recollect.memory.providers.wire import hooks
from recollect.memory.values.mem_config import MemoryConfig

_SECONDS = 2.0
_MODELS = {"anthropic": "/v1/models/", "gemini": "/v1beta/models/"}


async def check_native(source: Endpoint, wanted: Wanted, config: MemoryConfig) -> None:
    """Ask about each model; no tokens are spent. `config` is not read here.

    Raises:
        ConfigurationError: as `probe.check_models`.
    """
    embedding = {wanted.embedding: "EMBEDDING_MODEL"} if wanted.embedding else {}
    await all_of(_check(source, name, setting) for name, setting in {**embedding, **wanted.chats}.items())


async def _check(source: Endpoint, model: str, setting: str) -> None:
    """Ask Anthropic or Google about one model; no tokens are spent."""
    headers = {"x-api-key": source.api_key, "x-goog-api-key": source.api_key, "anthropic-version": "2023-06-01"}
    url = source.base_url + _MODELS[source.provider] + model
    try:
        async with httpx.AsyncClient(timeout=_SECONDS, event_hooks=hooks()) as http:
            status = (await http.get(url, headers=headers)).status_code
    except httpx.HTTPError:
        unreachable(None)
        return
    if status == 400 and source.provider == "gemini":
        status = 401  # Google's status text for a wrong key.
    if status >= 400:
        judge_status(source, status, setting)
