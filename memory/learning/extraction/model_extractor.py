"""Model extractor: asks chat models in order of preference, each by function calling, JSON mode, and one repair."""

import json
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace

from typing_extensions import override

from recollect.memory.learning.extraction.answer import MOST_CHARACTERS, Reading, read_args, read_decisions
from recollect.memory.learning.extraction.prompt import (
    FUNCTION,
    extraction_messages,
    repair_messages,
    second_messages,
    tool,
)
from recollect.memory.learning.extraction.schema import WantedKeys
from recollect.memory.ports.chat_model import ChatMessage, ChatModel, ChatReply, ChatRequest, Usage
from recollect.memory.ports.extractor import Extraction, ExtractionRequest, Extractor
from recollect.memory.values.decision import Proposal
from recollect.memory.values.errors import InvalidRequest, ModelUnavailable, Problem, UnreadableAnswer
from recollect.memory.values.fact import fold

logger = logging.getLogger(__name__)

OpenNamed = Callable[[str], AbstractAsyncContextManager[ChatModel]]


class ModelExtractor(Extractor):
    """Implements `Extractor` on chat models.

    At an outage of one model the next one is asked at once. `open_named` opens another model by its name, `rules`
    replace the built-in instructions, and `schema` limits what is learned. A model that only keeps what is known is
    asked once more if `second_look` reads a value in the messages that is not known.
    """

    def __init__(
        self,
        chats: Sequence[ChatModel],
        *,
        open_named: OpenNamed | None = None,
        rules: str | None = None,
        schema: WantedKeys | None = None,
        second_look: Extractor | None = None,
    ) -> None:
        self._chats = tuple(chats)
        self._open_named = open_named
        self._rules = rules
        self._schema = schema
        self._second_look = second_look

    @override
    async def extract(self, request: ExtractionRequest, *, model: str | None = None) -> Extraction:
        """Ask the first available model; see `Extractor.extract`. Make at most four calls to each."""
        if model is None:
            return await self._first_of(self._chats, request)
        configured = [chat for chat in self._chats if chat.name == model]
        if configured:
            return await self._first_of(configured, request)
        if self._open_named is None:
            raise InvalidRequest(problems=[Problem("model", "there is no other model to choose")])
        async with self._open_named(model) as chat:
            return await self._first_of([chat], request)

    @override
    async def may_ask(self, model: str) -> bool:
        if model in {chat.name for chat in self._chats}:
            return True
        return self._open_named is not None and model in await self._chats[0].models()

    async def _first_of(self, chats: Sequence[ChatModel], request: ExtractionRequest) -> Extraction:
        outage: ModelUnavailable | None = None
        usage = Usage()
        for chat in chats:
            call = _ModelCalls(chat, request, self._rules, self._schema)
            try:
                reading = await call.decisions()
                missed = await self._missed(request, reading)
                if missed:
                    reading = await call.once_more(missed) or reading
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

    async def _missed(self, request: ExtractionRequest, reading: Reading) -> list[Proposal]:
        """Return what the rules read and is not known, if the model only keeps what is known."""
        if self._second_look is None or not _only_keeps(reading):
            return []
        found = await self._second_look.extract(request)
        values = {fold(fact.value) for fact in request.known}
        return [
            one for one in found.proposals if one.decision in {"add", "update"} and fold(one.value or "") not in values
        ]


@dataclass
class _ModelCalls:
    """Asks one model. `usage` adds up over its calls; `_last` keeps the last call that was answered."""

    chat: ChatModel
    request: ExtractionRequest
    rules: str | None
    schema: WantedKeys | None
    usage: Usage = field(default_factory=Usage)
    _last: tuple[ChatRequest, ChatReply] | None = None

    async def decisions(self) -> Reading:
        """Return the model's decisions.

        Raises:
            ModelUnavailable: the model gave no answer.
            UnreadableAnswer: its answer and the repair hold no decisions.
        """
        asked = self._asking(json_mode=False)
        reply = await self._by_function(asked)
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

    async def once_more(self, missed: Sequence[Proposal]) -> Reading | None:
        """Return the model's decisions after it is shown what it `missed`; None without a readable answer."""
        assert self._last is not None
        asked, reply = self._last
        logger.info("extraction is asked once more", extra={"action": "extraction.once_more", "missed": len(missed)})
        messages: list[ChatMessage] = second_messages(asked.messages, _answer(reply), missed)
        try:
            return _read(await self._complete(replace(asked, messages=messages)))
        except ModelUnavailable as error:
            logger.info(
                "the model fails at it", extra={"action": "extraction.once_more_failed", "outage": error.outage}
            )
            return None

    async def _by_function(self, asked: ChatRequest) -> ChatReply | None:
        """Return the reply to the function call `asked`; None if the model or its server knows no functions."""
        if not self.chat.calls_tools:
            return None
        try:
            return await self._complete(asked)
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
        self._last = (asked, reply)
        return reply


def _holds_attempt(reply: ChatReply) -> bool:
    """Tell whether `reply` calls the function, even with bad arguments, or holds decisions in its text."""
    return any(call.name == FUNCTION for call in reply.tool_calls) or _read(reply) is not None


def _repairing(asked: ChatRequest, reply: ChatReply) -> ChatRequest:
    messages: list[ChatMessage] = repair_messages(asked.messages, _answer(reply))
    return replace(asked, messages=messages)


def _answer(reply: ChatReply) -> str:
    """Return the answer as text: the arguments of its first call of the function, else its text."""
    calls = [call.args for call in reply.tool_calls if call.name == FUNCTION]
    return _shown(calls[0]) if calls else reply.text


def _only_keeps(reading: Reading) -> bool:
    return bool(reading.proposals) and all(proposal.decision == "keep" for proposal in reading.proposals)


def _shown(args: object) -> str:
    try:
        return json.dumps(args, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return "arguments that are no JSON"


def _read(reply: ChatReply) -> Reading | None:
    """Read the decisions of every call of the function, else those in the text of `reply`; None without any."""
    calls = [call.args for call in reply.tool_calls if call.name == FUNCTION]
    if len(reply.text) > MOST_CHARACTERS or len(str(calls)) > MOST_CHARACTERS:
        return None
    readings = [reading for reading in map(read_args, calls) if reading is not None]
    if not readings:
        return read_decisions(reply.text)
    return Reading(
        proposals=tuple(proposal for reading in readings for proposal in reading.proposals),
        refused=tuple(refused for reading in readings for refused in reading.refused),
    )
