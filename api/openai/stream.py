"""Streams a chat completion in chunks. The generator only reads the turn: a client that leaves stops nothing."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

from fastapi.responses import StreamingResponse

from recollect.api.errors import error_body, status_of
from recollect.api.openai.answers import finish_reason, remembered, said, stored_header, tool_calls, usage
from recollect.api.openai_errors import in_openais_form
from recollect.api.sse import KEEP_ALIVE, KEEP_ALIVE_SECONDS
from recollect.graph.running_turn import Piece, RunningTurn
from recollect.memory.values.errors import RecollectError

Json = dict[str, Any]

DONE = "data: [DONE]\n\n"


class ChatStream:
    """The chunks of one completion. `model` is the requested one; `include_usage` adds the chunk with the usage."""

    def __init__(self, running: RunningTurn, *, model: str, include_usage: bool) -> None:
        self._running = running
        self._follower = running.follow()
        self._model = model
        self._include_usage = include_usage
        self._created = int(time.time())

    async def response(self) -> StreamingResponse:
        """Return the response once there is a first word: an error before that is a plain status.

        Raises:
            RecollectError: the turn failed before its first word.
        """
        first = await self._next()
        while isinstance(first, tuple) and first[0] != "token":
            first = await self._next()
        if first is None:
            await self._running.outcome()
        # At this point `is_stored` is a forecast; the last chunk says whether the turn is stored.
        stored = stored_header(self._running.is_stored)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", **stored}
        return StreamingResponse(self._chunks(first), media_type="text/event-stream", headers=headers)

    async def _chunks(self, first: Piece | str | None) -> AsyncIterator[str]:
        yield self._choice({"role": "assistant", "content": ""})
        has_spoken, piece = False, first
        while piece is not None:
            if isinstance(piece, str):
                yield piece
            elif piece[0] == "token":
                has_spoken = True
                yield self._choice({"content": piece[1]["text"]})
            piece = await self._next()
        try:
            turn = await self._running.outcome()
        except RecollectError as error:
            yield _data(in_openais_form(error_body(error), status_of(error))[0])
            return
        if not has_spoken and said(turn):
            yield self._choice({"content": said(turn)})
        for place, call in enumerate(tool_calls(turn)):
            yield self._choice({"tool_calls": [{"index": place, **call}]})
        memory = remembered(turn, is_stored=self._running.is_stored)
        yield self._choice({}, finish_reason(turn), **({} if self._include_usage else memory))
        if self._include_usage:
            yield _data({**self._chunk(), "choices": [], "usage": usage(turn), **memory})
        yield DONE

    async def _next(self) -> Piece | str | None:
        """Return the turn's next event, a keep-alive after a silence, None at its end."""
        try:
            return await asyncio.wait_for(self._follower.get(), KEEP_ALIVE_SECONDS)
        except TimeoutError:
            return KEEP_ALIVE

    def _choice(self, delta: Json, finish: str | None = None, **more: Any) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        counted = {"usage": None} if self._include_usage else {}
        return _data({**self._chunk(), "choices": [choice], **counted, **more})

    def _chunk(self) -> Json:
        return {
            "id": completion_id(self._running),
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._model,
        }


def completion_id(running: RunningTurn) -> str:
    """Return the completion's id, which names the turn."""
    return f"chatcmpl-{running.turn_id}"


def _data(shown: Json) -> str:
    return f"data: {json.dumps(shown, ensure_ascii=False, separators=(',', ':'))}\n\n"
