"""Addresses Azure OpenAI's deployments, and says who asks: by a key, an Entra token, or tokens that are renewed."""

import asyncio
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any
from urllib.parse import quote

from recollect.memory.providers.accounts import RENEWED, AzureAccount
from recollect.memory.providers.endpoint import Endpoint
from recollect.memory.providers.extras import imported
from recollect.memory.values.frozen import frozen

_SCOPE = "https://cognitiveservices.azure.com/.default"


def azure_credentials(source: Endpoint, account: AzureAccount) -> dict[str, Any]:
    """Return the arguments of OpenAI's client for Azure that hold the credential; a key goes before a token.

    Raises:
        ConfigurationError: tokens are to be renewed, and the package for it is not installed.
    """
    if source.has_key:
        return {"api_key": source.api_key}
    if account.ad_token == RENEWED:
        _identity()
        return {"azure_ad_token_provider": _renewed}
    return {"azure_ad_token": account.ad_token}


@frozen
class AzureCalls:
    """The address and the headers of calls to Azure that go past OpenAI's client."""

    source: Endpoint
    account: AzureAccount

    def url(self, path: str, body: Mapping[str, Any] | None) -> str:
        """Return the address of `path`: at the deployment that the body's `model` names, without a body at none."""
        deployment = "" if body is None else f"/deployments/{quote(str(body['model']), safe='')}"
        version = quote(self.account.api_version, safe="")
        return f"{self.source.base_url}/openai{deployment}{path}?api-version={version}"

    async def headers(self) -> dict[str, str]:
        """Return the headers that say who asks."""
        if self.source.has_key:
            return {"api-key": self.source.api_key}
        token = await _renewed() if self.account.ad_token == RENEWED else self.account.ad_token
        return {"Authorization": f"Bearer {token}"}


async def _renewed() -> str:
    """Return a token of the machine's identity; a new one is asked for over the network, which blocks."""
    return str(await asyncio.to_thread(_identity()))


@cache
def _identity() -> Callable[[], str]:
    """Return what gives tokens: one for the process, because it keeps each until shortly before its end."""
    identity = imported("azure.identity", f"AZURE_OPENAI_AD_TOKEN={RENEWED}", extra="azure")
    return identity.get_bearer_token_provider(identity.DefaultAzureCredential(), _SCOPE)
