"""Summarises with chat models."""

import logging
from collections.abc import Sequence

from typing_extensions import override

from recollect.memory.ports.chat_model import ChatModel, ChatReply, ChatRequest
from recollect.memory.ports.summariser import Summariser, Summary, SummaryTask
from recollect.memory.threads.summary_prompt import summary_messages
from recollect.memory.threads.summary_text import readable_summary
from recollect.memory.values.errors import ModelUnavailable

logger = logging.getLogger(__name__)


class ModelSummariser(Summariser):
    """Implements `Summariser` with chat models in order of preference; after an outage the next one is asked."""

    def __init__(self, chats: Sequence[ChatModel]) -> None:
        self._chats = tuple(chats)

    @override
    async def summarise(self, request: SummaryTask) -> Summary:
        """Ask the first model that can be reached, with one call."""
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
