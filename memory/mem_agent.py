"""The library's interface: the memory of one thread, used without the service.

It is a composition root: without a configuration it reads the settings from the environment.
"""

import asyncio
import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import datetime
from types import TracebackType
from typing import Any, Literal, Self, Unpack
from uuid import uuid4

from langchain_core.documents import Document

from recollect.memory.exchanges.given_exchange import MOST_AT_ONCE, check_exchanges
from recollect.memory.exchanges.reading import read_exchange
from recollect.memory.exchanges.storing import store_exchange
from recollect.memory.facts.fact_edit import FactEdit
from recollect.memory.memory import Memory
from recollect.memory.mock_agent import MockMemoryAgent
from recollect.memory.opening.figures import figures
from recollect.memory.opening.open_memories import OpenMemories
from recollect.memory.options.model_choice import check_choice, read_choice
from recollect.memory.plain_turn import answer, complete
from recollect.memory.ports.facts import FactFilter
from recollect.memory.recall.hit import Hit
from recollect.memory.recall.recall_options import RecallOptions
from recollect.memory.recall.turn_context import context_for
from recollect.memory.recall.turn_options import TurnOptions, read_options
from recollect.memory.threads.window import format_messages
from recollect.memory.values.decision import FactScope
from recollect.memory.values.errors import InvalidRequest, Problem
from recollect.memory.values.fact import FactStatus
from recollect.memory.values.filter_reading import read_filter
from recollect.memory.values.given import GivenChat, GivenEmbeddings
from recollect.memory.values.mem_config import MemoryConfig, Scoped
from recollect.memory.values.scope import Scope
from recollect.memory.values.text import check_text
from recollect.memory.values.turn import UNFINISHED_RESULT, Message
from recollect.settings import load_settings

__all__ = ["MemoryAgent", "MockMemoryAgent"]

_memories = OpenMemories()


class MemoryAgent:
    """The memory of one user's thread. It opens at the first call; close it with `aclose()` or `async with`.

    All agents of one process and event loop that have equal configurations share one open memory. `embedder` and `chat`
    are models of your own, before those that the configuration names: LangChain's `Embeddings` and chat models, or
    Recollect's ports `Embedder` and `ChatModel`. Whoever made them closes them.

    Raises:
        InvalidRequest: an id is not 1-128 characters of [A-Za-z0-9._:@+|~=-].
        ConfigurationError: a model is neither; from the first call also, where a setting is wrong.
        StoreUnavailable, ModelUnavailable: from any call, where a backend is down.
    """

    def __init__(
        self,
        user_id: str,
        thread_id: str,
        cfg: MemoryConfig | None = None,
        *,
        embedder: object | None = None,
        chat: object | None = None,
    ) -> None:
        self._scope = Scope(user_id, thread_id)
        self._config = cfg
        self._models = _given_models(embedder, chat)
        self._memory: Memory | None = None
        self._opened = cfg
        self._opening = asyncio.Lock()

    async def __aenter__(self) -> Self:
        """Open the memory now."""
        await self._open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the memory."""
        await self.aclose()

    async def aclose(self) -> None:
        """Close the memory once no other agent uses it, after its pending updates. A later call opens it again."""
        async with self._opening:
            memory, self._memory = self._memory, None
            if memory is not None and self._opened is not None:
                await _memories.release(self._opened)

    async def chat(
        self,
        message: str,
        *,
        turn_id: str | None = None,
        model: str | None = None,
        instructions: str | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Answer a message as a turn of the thread, and learn from it; return the turn as the service shows it.

        It calls the chat model once, without tools, and waits for the update as `update_facts_and_embeddings` does. A
        repeated `turn_id` returns the stored turn. For this turn alone, `model` is another model of the provider,
        `instructions` are added to the agent's own, and `parameters` are the model's (`temperature`, `max_tokens`, …).

        Raises:
            InvalidRequest: the text or the `turn_id` cannot be stored, or what is chosen for the model is not valid.
            TurnConflict: the `turn_id` belongs to another thread or message.
            ModelUnavailable: there is no answer; the turn is repeatable with its `turn_id`.
        """
        choice = read_choice(model=model, instructions=instructions, parameters=parameters)
        memory = await self._open()
        await check_choice(memory.chat, choice)
        async with self._queue(memory):
            turn = await answer(memory, self._message(memory, turn_id or str(uuid4()), message), choice)
        return (await memory.learned(turn)).as_json()

    async def context(self, message: str, **memory: Unpack[TurnOptions]) -> dict[str, Any]:
        """Return what a turn with this message would be given, for an agent of your own; nothing is stored.

        `block` is the text for the system message ("" where nothing is known); `facts`, `notes`, `summary`, `window`
        and `hits` are its parts, `degraded` names those that could not be fetched. `memory` are the options of a turn.

        Raises:
            InvalidRequest: the message, or an option, is not valid.
        """
        opened = await self._open()
        opened.check_message(message)
        options = read_options(memory, opened.config)
        return (await context_for(opened.recall, self._scope, message, options)).as_json()

    async def store_message(
        self,
        role: Literal["user", "assistant"],
        content: str,
        *,
        turn_id: str | None = None,
        name: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Store one message of the thread, and return it as it was stored.

        A message of role "user" begins a turn (`turn_id` names it). One of role "assistant" answers the thread's last
        message, which completes the turn: from then on search finds it, and it is learned from in the background.

        Raises:
            InvalidRequest: the text cannot be stored, or an assistant's message has nothing to answer.
            TurnConflict: the `turn_id` belongs to another thread or message.
        """
        if role not in ("user", "assistant"):
            raise InvalidRequest(problems=[Problem("role", 'must be "user" or "assistant"')])
        check_text(content, field="content")
        memory = await self._open()
        async with self._queue(memory):
            if role == "user":
                message = self._message(memory, turn_id or str(uuid4()), content)
                return (await memory.accept(replace(message, name=name, metadata=dict(metadata or {})))).as_json()
            return (await complete(memory, self._scope, content, name=name)).as_json()

    async def stats(self, *, scope: Literal["thread", "user"] = "user") -> dict[str, int]:
        """Count what the user, or this thread, has: `turns`, `messages`, `facts`, `points` and so on."""
        memory = await self._open()
        wanted = self._scope if scope == "thread" else Scope(self._scope.user_id)
        return await figures(memory, wanted)

    async def clear(self) -> dict[str, int]:
        """Delete the thread: messages, summary and working memory; the user's facts stay. Return the counts by kind."""
        memory = await self._open()
        return dict((await memory.erasing.erase(self._scope, by="library")).counts)

    async def fetch_short_term(self) -> list[dict[str, Any]]:
        """Return the messages of the thread's last turns, oldest first.

        They are those of at most `cfg.window` turns within `cfg.window_tokens` tokens.
        """
        return [message.as_json() for message in await self._window()]

    async def fetch_long_term(
        self,
        query: str,
        k: int = 5,
        *,
        scope: Scoped | None = None,
        beyond_window: bool = False,
        filter: Mapping[str, Any] | None = None,
    ) -> list[Document]:
        """Return the `k` (0-50) messages that fit `query` best, best first.

        `scope` is "thread", "user" (all of the user's), "auto" (all, the thread's first) or None: `cfg.scope`.
        With `filter`, only those that fulfil it, such as `{"project": "apollo", "priority": {"gte": 2}}`.
        A document's metadata are the hit's fields: `score`, `similarity` in [-1, 1], `role`, `turn_id`, `created_at`, …
        With `beyond_window`, messages that `fetch_short_term` shows are left out.
        """
        memory = await self._open()
        options = RecallOptions.of(
            memory.config,
            scope=scope,
            window=memory.config.window if beyond_window else 0,
            top_k=k,
            kinds=("episode",),
            filter=None if filter is None else read_filter(filter),
        )
        return [_document(hit) for hit in (await memory.recall.search(self._scope, query, options)).hits]

    async def get_user_facts(self) -> dict[str, str]:
        """Return the user-fact dict: key to value of what is known."""
        memory = await self._open()
        return dict((await memory.recall.facts(self._scope)).facts)

    async def formatted_history(self) -> str:
        """Return the window as text, one "role: content" a message, oldest first."""
        return format_messages(await self._window())

    async def update_facts_and_embeddings(
        self, user_message: str, assistant_response: str, turn_id: str | None = None
    ) -> dict[str, Any]:
        """Store one exchange and learn from it; return the turn as `GET /api/turns/{turn_id}` shows it.

        It stores no message twice: a repeated `turn_id` is the same turn, and without one, a pair equal to the thread's
        newest is. It waits for the update up to `cfg.memory_wait_seconds`; what an outage interrupts is retried later.

        Raises:
            InvalidRequest: a text or the `turn_id` cannot be stored.
            TurnConflict: the `turn_id` belongs to another thread or message.
        """
        check_text(assistant_response, field="assistant_response")
        memory = await self._open()
        async with self._queue(memory):
            # The thread is held: nobody stores the same pair between this look and the write.
            chosen = turn_id or await self._newest_equal(memory, user_message, assistant_response) or str(uuid4())
            message = await memory.accept(self._message(memory, chosen, user_message))
            record = await memory.recall.thread(self._scope)
            update = memory.owed(message, record=record, window_from=message.position)
            result = {**UNFINISHED_RESULT, "model": "library"}
            turn = await memory.commit(message, reply=assistant_response, result=result, update=update)
        return (await memory.learned(turn)).as_json()

    async def exchange(
        self,
        user: str | Mapping[str, Any],
        assistant: str | Mapping[str, Any] | None,
        *,
        turn_id: str | None = None,
        messages: Sequence[Mapping[str, Any]] = (),
        learn: bool = True,
        wait_for_memory: bool = False,
    ) -> dict[str, Any]:
        """Store what your own agent and the user said as a turn, and return it as `GET /api/turns/{turn_id}` shows it.

        `user` and `assistant` (None: no reply) are texts, or mappings of `content`, `name`, `created_at`, `metadata`;
        `messages` further ones of the turn in their order, each with its `role`: only the user's are evidence for
        facts. `learn` False: it is stored and indexed, and teaches nothing. A repeated `turn_id` is the stored turn.

        Raises:
            InvalidRequest: names each field that cannot be stored.
            TurnConflict: the `turn_id` belongs to another thread or exchange.
        """
        said = {"user": user, "assistant": assistant, "turn_id": turn_id, "messages": list(messages), "learn": learn}
        memory = await self._open()
        return (await self._store(memory, [("", {**said, "wait_for_memory": wait_for_memory})]))[0]

    async def exchanges(self, exchanges: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Store 1 to 100 exchanges in their order, checked whole before; return their turns as `items`.

        Each is a mapping of what `exchange` takes: `user`, `assistant`, `turn_id`, `messages`, `learn`,
        `wait_for_memory`.

        Raises:
            InvalidRequest: names each field that cannot be stored (`1.user.content`); nothing is stored.
            TurnConflict: a `turn_id` belongs to another thread or exchange; those before it are stored.
        """
        if not 1 <= len(exchanges) <= MOST_AT_ONCE:
            raise InvalidRequest(problems=[Problem("body", f"must be 1 to {MOST_AT_ONCE} exchanges")])
        memory = await self._open()
        return {"items": await self._store(memory, [(f"{place}.", one) for place, one in enumerate(exchanges)])}

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
        """Return the user's and this thread's facts that hold now, or at `as_of` (UTC).

        The answer has `items`, `facts` and `next_cursor`. `status` "proposed" lists facts that wait for approval.
        `facts` is the whole user-fact dict, on every page.
        """
        memory = await self._open()
        shown = FactFilter(memory.now(), scope, self._scope.thread, tag, as_of, status)
        page = await memory.facts.page(self._scope.user_id, shown, limit=limit, after=cursor)
        return {
            "items": [fact.as_json() for fact in page.items],
            "facts": dict(page.facts),
            "next_cursor": page.items[-1].id if page.has_more else None,
        }

    async def put_fact(self, key: str, **edit: Unpack[FactEdit]) -> dict[str, Any]:
        """Write the fact under a key; no model may change it. `scope="thread"` means this thread.

        Raises:
            InvalidRequest: names each field that is missing or wrong.
        """
        memory = await self._open()
        return (await memory.facts.put(self._scope.user_id, key, self._here(edit))).as_json()

    async def patch_fact(self, fact_id: str, **edit: Unpack[FactEdit]) -> dict[str, Any]:
        """Change some fields of a fact; its history keeps the earlier version.

        Raises:
            InvalidRequest: names each field that is wrong.
            NotFound: there is no such fact of this user.
            FactConflict: it has ended, or another fact is stored under its key.
        """
        memory = await self._open()
        return (await memory.facts.patch(self._scope.user_id, fact_id, self._here(edit))).as_json()

    async def forget_fact(self, fact_id: str) -> None:
        """Remove a fact's text everywhere but from the messages; a tombstone stays. Raise NotFound if there is none."""
        memory = await self._open()
        await memory.facts.forget(self._scope.user_id, fact_id)

    async def fact_history(self, fact_id: str) -> list[dict[str, Any]]:
        """Return all versions of the fact, oldest first, each with what `ended` it. Raise NotFound if there is none."""
        memory = await self._open()
        return await memory.facts.history(self._scope.user_id, fact_id)

    async def approve_fact(self, fact_id: str) -> dict[str, Any]:
        """Make a proposed fact active. Raise NotFound, and FactConflict where it is not proposed."""
        memory = await self._open()
        return (await memory.facts.approve(self._scope.user_id, fact_id)).as_json()

    async def reject_fact(self, fact_id: str) -> dict[str, Any]:
        """Reject a proposed fact. Raise NotFound, and FactConflict where it is not proposed."""
        memory = await self._open()
        return (await memory.facts.reject(self._scope.user_id, fact_id)).as_json()

    async def undo(self, turn_id: str, *, force: bool = False) -> dict[str, Any]:
        """Take back all that a turn taught; return what was `undone`, and with `force` what was `left` as it is.

        Raises:
            NotFound: there is no such turn of this user.
            UpdatePending: the turn is still being learned from.
            FactsChanged: facts have changed since, and without `force` nothing was done.
        """
        memory = await self._open()
        return await memory.turns.undo(self._scope.user_id, turn_id, force=force)

    async def learn(self, turn_id: str, *, model: str | None = None, dry_run: bool = False) -> dict[str, Any]:
        """Learn from a turn again, by `model` if named; with `dry_run` only return what would change.

        The `preview_id` of that answer can be applied for 15 minutes (`apply_learning`).

        Raises:
            NotFound: there is no such turn of this user.
            UpdatePending: the turn is still being learned from.
        """
        memory = await self._open()
        act = memory.turns.preview_learning if dry_run else memory.turns.learn
        return await act(self._scope.user_id, turn_id, model=model)

    async def apply_learning(self, turn_id: str, *, preview_id: str) -> dict[str, Any]:
        """Do exactly what `learn(…, dry_run=True)` has shown, without asking a model again.

        Raises:
            NotFound: there is no such turn of this user, or no such preview of it.
            PreviewOutdated: the preview has expired, or would do something else now; nothing was done.
            UpdatePending: the turn is still being learned from.
        """
        memory = await self._open()
        return await memory.turns.apply_learning(self._scope.user_id, turn_id, preview_id=preview_id)

    async def add_text(self, text: str, *, scope: Literal["thread", "user"] = "user") -> dict[str, Any]:
        """Learn from the user's own words at once, without a turn; return `model`, `changes` and `refused`.

        With `scope="thread"`, facts may also be learned for this thread alone.

        Raises:
            InvalidRequest: the text has not 1 to `max_message_characters` characters, or no store can hold it.
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
                config = config.replace(**self._models)
                self._memory, self._opened = await _memories.acquire(config), config
            return self._memory

    async def _store(self, memory: Memory, said: Sequence[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
        """Store exchanges, each with the place that stands before its fields' names; return their turns."""
        given = [(place, read_exchange(one, now=memory.now(), place=place)) for place, one in said]
        check_exchanges(memory.config, given)
        turns = [await store_exchange(memory, self._scope, one) for _, one in given]
        shown = list[dict[str, Any]]()
        for turn, (_, one) in zip(turns, said, strict=True):
            turn = await memory.learned(turn) if one.get("wait_for_memory") else turn
            ids = turn.message.user_id, turn.message.turn_id
            shown.append(turn.explained_json(memory.deferred_steps(*ids)))
        return shown

    async def _window(self) -> list[Message]:
        memory = await self._open()
        exchanges = await memory.recall.window(self._scope, RecallOptions(window=memory.config.window))
        return [message for exchange in exchanges for message in exchange.spoken]

    async def _newest_equal(self, memory: Memory, user_message: str, assistant_response: str) -> str | None:
        for exchange in await memory.recent(self._scope, limit=1):
            if (exchange.user.content, exchange.assistant.content) == (user_message, assistant_response):
                return exchange.user.turn_id
        return None

    def _queue(self, memory: Memory) -> AbstractAsyncContextManager[None]:
        """Hold the thread for one turn, once the turns before it have ended."""
        return memory.held(self._scope)

    def _here(self, edit: FactEdit) -> FactEdit:
        """Return the edit, with this thread's id where its scope is "thread" and it names none."""
        is_here = edit.get("scope") == "thread" and edit.get("thread_id") is None
        return {**edit, "thread_id": self._scope.thread} if is_here else edit

    def _message(self, memory: Memory, turn_id: str, content: str) -> Message:
        return Message(
            user_id=self._scope.user_id,
            thread_id=self._scope.thread,
            turn_id=turn_id,
            role="user",
            content=content,
            created_at=memory.now(),
        )


def _given_models(embedder: object | None, chat: object | None) -> dict[str, Any]:
    """Return the fields of a configuration that hold these objects."""
    models: dict[str, Any] = {}
    if embedder is not None:
        models["given_embeddings"] = GivenEmbeddings(embedder)
    if chat is not None:
        models["given_chat"] = GivenChat(chat)
    return models


def _document(hit: Hit) -> Document:
    shown = hit.as_json()
    return Document(page_content=shown.pop("content"), metadata=shown)
