"""Bounds a chat model's replies: a longer one is an error, and the rest of it is not read."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

from typing_extensions import override

from recollect.memory.ports.chat_model import ChatReply, ChatRequest, ForwardingChat
from recollect.memory.providers.wire import AnswerTooLong
from recollect.memory.values.frozen import frozen


@frozen
class BoundedChat(ForwardingChat):
    """Asks `chat`, whose replies may have at most `most` characters (MAX_REPLY_CHARACTERS)."""

    most: int

    @override
    async def complete(self, request: ChatRequest) -> ChatReply:
        """Ask the model.

        Raises:
            AnswerTooLong: the reply is longer.
        """
        reply = await self.chat.complete(request)
        self._check(len(reply.text))
        return reply

    @override
    async def stream(self, request: ChatRequest) -> AsyncGenerator[str | ChatReply, None]:
        """Ask the model; close the connection where the reply gets too long.

        Raises:
            AnswerTooLong: the reply is longer.
        """
        characters = 0
        async with aclosing(cast("AsyncGenerator[str | ChatReply, None]", self.chat.stream(request))) as items:
            async for item in items:
                if isinstance(item, str):
                    characters += len(item)
                    self._check(characters)
                yield item

    def _check(self, characters: int) -> None:
        if characters > self.most:
            raise AnswerTooLong
