"""Follows a turn for a stream: its first word, its pieces, and keep-alives in between."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from fastapi.responses import StreamingResponse

from recollect.api.openai.fate import stored_header
from recollect.api.sse import KEEP_ALIVE, KEEP_ALIVE_SECONDS
from recollect.graph.running_turn import Piece, RunningTurn

Json = dict[str, Any]
Text = str | None
"""A piece of the reply; None for a silence of KEEP_ALIVE_SECONDS."""


class TurnStream:
    """A running turn as a stream follows it. The stream only reads: a client that leaves stops nothing."""

    def __init__(self, running: RunningTurn) -> None:
        self._running = running
        self._follower = running.follow()
        self._first: Piece | str | None = None

    async def open(self) -> None:
        """Wait for the first word, or for a silence: an error before it is a plain status.

        Raises:
            RecollectError: the turn failed before its first word.
        """
        self._first = await self._next()
        while isinstance(self._first, tuple) and self._first[0] != "token":
            self._first = await self._next()
        if self._first is None:
            await self._running.outcome()

    async def texts(self) -> AsyncIterator[Text]:
        """Yield the pieces of the reply until it ends, and None for each silence."""
        piece = self._first
        while piece is not None:
            if isinstance(piece, str):
                yield None
            elif piece[0] == "token":
                yield piece[1]["text"]
            piece = await self._next()

    def response(self, parts: AsyncIterator[str]) -> StreamingResponse:
        """Return the response that sends `parts`; its header forecasts whether the turn is going to be stored."""
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", **stored_header(self._running)}
        return StreamingResponse(parts, media_type="text/event-stream", headers=headers)

    async def _next(self) -> Piece | str | None:
        """Return the turn's next event, a keep-alive after a silence, None at its end."""
        try:
            return await asyncio.wait_for(self._follower.get(), KEEP_ALIVE_SECONDS)
        except TimeoutError:
            return KEEP_ALIVE


def data(shown: Json) -> str:
    """Return the line of an event that holds `shown`."""
    return f"data: {json.dumps(shown, ensure_ascii=False, separators=(',', ':'))}\n\n"
