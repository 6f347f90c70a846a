"""Asks a provider with a protocol of its own whether it is up."""

import httpx

from recollect.memory.providers.endpoint import Endpoint
from recollect.memory.providers.wire import hooks
from recollect.memory.values.errors import ModelTimeout, ModelUnavailable

_PING_SECONDS = 2.0
_VERTEX = "https://aiplatform.googleapis.com"


async def ping_address(source: Endpoint, address: str | None = None) -> None:
    """Ask `address`, else the provider's own, which costs no tokens; any status below 500 shows that it is up.

    Raises:
        ModelUnavailable: no connection, or a status of 500 and more.
        ModelTimeout: no answer in 2 s.
    """
    try:
        async with httpx.AsyncClient(timeout=_PING_SECONDS, event_hooks=hooks()) as http:
            status = (await http.get(address or source.base_url or _VERTEX)).status_code
    except httpx.TimeoutException:
        raise ModelTimeout("The model's provider did not answer in time.") from None
    except httpx.HTTPError:
        raise ModelUnavailable("The model's provider cannot be reached.", outage=True) from None
    if status >= 500:
        raise ModelUnavailable(f"The model's provider is out of order ({status}).", outage=True)
