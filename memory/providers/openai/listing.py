"""Asks an OpenAI-compatible server for its list of models, which costs no tokens."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Protocol, cast

from recollect.memory.values.errors import ModelTimeout, ModelUnavailable

PING_SECONDS = 2.0
LIST = "/models"


class Getter(Protocol):
    """Sends a GET to one server: a PlainClient, or a SingleGet."""

    async def get(self, path: str, *, api_key: str | None = None) -> tuple[int, str]:
        """Return the status and the text of the answer."""
        ...


async def ask_list(client: Getter, *, api_key: str | None = None) -> tuple[int, str]:
    """Return the status and the text of the server's answer.

    Raises:
        ModelUnavailable: no connection.
        ModelTimeout: no answer within PING_SECONDS.
    """
    try:
        async with asyncio.timeout(PING_SECONDS):
            return await client.get(LIST, api_key=api_key)
    except TimeoutError:
        raise ModelTimeout("The model's provider did not answer in time.") from None


async def ping(client: Getter) -> None:
    """Ask for the list; any status below 500 shows that the server is up.

    Raises:
        ModelUnavailable: no connection, or a status of 500 and more.
        ModelTimeout: no answer within PING_SECONDS.
    """
    status, _ = await ask_list(client)
    if status >= 500:
        raise ModelUnavailable(f"The model's provider is out of order ({status}).", outage=True)


def model_ids(text: str) -> tuple[str, ...]:
    """Return the ids in a list of models: {"data": [{"id"}]}, or the bare list that some servers send; each once."""
    try:
        body: object = json.loads(text)
    except ValueError:
        return ()
    items: object = cast("Mapping[str, Any]", body).get("data") if isinstance(body, Mapping) else body
    found = cast("list[Any]", items) if isinstance(items, list) else []
    named = [cast("Mapping[str, Any]", item).get("id") for item in found if isinstance(item, Mapping)]
    return tuple(dict.fromkeys(name for name in named if isinstance(name, str) and name))
