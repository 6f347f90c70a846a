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
        try:
            await self.wait_for(working)
            return working.result()
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    async def wait_for(self, working: "asyncio.Task[Any]", *, seconds: float | None = None) -> bool:
        """Wait for the end of the work, at most `seconds`, and until the body is there; return whether it has ended.

        Raises:
            ClientDisconnect: the client has gone behind its body.
        """
        watching = asyncio.create_task(self._gone(), name="bulk-client")
        waiting = asyncio.create_task(self._patience(seconds), name="bulk-patience")
        try:
            await asyncio.wait({working, watching, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if watching.done() and not working.done():
                raise ClientDisconnect
            return working.done()
        finally:
            for task in (watching, waiting):
                task.cancel()
            await asyncio.gather(watching, waiting, return_exceptions=True)

    async def _patience(self, seconds: float | None) -> None:
        """Return once `seconds` have passed and the body is there; never with None."""
        await asyncio.gather(
            asyncio.Event().wait() if seconds is None else asyncio.sleep(seconds), self._has_sent.wait()
        )

    async def _gone(self) -> None:
        # While the body is still being read, its reader receives the disconnect; receiving it here would take it away.
        await self._has_sent.wait()
        while (await self._request.receive())["type"] != "http.disconnect":
            pass
