"""Streams a chat completion in chunks."""

import time
from collections.abc import AsyncIterator
from typing import Any

from fastapi.responses import StreamingResponse

from recollect.api.errors import error_body, status_of
from recollect.api.openai.answers import completion_id, finish_reason, said, tool_calls, usage
from recollect.api.openai.fate import remembered
from recollect.api.openai.turn_stream import TurnStream, data
from recollect.api.openai_errors import in_openais_form
from recollect.api.sse import KEEP_ALIVE
from recollect.graph.running_turn import RunningTurn
from recollect.memory.values.errors import RecollectError

Json = dict[str, Any]

DONE = "data: [DONE]\n\n"


class ChatStream:
    """The chunks of one completion. `model` is the requested one; `include_usage` adds the chunk with the usage."""

    def __init__(self, running: RunningTurn, *, model: str, include_usage: bool) -> None:
        self._running = running
        self._model = model
        self._include_usage = include_usage
        self._created = int(time.time())

    async def response(self) -> StreamingResponse:
        """Return the response once there is a first word.

        Raises:
            RecollectError: the turn failed before its first word.
        """
        stream = TurnStream(self._running)
        await stream.open()
        return stream.response(self._chunks(stream))

    async def _chunks(self, stream: TurnStream) -> AsyncIterator[str]:
        yield self._choice({"role": "assistant", "content": ""})
        has_spoken = False
        async for text in stream.texts():
            has_spoken = has_spoken or text is not None
            yield KEEP_ALIVE if text is None else self._choice({"content": text})
        try:
            turn = await self._running.outcome()
        except RecollectError as error:
            yield data(in_openais_form(error_body(error), status_of(error))[0])
            return
        if not has_spoken and said(turn):
            yield self._choice({"content": said(turn)})
        for place, call in enumerate(tool_calls(turn)):
            yield self._choice({"tool_calls": [{"index": place, **call}]})
        memory = remembered(turn, self._running)
        yield self._choice({}, finish_reason(turn), **({} if self._include_usage else memory))
        if self._include_usage:
            yield data({**self._chunk(), "choices": [], "usage": usage(turn), **memory})
        yield DONE

    def _choice(self, delta: Json, finish: str | None = None, **more: Any) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        counted = {"usage": None} if self._include_usage else {}
        return data({**self._chunk(), "choices": [choice], **counted, **more})

    def _chunk(self) -> Json:
        return {
            "id": completion_id(self._running),
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._model,
        }
