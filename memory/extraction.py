"""The extractor that asks chat models, in order of preference: function calling, JSON mode, one repair, and no more."""

import json
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from memory.chat_model import ChatMessage, ChatModel, ChatReply, ChatRequest, Usage
from memory.errors import InvalidRequest, ModelUnavailable, Problem, UnreadableAnswer
from memory.extraction_answer import MOST_CHARACTERS, Reading, read_args, read_text
from memory.extraction_prompt import FUNCTION, extraction_messages, repair_messages, tool
from memory.extraction_schema import WantedKeys
from memory.extractor import Extraction, ExtractionRequest

logger = logging.getLogger(__name__)

OpenNamed = Callable[[str], AbstractAsyncContextManager[ChatModel]]


class ModelExtractor:
    """Implements `Extractor` on chat models.

    An outage of one falls through to the next at once. `open_named` opens another model by its name, `rules` replace
    the built-in instructions, and `schema` limits what is learned.
    """

    def __init__(
        self,
        chats: Sequence[ChatModel],
        *,
        open_named: OpenNamed | None = None,
        rules: str | None = None,
        schema: WantedKeys | None = None,
    ) -> None:
        self._chats = tuple(chats)
        self._open_named = open_named
        self._rules = rules
        self._schema = schema

    async def extract(self, request: ExtractionRequest, *, model: str | None = None) -> Extraction:
        """Ask the first model that is there; see `Extractor.extract`. At most three calls to each."""
        if model is None:
            return await self._first_of(self._chats, request)
        configured = [chat for chat in self._chats if chat.name == model]
        if configured:
            return await self._first_of(configured, request)
        if self._open_named is None:
            raise InvalidRequest(problems=[Problem("model", "there is no other model to choose")])
        async with self._open_named(model) as chat:
            return await self._first_of([chat], request)

    async def _first_of(self, chats: Sequence[ChatModel], request: ExtractionRequest) -> Extraction:
        outage: ModelUnavailable | None = None
        usage = Usage()
        for chat in chats:
            call = _Call(chat, request, self._rules, self._schema)
            try:
                reading = await call.decisions()
            except ModelUnavailable as error:
                if not error.outage:
                    raise
                usage += call.usage
                outage = error
                logger.info("an extraction model is down", extra={"action": "extraction.outage", "model": chat.name})
                continue
            proposals, refused = list(reading.proposals), list(reading.refused)
            if self._schema is not None:
                proposals, unwanted = self._schema.sift(proposals, request.known)
                refused += unwanted
            return Extraction(proposals, chat.name, refused, usage + call.usage)
        raise outage or ModelUnavailable


@dataclass
class _Call:
    """The asking of one model. `usage` adds up over its calls."""

    chat: ChatModel
    request: ExtractionRequest
    rules: str | None
    schema: WantedKeys | None
    usage: Usage = field(default_factory=Usage)

    async def decisions(self) -> Reading:
        """What the model decides.

        Raises:
            ModelUnavailable: no answer.
            UnreadableAnswer: an answer and its repair hold no decisions.
        """
        reply, asked = await self._by_function(), self._asking(json_mode=False)
        if reply is None or not _holds_attempt(reply):
            logger.info("extraction falls back to JSON mode", extra={"action": "extraction.json_mode"})
            asked = self._asking(json_mode=True)
            reply = await self._complete(asked)
        reading = _read(reply)
        if reading is None:
            logger.info("extraction asks for a repair", extra={"action": "extraction.repair"})
            reply = await self._complete(_repairing(asked, reply))
            reading = _read(reply)
        if reading is None:
            raise UnreadableAnswer
        return reading

    async def _by_function(self) -> ChatReply | None:
        """The reply to the function call, or None where the model or its server knows no functions."""
        if not self.chat.calls_tools:
            return None
        try:
            return await self._complete(self._asking(json_mode=False))
        except ModelUnavailable as error:
            if error.outage:
                raise
            logger.info("the model refuses the function call", extra={"action": "extraction.function_refused"})
            return None

    def _asking(self, *, json_mode: bool) -> ChatRequest:
        messages = extraction_messages(self.request, rules=self.rules, schema=self.schema, json_mode=json_mode)
        if json_mode:
            return ChatRequest(messages=messages, json_mode=True)
        return ChatRequest(messages=messages, tools=[tool(self.schema)], tool_choice=FUNCTION)

    async def _complete(self, asked: ChatRequest) -> ChatReply:
        reply = await self.chat.complete(asked)
        self.usage += reply.usage
        return reply


def _holds_attempt(reply: ChatReply) -> bool:
    """Whether it calls the function, however badly, or holds decisions in its text."""
    return any(call.name == FUNCTION for call in reply.tool_calls) or _read(reply) is not None


def _repairing(asked: ChatRequest, reply: ChatReply) -> ChatRequest:
    calls = [call.args for call in reply.tool_calls if call.name == FUNCTION]
    broken = _shown(calls[0]) if calls else reply.text
    messages: list[ChatMessage] = repair_messages(asked.messages, broken)
    return ChatRequest(messages=messages, tools=asked.tools, tool_choice=asked.tool_choice, json_mode=asked.json_mode)


def _shown(args: object) -> str:
    try:
        return json.dumps(args, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return "arguments that are no JSON"


def _read(reply: ChatReply) -> Reading | None:
    """The decisions of a reply: those of every call of the function, else those in its text; None without any."""
    calls = [call.args for call in reply.tool_calls if call.name == FUNCTION]
    if len(reply.text) > MOST_CHARACTERS or len(str(calls)) > MOST_CHARACTERS:
        return None
    readings = [reading for reading in map(read_args, calls) if reading is not None]
    if not readings:
        return read_text(reply.text)
    return Reading(
        proposals=tuple(proposal for reading in readings for proposal in reading.proposals),
        refused=tuple(refused for reading in readings for refused in reading.refused),
    )
