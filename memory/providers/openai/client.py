"""Opens and closes the one client of an OpenAI-compatible server, and checks that the server is up."""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, cast
from urllib.parse import urlsplit

import httpx
import openai

from recollect.memory.providers.accounts import AzureAccount
from recollect.memory.providers.endpoint import Endpoint
from recollect.memory.providers.openai.azure import azure_credentials
from recollect.memory.providers.wire import hooks
from recollect.memory.values.errors import ModelTimeout, ModelUnavailable

MAX_RETRIES = 1
"""On the way to a reply. Background work has its own back-off."""
PING_SECONDS = 2.0
CONNECT_SECONDS = 5.0
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


@cache
def certificates() -> ssl.SSLContext:
    """Load the certificates, once for all clients: each copy costs 20 ms and some megabytes."""
    return httpx.create_ssl_context()


@asynccontextmanager
async def open_client(source: Endpoint, *, timeout_seconds: float) -> AsyncGenerator[openai.AsyncOpenAI]:
    """Open a client of the server with keep-alive for 100 concurrent calls, closed at exit.

    It uses proxies of the environment except for servers on this machine.
    """
    client = await asyncio.to_thread(_build, source, timeout_seconds)
    async with client:
        yield client


def _build(source: Endpoint, timeout_seconds: float) -> openai.AsyncOpenAI:
    """Build the client. It reads certificates and package metadata from disk: not on the event loop."""
    timeout = openai.Timeout(timeout_seconds, connect=min(CONNECT_SECONDS, timeout_seconds))
    http_client = openai.DefaultAsyncHttpxClient(
        verify=certificates(),
        timeout=timeout,
        trust_env=urlsplit(source.base_url).hostname not in LOOPBACK,
        event_hooks=hooks(),
    )
    if isinstance(source.account, AzureAccount):
        return openai.AsyncAzureOpenAI(
            azure_endpoint=source.base_url,
            api_version=source.account.api_version,
            http_client=http_client,
            max_retries=MAX_RETRIES,
            timeout=timeout,
            **azure_credentials(source, source.account),
        )
    return openai.AsyncOpenAI(
        api_key=source.api_key,
        base_url=source.base_url,
        http_client=http_client,
        max_retries=MAX_RETRIES,
        timeout=timeout,
    )


async def ping(client: openai.AsyncOpenAI) -> None:
    """Ask for the list of models, which costs no tokens; any status below 500 shows that the server is up.

    Raises:
        ModelUnavailable: no connection, or a status of 500 and more.
        ModelTimeout: no answer within PING_SECONDS.
    """
    quick = client.with_options(max_retries=0, timeout=PING_SECONDS)
    try:
        await quick.models.with_raw_response.list()
    except openai.APITimeoutError:
        raise ModelTimeout("The model's provider did not answer in time.") from None
    except openai.APIConnectionError:
        raise ModelUnavailable("The model's provider cannot be reached.", outage=True) from None
    except openai.APIStatusError as error:
        if error.status_code >= 500:
            raise ModelUnavailable(
                f"The model's provider is out of order ({error.status_code}).", outage=True
            ) from None


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
