"""A chat completion as a stream of chunks. The generator only reads the turn: a client that leaves stops nothing."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

from fastapi.responses import StreamingResponse

from api.errors import error_body, status_of
from api.openai_answers import finish_reason, recalled, said, tool_calls, usage
from api.openai_errors import in_openais_form
from api.sse import KEEP_ALIVE, KEEP_ALIVE_SECONDS
from graph.running_turn import Piece, RunningTurn
from memory.errors import RecollectError

Json = dict[str, Any]

DONE = "data: [DONE]\n\n"


class ChatStream:
    """The chunks of one completion. `model` is the one asked for; `include_usage` adds the chunk with the usage."""

    def __init__(self, running: RunningTurn, *, model: str, include_usage: bool) -> None:
        self._running = running
        self._follower = running.follow()
        self._model = model
        self._include_usage = include_usage
        self._created = int(time.time())

    async def response(self) -> StreamingResponse:
        """The response, once there is something to say: what fails before that is a plain status.

        Raises:
            RecollectError: the turn failed before its first word.
        """
        first = await self._next()
        while isinstance(first, tuple) and first[0] != "token":
            first = await self._next()
        if first is None:
            await self._running.outcome()
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
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
        memory = recalled(turn)
        yield self._choice({}, finish_reason(turn), **({} if self._include_usage else memory))
        if self._include_usage:
            yield _data({**self._chunk(), "choices": [], "usage": usage(turn), **memory})
        yield DONE

    async def _next(self) -> Piece | str | None:
        """What the turn shows next, a sign of life where it shows nothing for a while, None at its end."""
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
    """The completion's id, which names the turn."""
    return f"chatcmpl-{running.turn_id}"


def _data(shown: Json) -> str:
    return f"data: {json.dumps(shown, ensure_ascii=False, separators=(',', ':'))}\n\n"
