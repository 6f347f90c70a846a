"""The extractor that asks a chat model: function calling first, JSON mode next, and then it gives up visibly."""

import logging

from memory.chat_model import ChatModel, ChatReply, ChatRequest, Usage
from memory.errors import ModelUnavailable, UnreadableAnswer
from memory.extraction_answer import MOST_CHARACTERS, Reading, read_args, read_text
from memory.extraction_prompt import FUNCTION, TOOL, extraction_messages
from memory.extractor import Extraction, ExtractionRequest

logger = logging.getLogger(__name__)


class ModelExtractor:
    """Implements `Extractor` on any chat model."""

    def __init__(self, chat: ChatModel) -> None:
        self._chat = chat

    async def extract(self, request: ExtractionRequest) -> Extraction:
        """One call to the model, and a second one in JSON mode where it ignores, refuses or garbles the function."""
        usage = Usage()
        if self._chat.calls_tools:
            reply = await self._call_function(request)
            if reply is not None:
                usage += reply.usage
                reading = _from_function(reply)
                if reading is not None:
                    return _extraction(reading, reply, usage)
            logger.info("extraction falls back to JSON mode", extra={"action": "extraction.json_mode"})
        reply = await self._chat.complete(
            ChatRequest(messages=extraction_messages(request, json_mode=True), json_mode=True)
        )
        reading = read_text(reply.text)
        if reading is None:
            raise UnreadableAnswer
        return _extraction(reading, reply, usage + reply.usage)

    async def _call_function(self, request: ExtractionRequest) -> ChatReply | None:
        """The reply to the function call, or None where the server refuses functions."""
        try:
            return await self._chat.complete(
                ChatRequest(messages=extraction_messages(request), tools=[TOOL], tool_choice=FUNCTION)
            )
        except ModelUnavailable as error:
            if error.outage:
                raise
            logger.info("the model refuses the function call", extra={"action": "extraction.function_refused"})
            return None


def _from_function(reply: ChatReply) -> Reading | None:
    """The decisions of a reply: those of every call of the function, else those in its text.

    Raises:
        UnreadableAnswer: it is longer than any answer may be.
    """
    calls = [call.args for call in reply.tool_calls if call.name == FUNCTION]
    if len(reply.text) > MOST_CHARACTERS or len(str(calls)) > MOST_CHARACTERS:
        raise UnreadableAnswer
    readings = [reading for reading in map(read_args, calls) if reading is not None]
    if not readings:
        return read_text(reply.text)
    return Reading(
        proposals=tuple(proposal for reading in readings for proposal in reading.proposals),
        refused=tuple(refused for reading in readings for refused in reading.refused),
    )


def _extraction(reading: Reading, reply: ChatReply, usage: Usage) -> Extraction:
    return Extraction(reading.proposals, reply.model, reading.refused, usage)
