"""Streams a response as its events, in the order in which OpenAI specifies them."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from fastapi.responses import StreamingResponse

from recollect.api.errors import error_body, status_of
from recollect.api.openai.answers import said
from recollect.api.openai.fate import fate, remembered
from recollect.api.openai.responses.ids import answer_id
from recollect.api.openai.responses.shapes import ended, text_part
from recollect.api.openai.turn_stream import TurnStream
from recollect.api.openai_errors import in_openais_form
from recollect.api.sse import KEEP_ALIVE
from recollect.graph.running_turn import RunningTurn
from recollect.memory.values.errors import RecollectError

Json = dict[str, Any]
ERROR_CODES: Mapping[int, str] = {400: "invalid_prompt", 429: "rate_limit_exceeded"}


class ResponseStream:
    """The events of one response; `begun` is the response as it begins."""

    def __init__(self, running: RunningTurn, begun: Json) -> None:
        self._running = running
        self._begun = begun
        self._number = 0
        self._text = ""
        self._has_message = False

    async def response(self) -> StreamingResponse:
        """Return the response once there is a first word.

        Raises:
            RecollectError: the turn failed before its first word.
        """
        stream = TurnStream(self._running)
        await stream.open()
        return stream.response(self._events(stream))

    async def _events(self, stream: TurnStream) -> AsyncIterator[str]:
        yield self._event("response.created", response=self._begun)
        yield self._event("response.in_progress", response=self._begun)
        async for text in stream.texts():
            if text is None:
                yield KEEP_ALIVE
                continue
            for event in self._spoken(text):
                yield event
        try:
            turn = await self._running.outcome()
        except RecollectError as error:
            yield self._event("response.failed", response=self._failed(error))
            return
        if not self._has_message and said(turn):
            for event in self._spoken(said(turn)):
                yield event
        whole = {**ended(self._begun, turn, self._running.turn_id), **remembered(turn, self._running)}
        for place, item in enumerate(whole["output"]):
            for event in self._item(place, item):
                yield event
        yield self._event(f"response.{whole['status']}", response=whole)

    def _spoken(self, text: str) -> Iterator[str]:
        """Yield the events of a piece of the answer, and before the first one those of the answer's begin."""
        if not self._has_message:
            yield from self._message_begun()
        self._text += text
        yield self._event("response.output_text.delta", **self._part(), delta=text, logprobs=[])

    def _message_begun(self) -> Iterator[str]:
        self._has_message = True
        item_id = answer_id(self._running.turn_id)
        item: Json = {"id": item_id, "type": "message", "role": "assistant", "status": "in_progress", "content": []}
        yield self._event("response.output_item.added", output_index=0, item=item)
        yield self._event("response.content_part.added", **self._part(), part=text_part(""))

    def _item(self, place: int, item: Json) -> Iterator[str]:
        """Yield the events that end the answer's item, or the whole item of a call."""
        if item["type"] == "message":
            if not self._has_message:
                yield from self._message_begun()
            part = item["content"][0]
            yield self._event("response.output_text.done", **self._part(), text=part["text"], logprobs=[])
            yield self._event("response.content_part.done", **self._part(), part=part)
        else:
            of = {"item_id": item["id"], "output_index": place}
            begun = {**item, "arguments": "", "status": "in_progress"}
            yield self._event("response.output_item.added", output_index=place, item=begun)
            arguments: str = item["arguments"]
            yield self._event("response.function_call_arguments.delta", **of, delta=arguments)
            done = {"name": item["name"], "arguments": arguments}
            yield self._event("response.function_call_arguments.done", **of, **done)
        yield self._event("response.output_item.done", output_index=place, item=item)

    def _part(self) -> Json:
        """Return the place of the answer's text."""
        return {"item_id": answer_id(self._running.turn_id), "output_index": 0, "content_index": 0}

    def _failed(self, error: RecollectError) -> Json:
        shown, status = in_openais_form(error_body(error), status_of(error))
        code = ERROR_CODES.get(status, "server_error")
        failure = {"code": code, "message": shown["error"]["message"]}
        return {**self._begun, "status": "failed", "error": failure, "memory": fate(self._running)}

    def _event(self, kind: str, **fields: Any) -> str:
        shown = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        return f"event: {kind}\ndata: {json.dumps(shown, ensure_ascii=False, separators=(',', ':'))}\n\n"
