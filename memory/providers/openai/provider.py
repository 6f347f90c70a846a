"""Asks an OpenAI-compatible server whether it is up, and which models it serves."""

import hashlib
from collections import OrderedDict
from time import monotonic

import openai
from typing_extensions import override

from recollect.memory.providers.failures import Failures
from recollect.memory.providers.langchain_chat import Provider
from recollect.memory.providers.openai.client import PING_SECONDS, model_ids, ping
from recollect.memory.values.errors import ModelTimeout, ModelUnavailable

KNOWN_SECONDS = 60.0
"""How long a list of models is believed."""
MOST_LISTS = 100
"""So many callers' lists are kept."""


class OpenAIProvider(Provider):
    """The server behind `client`, which it neither opens nor closes. It keeps lists by the key's hash, and no key.

    `lists` is false for Azure, whose list is of base models and not of deployments.
    """

    def __init__(self, client: openai.AsyncOpenAI, failures: Failures, *, lists: bool = True) -> None:
        self._client = client
        self._failures = failures
        self._is_listing = lists
        self._lists: OrderedDict[bytes, tuple[float, tuple[str, ...]]] = OrderedDict()

    @override
    async def ping(self) -> None:
        """Check that the server is up; see `client.ping`."""
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
        quick = self._client.with_options(max_retries=0, timeout=PING_SECONDS)
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else None
        try:
            answer = await quick.models.with_raw_response.list(extra_headers=headers)
        except openai.APITimeoutError:
            raise ModelTimeout("The model's provider did not answer in time.") from None
        except openai.APIConnectionError:
            raise ModelUnavailable("The model's provider cannot be reached.", outage=True) from None
        except openai.APIStatusError as error:
            refused = self._failures.refused(error.status_code)
            if refused.outage or error.status_code in {401, 403}:
                raise refused from None
            return ()
        return model_ids(answer.text)
