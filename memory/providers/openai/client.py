"""Opens and closes OpenAI's own client of a server, for calls that LangChain observes."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import openai

from recollect.memory.providers.accounts import AzureAccount
from recollect.memory.providers.endpoint import Endpoint
from recollect.memory.providers.openai.address import LOOPBACK
from recollect.memory.providers.openai.azure import azure_credentials
from recollect.memory.providers.openai.certificates import certificates
from recollect.memory.providers.openai.plain_calls import CONNECT_SECONDS
from recollect.memory.providers.openai.plain_client import MAX_RETRIES
from recollect.memory.providers.wire import hooks


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
