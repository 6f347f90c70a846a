"""The summarizer port, and the summarizer that asks chat models."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from memory.chat_model import ChatModel, ChatReply, ChatRequest, Usage
from memory.errors import ModelUnavailable
from memory.summary_prompt import summary_messages
from memory.summary_text import readable_summary
from memory.turn import Exchange

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """What a summary is made of: the old one (None: there is none) and the turns to take in, oldest first.

    `tokens` is the budget of the new one (see `memory/tokens.py`).
    """

    old: str | None
    exchanges: Sequence[Exchange]
    tokens: int
    now: datetime


@dataclass(frozen=True, slots=True)
class Summary:
    """The new summary, within its budget; "" where there was nothing to say. `model` names who wrote it."""

    text: str
    model: str
    by: Literal["model", "extract"]
    usage: Usage = field(default_factory=Usage)


class Summarizer(Protocol):
    """Makes a new summary of an old one and the turns that follow it.

    Raises ModelTimeout or ModelUnavailable where every model fails, UnreadableAnswer where an answer is no summary.
    """

    async def summarise(self, request: SummaryRequest) -> Summary:
        """One summary in place of both."""
        ...


class ModelSummarizer:
    """Implements `Summarizer` on chat models, in order of preference: an outage falls through to the next one."""

    def __init__(self, chats: Sequence[ChatModel]) -> None:
        self._chats = tuple(chats)

    async def summarise(self, request: SummaryRequest) -> Summary:
        """One call to the first model that answers."""
        reply = await self._complete(
            ChatRequest(
                messages=summary_messages(request.old, request.exchanges, tokens=request.tokens, now=request.now)
            )
        )
        return Summary(readable_summary(reply.text, tokens=request.tokens), reply.model, "model", reply.usage)

    async def _complete(self, request: ChatRequest) -> ChatReply:
        for chat in self._chats[:-1]:
            try:
                return await chat.complete(request)
            except ModelUnavailable as error:
                if not error.outage:
                    raise
                logger.warning(
                    "summary falls through to the next model", extra={"action": "summary_fallback", "model": chat.name}
                )
        return await self._chats[-1].complete(request)
