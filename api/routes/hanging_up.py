"""Cancels work when the client that asked for it leaves."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

from fastapi import Request
from starlette.requests import ClientDisconnect

Answer = TypeVar("Answer")


class Sender:
    """The client of a request, whose body is read in pieces or has been read."""

    def __init__(self, request: Request, *, has_sent: bool = False) -> None:
        self._request = request
        self._has_sent = asyncio.Event()
        if has_sent:
            self._has_sent.set()

    async def body(self) -> AsyncIterator[bytes]:
        """Yield the pieces of the body.

        Raises:
            ClientDisconnect: the client has gone amid it.
        """
        async for piece in self._request.stream():
            yield piece
        self._has_sent.set()

    async def unless_gone(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Return the work's result, or cancel the work when the client leaves.

        Raises:
            ClientDisconnect: the client has gone behind its body; the work is cancelled.
        """
        working = asyncio.create_task(work, name="bulk-request")
        watching = asyncio.create_task(self._gone(), name="bulk-client")
        try:
            await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            raise ClientDisconnect
        finally:
            for task in (working, watching):
                task.cancel()
            await asyncio.gather(working, watching, return_exceptions=True)

    async def _gone(self) -> None:
        # While the body is still being read, its reader receives the disconnect; receiving it here would take it away.
        await self._has_sent.wait()
        while (await self._request.receive())["type"] != "http.disconnect":
            pass
