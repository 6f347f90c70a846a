"""Asks an OpenAI-compatible server whether it is up, and which models it serves."""

import hashlib
from collections import OrderedDict
from time import monotonic

from typing_extensions import override

from recollect.memory.providers.asked_chat import Provider
from recollect.memory.providers.failures import Failures
from recollect.memory.providers.openai.listing import ask_list, model_ids, ping
from recollect.memory.providers.openai.plain_client import PlainClient

KNOWN_SECONDS = 60.0
"""How long a list of models is believed."""
MOST_LISTS = 100
"""So many callers' lists are kept."""


class OpenAIProvider(Provider):
    """The server behind `client`, which it neither opens nor closes. It keeps lists by the key's hash, and no key.

    `lists` is false for Azure, whose list is of base models and not of deployments.
    """

    def __init__(self, client: PlainClient, failures: Failures, *, lists: bool = True) -> None:
        self._client = client
        self._failures = failures
        self._is_listing = lists
        self._lists: OrderedDict[bytes, tuple[float, tuple[str, ...]]] = OrderedDict()

    @override
    async def ping(self) -> None:
        """Check that the server is up; see `listing.ping`."""
        await ping(self._client)

    @override
    async def models(self, api_key: str | None) -> tuple[str, ...]:
        """Return the models that the server lists; none where it keeps no list.

        Raises:
            ModelTimeout: no answer within PING_SECONDS.
            ModelUnavailable: no connection, a server out of order, or a key that it refuses.
        """
        if not self._is_listing:
            return ()
        owner = hashlib.sha256((api_key or "").encode()).digest()
        asked_at, names = self._lists.get(owner, (-KNOWN_SECONDS, ()))
        if monotonic() - asked_at < KNOWN_SECONDS:
            return names
        names = await self._ask(api_key)
        self._lists[owner] = monotonic(), names
        self._lists.move_to_end(owner)
        if len(self._lists) > MOST_LISTS:
            self._lists.popitem(last=False)
        return names

    async def _ask(self, api_key: str | None) -> tuple[str, ...]:
        status, text = await ask_list(self._client, api_key=api_key)
        if status < 400:
            return model_ids(text)
        refused = self._failures.refused(status)
        if refused.outage or status in {401, 403}:
            raise refused
        return ()
