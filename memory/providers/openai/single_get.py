"""Asks a server for one path with the standard library, which takes a start less time than the import of aiohttp."""

import asyncio
from collections.abc import Mapping
from time import monotonic
from typing import Any

from recollect.memory.providers.endpoint import Endpoint
from recollect.memory.providers.openai.address import address_of, proxy_of
from recollect.memory.providers.openai.certificates import certificates
from recollect.memory.providers.wire import MOST_BYTES
from recollect.memory.values.errors import ModelUnavailable
from recollect.memory.values.frozen import frozen

_PIECE = 64 * 1024


@frozen
class SingleGet:
    """Asks the server `source` over a connection of its own each time; `seconds` bounds each wait for it."""

    source: Endpoint
    seconds: float

    async def get(self, path: str, *, api_key: str | None = None) -> tuple[int, str]:
        """Return the status and the text of the answer; a redirection is an answer too, and a long text is cut.

        Raises:
            ModelUnavailable: no connection.
            ValueError: the address or the key has characters that the standard library does not send.
        """
        url, headers = await address_of(self.source).called(path, None, api_key)
        return await asyncio.to_thread(_answer, url, headers, self.seconds)


def _answer(url: str, headers: Mapping[str, str], seconds: float) -> tuple[int, str]:
    from http.client import HTTPException
    from urllib.request import HTTPHandler, HTTPSHandler, OpenerDirector, ProxyHandler, Request

    # Without the handlers that follow redirections (those would send the key to another server) or raise errors.
    opener = OpenerDirector()
    proxy, scheme = proxy_of(url), url.partition(":")[0]
    for handler in (
        ProxyHandler({scheme: proxy} if proxy else {}),
        HTTPSHandler(context=certificates()) if scheme == "https" else HTTPHandler(),
    ):
        opener.add_handler(handler)
    try:
        with opener.open(Request(url, headers=dict(headers)), timeout=seconds) as answer:
            return answer.status, _text(answer, monotonic() + seconds)
    except (OSError, HTTPException):
        raise ModelUnavailable("The model's provider cannot be reached.", outage=True) from None


def _text(answer: Any, ends: float) -> str:
    """Read the answer until it has come, is too long, or the clock says `ends`."""
    text = bytearray()
    while len(text) < MOST_BYTES and monotonic() < ends and (piece := answer.read1(_PIECE)):
        text += piece
    return text.decode(errors="replace")
