"""Gives Google's client connections of its own, bounded and closed by us."""

from contextlib import AsyncExitStack
from typing import Any, cast

from recollect.memory.providers.wire import bound


def own_connections(client: object, opened: AsyncExitStack) -> None:
    """Bound the answers to Google's `client`, and close its connections with `opened`.

    Without a client of ours, Google's library would use aiohttp where that is installed.
    """
    connections = cast("Any", client)._api_client
    bound(connections._async_httpx_client)
    connections._http_options.httpx_async_client = connections._async_httpx_client
    opened.push_async_callback(connections._async_httpx_client.aclose)
