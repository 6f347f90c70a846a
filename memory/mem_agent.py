"""The library's front: the memory of one thread, used without the service.

A composition root: without a configuration it takes the environment's settings.
"""

import asyncio
import logging
import warnings
from types import TracebackType
from typing import Any, Literal, Self
from uuid import uuid4

from langchain_core.documents import Document

from memory.mem_config import MemoryConfig
from memory.memory import Memory
from memory.open_memories import OpenMemories
from memory.recall import Hit, RecallOptions
from memory.scope import Scope
from memory.text import check_text
from memory.turn import UNFINISHED_RESULT, Message
from memory.update import owed
from memory.window import format_messages
from settings import load_settings

logger = logging.getLogger(__name__)

_memories = OpenMemories()


class MemoryAgent:
    """The memory of one user's thread. It opens at the first call; close it with `aclose()` or `async with`.

    All agents of one process and event loop that have equal configurations share one open memory.

    Raises:
        InvalidRequest: an id is not 1-128 characters of [A-Za-z0-9._:@-].
        ConfigurationError: from the first call, where a setting is wrong.
        StoreUnavailable, ModelUnavailable: from any call, where a backend is down.
    """

    def __init__(self, user_id: str, thread_id: str, cfg: MemoryConfig | None = None) -> None:
        self._scope = Scope(user_id, thread_id)
        self._config = cfg
        self._memory: Memory | None = None
        self._opening = asyncio.Lock()

    async def __aenter__(self) -> Self:
        """Open the memory now."""
        await self._open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        await self.aclose()

    async def aclose(self) -> None:
        """Close the memory, once no other agent uses it: updates are drained first. A later call opens it again."""
        async with self._opening:
            memory, self._memory = self._memory, None
            if memory is not None:
                await _memories.release(memory)

    async def fetch_short_term(self) -> list[dict[str, Any]]:
        """The messages of the thread's last turns (`cfg.window` turns, `cfg.window_tokens` tokens), oldest first."""
        return [message.as_json() for message in await self._window()]

    async def fetch_long_term(
        self, query: str, k: int = 5, *, scope: Literal["thread", "user"] = "thread", beyond_window: bool = False
    ) -> list[Document]:
        """The `k` (0-50) messages nearest in meaning to `query`, best first, of the thread or of all of the user's.

        A document's metadata is the hit: `score`, `similarity` in [-1, 1], `role`, `turn_id`, `created_at`, … With
        `beyond_window`, messages that `fetch_short_term` shows are left out.
        """
        memory = await self._open()
        options = RecallOptions(
            scope=scope,
            window=memory.config.window if beyond_window else 0,
            top_k=k,
            score_threshold=memory.config.score_threshold,
        )
        return [_document(hit) for hit in await memory.recall.search(self._scope, query, options)]

    async def get_user_facts(self) -> dict[str, str]:
        """The user-fact dict: key to value of what is known."""
        memory = await self._open()
        return dict((await memory.recall.facts(self._scope)).facts)

    async def formatted_history(self) -> str:
        """The window as text, one "role: content" a message, oldest first."""
        return format_messages(await self._window())

    async def update_facts_and_embeddings(
        self, user_message: str, assistant_response: str, turn_id: str | None = None
    ) -> dict[str, Any]:
        """Store one exchange and learn from it; the turn as `GET /api/turns/{turn_id}` shows it.

        Stores no message twice: the same `turn_id` again is the same turn, and without one a pair equal to the thread's
        newest is. Waits for the update up to `cfg.memory_wait_seconds`; what an outage leaves is gone on with.

        Raises:
            InvalidRequest: a text or the `turn_id` is none that can be stored.
            TurnConflict: the `turn_id` belongs to another thread or message.
        """
        check_text(assistant_response, field="assistant_response")
        memory = await self._open()
        queue = memory.documents.threads.turn(self._scope, wait_seconds=memory.config.thread_wait_seconds)
        async with queue:
            chosen = turn_id or await self._newest_equal(memory, user_message, assistant_response) or str(uuid4())
            message = await memory.accept(self._message(memory, chosen, user_message))
            result = {**UNFINISHED_RESULT, "model": "library"}
            turn = await memory.commit(message, reply=assistant_response, result=result, update=owed())
        return (await memory.learned(turn)).as_json()

    async def update(self, user_message: str, assistant_response: str) -> dict[str, Any]:
        """Deprecated: call `update_facts_and_embeddings`."""
        warnings.warn("update() is deprecated; call update_facts_and_embeddings()", DeprecationWarning, stacklevel=2)
        return await self.update_facts_and_embeddings(user_message, assistant_response)

    async def _open(self) -> Memory:
        async with self._opening:
            if self._memory is None:
                config = self._config or await asyncio.to_thread(lambda: load_settings().memory())
                self._memory = await _memories.acquire(config)
            return self._memory

    async def _window(self) -> list[Message]:
        memory = await self._open()
        exchanges = await memory.recall.window(self._scope, RecallOptions(window=memory.config.window))
        return [message for exchange in exchanges for message in exchange.messages]

    async def _newest_equal(self, memory: Memory, user_message: str, assistant_response: str) -> str | None:
        for exchange in await memory.documents.conversations.recent(self._scope, limit=1):
            if (exchange.user.content, exchange.assistant.content) == (user_message, assistant_response):
                return exchange.user.turn_id
        return None

    def _message(self, memory: Memory, turn_id: str, content: str) -> Message:
        return Message(
            user_id=self._scope.user_id,
            thread_id=self._scope.thread,
            turn_id=turn_id,
            role="user",
            content=content,
            created_at=memory.clock(),
        )


class MockMemoryAgent:
    """A memory agent that logs its calls and stores nothing: for code that is tried without a memory."""

    async def __aenter__(self) -> Self:
        """Open nothing."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close nothing."""

    async def aclose(self) -> None:
        """Close nothing."""

    async def fetch_short_term(self) -> list[dict[str, Any]]:
        """No messages."""
        self._log("fetch_short_term")
        return []

    async def fetch_long_term(
        self,
        query: str,
        k: int = 5,
    ) -> list[Document]:
        """No documents."""
        self._log("fetch_long_term")
        return []

    async def get_user_facts(self) -> dict[str, str]:
        """No facts."""
        self._log("get_user_facts")
        return {}

    async def formatted_history(self) -> str:
        """No text."""
        self._log("formatted_history")
        return ""

    async def update_facts_and_embeddings(
        self,
        user_message: str,
        assistant_response: str,
        turn_id: str | None = None,
    ) -> dict[str, Any]:
        """Nothing is stored, nothing learned."""
        self._log("update_facts_and_embeddings")
        return {}

    async def update(self, user_message: str, assistant_response: str) -> dict[str, Any]:
        """Deprecated: call `update_facts_and_embeddings`."""
        warnings.warn("update() is deprecated; call update_facts_and_embeddings()", DeprecationWarning, stacklevel=2)
        return await self.update_facts_and_embeddings(user_message, assistant_response)

    def _log(self, call: str) -> None:
        logger.info("mock memory call", extra={"action": "mock_memory", "call": call})


def _document(hit: Hit) -> Document:
    shown = hit.as_json()
    return Document(page_content=shown.pop("content"), metadata=shown)
