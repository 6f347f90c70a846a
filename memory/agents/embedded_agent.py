"""The memory of one thread in this process, over the stores that a configuration names."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Literal, Self, Unpack
from uuid import uuid4

from langchain_core.documents import Document
from typing_extensions import override

from recollect.memory.agents.agent import Agent
from recollect.memory.exchanges.given_exchange import check_count, check_exchanges
from recollect.memory.exchanges.reading import read_exchange
from recollect.memory.exchanges.single_message import SingleMessage, store_single
from recollect.memory.exchanges.storing import store_exchange
from recollect.memory.facts.fact_edit import FactEdit
from recollect.memory.memory import Memory
from recollect.memory.opening.figures import figures
from recollect.memory.opening.open_memories import OpenMemories
from recollect.memory.options.model_choice import check_choice, read_choice
from recollect.memory.plain_turn import answer_turn
from recollect.memory.ports.facts import FactFilter
from recollect.memory.ports.thread_queue import Hold
from recollect.memory.recall.hit import Hit
from recollect.memory.recall.recall_options import RecallOptions
from recollect.memory.recall.turn_context import context_for
from recollect.memory.recall.turn_options import TurnOptions, read_options
from recollect.memory.threads.window import format_messages
from recollect.memory.values.decision import FactScope
from recollect.memory.values.fact import FactStatus
from recollect.memory.values.filtering.reading import read_filter
from recollect.memory.values.mem_config import MemoryConfig, Scoped
from recollect.memory.values.scope import Scope
from recollect.memory.values.text import check_text
from recollect.memory.values.turn import UNFINISHED_RESULT, Message

_memories = OpenMemories()


class EmbeddedAgent(Agent):
    """Asks the open memory itself; all calls run in one event loop, the `MemoryLoop`.

    All agents that have equal configurations share one open memory. `configured` reads the configuration at the first
    call, where `cfg` is None; `models` are the configuration's fields of models that are given.

    Raises:
        InvalidRequest: an id is not 1-128 characters of [A-Za-z0-9._:@+|~=-].
        ConfigurationError: from the first call, where a setting is wrong.
    """

    def __init__(
        self,
        scope: Scope,
        cfg: MemoryConfig | None,
        configured: Callable[[], MemoryConfig],
        models: Mapping[str, Any],
    ) -> None:
        self._scope = scope
        self._config = cfg
        self._configured = configured
        self._models = models
        self._memory: Memory | None = None
        self._opened = cfg
        self._opening = asyncio.Lock()

    @override
    async def __aenter__(self) -> Self:
        await self._open()
        return self

    @override
    async def aclose(self) -> None:
        async with self._opening:
            memory, self._memory = self._memory, None
            if memory is not None and self._opened is not None:
                await _memories.release(self._opened)

    @override
    async def chat(
        self,
        message: str,
        *,
        turn_id: str | None = None,
        model: str | None = None,
        instructions: str | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        choice = read_choice(model=model, instructions=instructions, parameters=parameters)
        memory = await self._open()
        await check_choice(memory.chat, choice)
        async with self._queue(memory):
            turn = await answer_turn(memory, self._message(memory, turn_id or str(uuid4()), message), choice)
        return (await memory.learned(turn)).as_json()

    @override
    async def context(self, message: str, **memory: Unpack[TurnOptions]) -> dict[str, Any]:
        opened = await self._open()
        opened.check_message(message)
        options = read_options(memory, opened.config)
        return (await context_for(opened.recall, self._scope, message, options)).as_json()

    @override
    async def store_message(
        self,
        role: Literal["user", "assistant"],
        content: str,
        *,
        turn_id: str | None = None,
        name: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        memory = await self._open()
        given = SingleMessage(role, content, turn_id, name, metadata or {})
        return (await store_single(memory, self._scope, given)).as_json()

    @override
    async def stats(self, *, scope: Literal["thread", "user"] = "user") -> dict[str, int]:
        memory = await self._open()
        wanted = self._scope if scope == "thread" else Scope(self._scope.user_id)
        return await figures(memory, wanted)

    @override
    async def clear(self) -> dict[str, int]:
        memory = await self._open()
        return dict((await memory.erasing.erase(self._scope, by="library")).counts)

    @override
    async def fetch_short_term(self) -> list[dict[str, Any]]:
        return [message.as_json() for message in await self._window()]

    @override
    async def fetch_long_term(
        self,
        query: str,
        k: int = 5,
        *,
        scope: Scoped | None = None,
        beyond_window: bool = False,
        filter: Mapping[str, Any] | None = None,
    ) -> list[Document]:
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

    @override
    async def get_user_facts(self) -> dict[str, str]:
        memory = await self._open()
        return dict((await memory.recall.facts(self._scope)).facts)

    @override
    async def formatted_history(self) -> str:
        return format_messages(await self._window())

    @override
    async def update_facts_and_embeddings(
        self, user_message: str, assistant_response: str, turn_id: str | None = None
    ) -> dict[str, Any]:
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

    @override
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
        said = {"user": user, "assistant": assistant, "turn_id": turn_id, "messages": list(messages), "learn": learn}
        memory = await self._open()
        return (await self._store(memory, [("", {**said, "wait_for_memory": wait_for_memory})]))[0]

    @override
    async def exchanges(self, exchanges: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        check_count(exchanges)
        memory = await self._open()
        return {"items": await self._store(memory, [(f"{place}.", one) for place, one in enumerate(exchanges)])}

    @override
    async def list_facts(
        self,
        *,
        tag: str | None = None,
        scope: FactScope | None = None,
        as_of: datetime | None = None,
        status: FactStatus | None = None,
        limit: int = 50,
        cursor: str | None = None,
        filter: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        memory = await self._open()
        shown = FactFilter(memory.now(), scope, self._scope.thread, tag, as_of, status)
        if filter is not None:
            asked = read_filter(filter)
            found = await memory.filtered.facts_of(self._scope.user_id, shown, asked, limit=limit, after=cursor)
            return {
                "items": [fact.as_json() for fact in found.items],
                "facts": dict(await memory.facts.known(self._scope.user_id, shown)),
                "next_cursor": found.items[-1].id if found.has_more else None,
                "filter": {"complete": found.is_complete},
            }
        page = await memory.facts.page(self._scope.user_id, shown, limit=limit, after=cursor)
        return {
            "items": [fact.as_json() for fact in page.items],
            "facts": dict(page.facts),
            "next_cursor": page.items[-1].id if page.has_more else None,
        }

    @override
    async def put_fact(self, key: str, **edit: Unpack[FactEdit]) -> dict[str, Any]:
        memory = await self._open()
        return (await memory.facts.put(self._scope.user_id, key, self._here(edit))).as_json()

    @override
    async def patch_fact(self, fact_id: str, **edit: Unpack[FactEdit]) -> dict[str, Any]:
        memory = await self._open()
        return (await memory.facts.patch(self._scope.user_id, fact_id, self._here(edit))).as_json()

    @override
    async def forget_fact(self, fact_id: str) -> None:
        memory = await self._open()
        await memory.facts.forget(self._scope.user_id, fact_id)

    @override
    async def fact_history(self, fact_id: str) -> list[dict[str, Any]]:
        memory = await self._open()
        return await memory.facts.history(self._scope.user_id, fact_id)

    @override
    async def approve_fact(self, fact_id: str) -> dict[str, Any]:
        memory = await self._open()
        return (await memory.facts.approve(self._scope.user_id, fact_id)).as_json()

    @override
    async def reject_fact(self, fact_id: str) -> dict[str, Any]:
        memory = await self._open()
        return (await memory.facts.reject(self._scope.user_id, fact_id)).as_json()

    @override
    async def undo(self, turn_id: str, *, force: bool = False) -> dict[str, Any]:
        memory = await self._open()
        return await memory.turns.undo(self._scope.user_id, turn_id, force=force)

    @override
    async def learn(self, turn_id: str, *, model: str | None = None, dry_run: bool = False) -> dict[str, Any]:
        memory = await self._open()
        act = memory.turns.preview_learning if dry_run else memory.turns.learn
        return await act(self._scope.user_id, turn_id, model=model)

    @override
    async def apply_learning(self, turn_id: str, *, preview_id: str) -> dict[str, Any]:
        memory = await self._open()
        return await memory.turns.apply_learning(self._scope.user_id, turn_id, preview_id=preview_id)

    @override
    async def add_text(self, text: str, *, scope: Literal["thread", "user"] = "user") -> dict[str, Any]:
        memory = await self._open()
        where = self._scope if scope == "thread" else Scope(self._scope.user_id)
        return (await memory.texts.learn(where, text)).as_json()

    async def _open(self) -> Memory:
        async with self._opening:
            if self._memory is None:
                config = self._config or await asyncio.to_thread(self._configured)
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

    def _queue(self, memory: Memory) -> AbstractAsyncContextManager[Hold]:
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


def _document(hit: Hit) -> Document:
    shown = hit.as_json()
    return Document(page_content=shown.pop("content"), metadata=shown)
