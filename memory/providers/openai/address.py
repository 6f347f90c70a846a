"""Says at which address an OpenAI-compatible server is called, and by which headers it knows who asks."""

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from recollect.memory.providers.accounts import AzureAccount
from recollect.memory.providers.endpoint import Endpoint
from recollect.memory.providers.openai.azure import AzureCalls
from recollect.memory.values.frozen import frozen

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_ACCOUNTS = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
"""Headers, and the variables of the environment from which OpenAI's SDK takes them too."""


@frozen
class Address:
    """Where the server is: `headers` go with each request, and `azure` names the address and credentials of each."""

    url: str
    headers: Mapping[str, str]
    azure: AzureCalls | None = None

    async def called(
        self, path: str, body: Mapping[str, Any] | None, api_key: str | None
    ) -> tuple[str, Mapping[str, str]]:
        """Return the URL of `path`, and the request's headers; `api_key` takes the place of the configured key."""
        if self.azure is not None:
            return self.azure.url(path, body), {**self.headers, **await self.azure.headers()}
        own = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        return f"{self.url}{path}", {**self.headers, **own}


def address_of(source: Endpoint) -> Address:
    """Return the address of the server `source`."""
    azure = AzureCalls(source, source.account) if isinstance(source.account, AzureAccount) else None
    return Address(source.base_url.rstrip("/"), _headers(source, azure), azure)


def proxy_of(url: str) -> str | None:
    """Return the environment's proxy for the server, if any; a server on this machine has none."""
    from urllib.request import getproxies, proxy_bypass  # which a start without a provider does not need

    target = urlsplit(url)
    host = target.hostname or ""
    if host in LOOPBACK or proxy_bypass(host):
        return None
    proxies = getproxies()
    return proxies.get(target.scheme) or proxies.get("all")


def _headers(source: Endpoint, azure: AzureCalls | None) -> dict[str, str]:
    """Return the headers of every request; Azure's say who asks with each one."""
    fixed = {
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "Content-Type": "application/json",
        "User-Agent": "Recollect",
    }
    if azure is not None:
        return fixed
    named = {header: os.environ[name] for header, name in _ACCOUNTS.items() if os.environ.get(name)}
    return {**fixed, **named, "Authorization": f"Bearer {source.api_key}"}
