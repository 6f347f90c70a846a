"""The library's front: the memory of one thread, used without the service.

A composition root: without a configuration it takes the environment's settings.
"""

import asyncio
import warnings
from datetime import datetime
from types import TracebackType
from typing import Any, Literal, Self, Unpack
from uuid import uuid4

from langchain_core.documents import Document

from memory.decision import FactScope
from memory.documents import FactFilter
from memory.fact import FactStatus
from memory.fact_edit import FactEdit
from memory.hit import Hit
from memory.mem_config import MemoryConfig
from memory.memory import Memory
from memory.mock_agent import MockMemoryAgent
from memory.open_memories import OpenMemories
from memory.recall_options import RecallOptions
from memory.scope import Scope
from memory.text import check_text
from memory.turn import UNFINISHED_RESULT, Message
from memory.window import format_messages
from settings import load_settings

__all__ = ["MemoryAgent", "MockMemoryAgent"]

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
        """The `k` (0-50) messages that `query` calls for, best first, of the thread or of all of the user's.

        A document's metadata is the hit: `score`, `similarity` in [-1, 1], `role`, `turn_id`, `created_at`, … With
        `beyond_window`, messages that `fetch_short_term` shows are left out.
        """
        memory = await self._open()
        options = RecallOptions(
            scope=scope,
            window=memory.config.window if beyond_window else 0,
            top_k=k,
            kinds=("episode",),
        )
        return [_document(hit) for hit in (await memory.recall.search(self._scope, query, options)).hits]

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
        queue = memory.documents.queue.turn(self._scope, wait_seconds=memory.config.thread_wait_seconds)
        async with queue:
            chosen = turn_id or await self._newest_equal(memory, user_message, assistant_response) or str(uuid4())
            message = await memory.accept(self._message(memory, chosen, user_message))
            record = await memory.recall.thread(self._scope)
            update = memory.owed(message, record=record, window_from=message.position)
            result = {**UNFINISHED_RESULT, "model": "library"}
            turn = await memory.commit(message, reply=assistant_response, result=result, update=update)
        return (await memory.learned(turn)).as_json()

    async def update(self, user_message: str, assistant_response: str) -> dict[str, Any]:
        """Deprecated: call `update_facts_and_embeddings`."""
        warnings.warn("update() is deprecated; call update_facts_and_embeddings()", DeprecationWarning, stacklevel=2)
        return await self.update_facts_and_embeddings(user_message, assistant_response)

    async def list_facts(
        self,
        *,
        tag: str | None = None,
        scope: FactScope | None = None,
        as_of: datetime | None = None,
        status: FactStatus | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> dict[str, Any]:
        """The user's and this thread's facts that hold now, or at `as_of` (UTC): `items`, `facts`, `next_cursor`.

        `status` "proposed" lists those that wait for approval. `facts` is the whole dict, on every page.
        """
        memory = await self._open()
        shown = FactFilter(memory.clock(), scope, self._scope.thread, tag, as_of, status)
        page = await memory.facts.page(self._scope.user_id, shown, limit=limit, after=cursor)
        return {
            "items": [fact.as_json() for fact in page.items],
            "facts": dict(page.facts),
            "next_cursor": page.items[-1].id if page.has_more else None,
        }

    async def put_fact(self, key: str, **edit: Unpack[FactEdit]) -> dict[str, Any]:
        """Write the fact under a key; no model changes it. `scope="thread"` means this thread.

        Raises:
            InvalidRequest: names each field that is missing or wrong.
        """
        memory = await self._open()
        return (await memory.facts.put(self._scope.user_id, key, self._here(edit))).as_json()

    async def patch_fact(self, fact_id: str, **edit: Unpack[FactEdit]) -> dict[str, Any]:
        """Change some fields of a fact; its history keeps what it said.

        Raises:
            InvalidRequest: names each field that is wrong.
            NotFound: there is no such fact of this user.
            FactConflict: it has ended, or another fact lives under its key.
        """
        memory = await self._open()
        return (await memory.facts.patch(self._scope.user_id, fact_id, self._here(edit))).as_json()

    async def forget_fact(self, fact_id: str) -> None:
        """Remove a fact's text everywhere but from the messages; a tombstone stays. Raises NotFound."""
        memory = await self._open()
        await memory.facts.forget(self._scope.user_id, fact_id)

    async def fact_history(self, fact_id: str) -> list[dict[str, Any]]:
        """All versions of what the fact says, oldest first, each with what `ended` it. Raises NotFound."""
        memory = await self._open()
        return await memory.facts.history(self._scope.user_id, fact_id)

    async def approve_fact(self, fact_id: str) -> dict[str, Any]:
        """Let a proposed fact hold. Raises NotFound, and FactConflict where it is not proposed."""
        memory = await self._open()
        return (await memory.facts.approve(self._scope.user_id, fact_id)).as_json()

    async def reject_fact(self, fact_id: str) -> dict[str, Any]:
        """Refuse a proposed fact. Raises NotFound, and FactConflict where it is not proposed."""
        memory = await self._open()
        return (await memory.facts.reject(self._scope.user_id, fact_id)).as_json()

    async def undo(self, turn_id: str, *, force: bool = False) -> dict[str, Any]:
        """Take back all that a turn taught: what was `undone`, and with `force` what was `left` as it is.

        Raises:
            NotFound: there is no such turn of this user.
            UpdatePending: the turn is still being learned from.
            FactsChanged: facts have changed since, and without `force` nothing was done.
        """
        memory = await self._open()
        return await memory.turns.undo(self._scope.user_id, turn_id, force=force)

    async def learn(self, turn_id: str, *, model: str | None = None, dry_run: bool = False) -> dict[str, Any]:
        """Learn from a turn again, by `model` if named; with `dry_run` only say what would change.

        Raises:
            NotFound: there is no such turn of this user.
            UpdatePending: the turn is still being learned from.
        """
        memory = await self._open()
        act = memory.turns.rehearse if dry_run else memory.turns.learn
        return await act(self._scope.user_id, turn_id, model=model)

    async def add_text(self, text: str, *, scope: Literal["thread", "user"] = "user") -> dict[str, Any]:
        """Learn from the user's own words at once, without a turn: `model`, `changes` and `refused`.

        With `scope="thread"` also what is this thread's alone.

        Raises:
            InvalidRequest: the text has not 1-32,000 characters, or no store can hold it.
            UpdatePending: the user's turns are still being learned from.
            UnreadableAnswer: nothing was learned.
        """
        memory = await self._open()
        where = self._scope if scope == "thread" else Scope(self._scope.user_id)
        return (await memory.texts.learn(where, text)).as_json()

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

    def _here(self, edit: FactEdit) -> FactEdit:
        """The edit, with this thread where it names none."""
        is_here = edit.get("scope") == "thread" and edit.get("thread_id") is None
        return {**edit, "thread_id": self._scope.thread} if is_here else edit

    def _message(self, memory: Memory, turn_id: str, content: str) -> Message:
        return Message(
            user_id=self._scope.user_id,
            thread_id=self._scope.thread,
            turn_id=turn_id,
            role="user",
            content=content,
            created_at=memory.clock(),
        )


def _document(hit: Hit) -> Document:
    shown = hit.as_json()
    return Document(page_content=shown.pop("content"), metadata=shown)
