"""Streams a turn as server-sent events. The generator only reads the turn's queue: a leaving client stops nothing."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from fastapi.responses import StreamingResponse

from recollect.api.errors import error_body
from recollect.graph.running_turn import Piece, RunningTurn
from recollect.memory.memory import Memory
from recollect.memory.values.errors import RecollectError

KEEP_ALIVE_SECONDS = 15.0
KEEP_ALIVE = ": keep-alive\n\n"
STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def stream_turn(memory: Memory, running: RunningTurn, *, wait_for_memory: bool) -> StreamingResponse:
    """Return the response of a turn that was accepted."""
    return StreamingResponse(
        _events(memory, running, wait_for_memory=wait_for_memory),
        media_type="text/event-stream",
        headers=STREAM_HEADERS,
    )


def event(name: str, data: Any) -> str:
    """Return one event as it is sent."""
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n"


async def _events(memory: Memory, running: RunningTurn, *, wait_for_memory: bool) -> AsyncIterator[str]:
    yield event("turn", {"turn_id": running.turn_id})
    try:
        async for piece in pieces(running):
            yield KEEP_ALIVE if piece is None else event(*piece)
        turn = await running.outcome()
        yield event("message", turn.as_json())
        if wait_for_memory:
            updated = await memory.learned(turn)
            yield event("update", updated.as_json()["memory"]["update"])
        yield event("done", {})
    except RecollectError as error:
        yield event("error", error_body(error))


async def pieces(running: RunningTurn) -> AsyncIterator[Piece | None]:
    """Yield the turn's events until its reply is stored; None after a silence of KEEP_ALIVE_SECONDS."""
    follower = running.follow()
    while True:
        try:
            piece = await asyncio.wait_for(follower.get(), KEEP_ALIVE_SECONDS)
        except TimeoutError:
            yield None
            continue
        if piece is None:
            return
        yield piece
