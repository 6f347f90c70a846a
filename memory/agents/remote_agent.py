"""The memory of one thread that is a service's, asked over HTTP."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack
from urllib.parse import quote
from uuid import uuid4

from typing_extensions import override

from recollect.memory.agents.agent import Agent
from recollect.memory.agents.connection import ServiceConnection
from recollect.memory.exchanges.given_exchange import check_count
from recollect.memory.exchanges.reading import read_exchange
from recollect.memory.facts.fact_edit import FactEdit, check_key
from recollect.memory.recall.turn_options import TurnOptions
from recollect.memory.values.decision import FactScope
from recollect.memory.values.errors import IndexUnavailable, NotFound
from recollect.memory.values.fact import FactStatus
from recollect.memory.values.mem_config import Scoped
from recollect.memory.values.scope import Scope, is_id
from recollect.memory.values.text import check_text
from recollect.memory.values.times import utc_now

if TYPE_CHECKING:
    from langchain_core.documents import Document

MOST_HITS, PAGE = 50, 200
OTHER_KINDS = 20
"""How many hits of facts and summaries a search for messages alone leaves room for."""
Json = dict[str, Any]


class RemoteAgent(Agent):
    """Asks the service at the other end of `connection`; with `closes` that is this agent's own to close."""

    def __init__(self, connection: ServiceConnection, scope: Scope, *, closes: bool = False) -> None:
        self._connection = connection
        self._scope = scope
        self._closes = closes
        self._ids = {"user_id": scope.user_id, "thread_id": scope.thread}
        self._user = {"user_id": scope.user_id}
        self._facts = f"/api/users/{_part(scope.user_id)}/facts"
        self._thread = f"/api/threads/{_part(scope.thread)}"

    @override
    async def __aenter__(self) -> Self:
        await self._connection.check()
        return self

    @override
    async def aclose(self) -> None:
        if self._closes:
            await self._connection.aclose()

    @override
    async def chat(
        self,
        message: str,
        *,
        turn_id: str | None = None,
        model: str | None = None,
        instructions: str | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> Json:
        chosen = {"model": model, "instructions": instructions, "parameters": parameters}
        said = {"message": message, "turn_id": turn_id or str(uuid4()), "wait_for_memory": True}
        said |= {name: value for name, value in chosen.items() if value is not None}
        return await self._post("/api/agent", said, repeatable=True)

    @override
    async def context(self, message: str, **memory: Unpack[TurnOptions]) -> Json:
        given = {name: value for name, value in memory.items() if value is not None}
        return await self._post("/api/context", {"message": message, "memory": given}, repeatable=True)

    @override
    async def store_message(
        self,
        role: Literal["user", "assistant"],
        content: str,
        *,
        turn_id: str | None = None,
        name: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Json:
        named = turn_id or (str(uuid4()) if role == "user" else None)
        said = {"role": role, "content": content, "turn_id": named, "name": name, "metadata": dict(metadata or {})}
        return await self._connection.call(
            "POST", f"{self._thread}/messages", body={**self._user, **said}, repeatable=role == "user"
        )

    @override
    async def stats(self, *, scope: Literal["thread", "user"] = "user") -> dict[str, int]:
        return await self._get("/memory-stats", session_id=self._scope.thread if scope == "thread" else None)

    @override
    async def clear(self) -> dict[str, int]:
        receipt = await self._connection.call("DELETE", self._thread, query={**self._user, "receipt": "true"})
        return receipt["counts"]

    @override
    async def fetch_short_term(self) -> list[Json]:
        return (await self.context("-", top_k=0))["window"]

    @override
    async def fetch_long_term(
        self,
        query: str,
        k: int = 5,
        *,
        scope: Scoped | None = None,
        beyond_window: bool = False,
        filter: Mapping[str, Any] | None = None,
    ) -> "list[Document]":
        options: TurnOptions = {"scope": scope, "top_k": min(k + OTHER_KINDS, MOST_HITS) if k else 0}
        if not beyond_window:
            options["window"] = 0
        if filter is not None:
            options["filter"] = dict(filter)
        found = await self.context(query, **options)
        if "search_memories" in found["degraded"]:
            raise IndexUnavailable
        return [_document(hit) for hit in found["hits"] if hit["kind"] == "episode"][:k]

    @override
    async def get_user_facts(self) -> dict[str, str]:
        return (await self.context("-", top_k=0, window=0))["facts"]

    @override
    async def formatted_history(self) -> str:
        said = await self.fetch_short_term()
        return "\n".join(f"{message['name'] or message['role']}: {message['content']}" for message in said)

    @override
    async def update_facts_and_embeddings(
        self, user_message: str, assistant_response: str, turn_id: str | None = None
    ) -> Json:
        check_text(assistant_response, field="assistant_response")
        named = turn_id or await self._newest_equal(user_message, assistant_response)
        return await self.exchange(user_message, assistant_response, turn_id=named, wait_for_memory=True)

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
    ) -> Json:
        said = {"user": user, "assistant": assistant, "turn_id": turn_id, "messages": list(messages), "learn": learn}
        body = self._given({**said, "wait_for_memory": wait_for_memory})
        return await self._connection.call("POST", "/api/exchanges", body=body, repeatable=True)

    @override
    async def exchanges(self, exchanges: Sequence[Mapping[str, Any]]) -> Json:
        check_count(exchanges)
        body = [self._given(one, f"{place}.") for place, one in enumerate(exchanges)]
        return await self._connection.call("POST", "/api/exchanges", body=body, repeatable=True)

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
    ) -> Json:
        at = as_of.isoformat() if as_of is not None else None
        query: Json = {"tag": tag, "scope": scope, "as_of": at, "status": status, "limit": limit, "cursor": cursor}
        if filter is not None:
            query["filter"] = json.dumps(dict(filter))
        return await self._get(self._facts, thread_id=self._scope.thread, **query)

    @override
    async def put_fact(self, key: str, **edit: Unpack[FactEdit]) -> Json:
        path = f"{self._facts}/by-key/{check_key(key)}"
        return await self._connection.call("PUT", path, body=self._here(edit))

    @override
    async def patch_fact(self, fact_id: str, **edit: Unpack[FactEdit]) -> Json:
        return await self._connection.call("PATCH", f"{self._facts}/{_part(fact_id)}", body=self._here(edit))

    @override
    async def forget_fact(self, fact_id: str) -> None:
        await self._connection.call("DELETE", f"{self._facts}/{_part(fact_id)}")

    @override
    async def fact_history(self, fact_id: str) -> list[Json]:
        versions, cursor = list[Json](), None
        while True:
            page = await self._get(f"{self._facts}/{_part(fact_id)}/history", limit=PAGE, cursor=cursor)
            versions += page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                return versions

    @override
    async def approve_fact(self, fact_id: str) -> Json:
        return await self._connection.call("POST", f"{self._facts}/{_part(fact_id)}/approve")

    @override
    async def reject_fact(self, fact_id: str) -> Json:
        return await self._connection.call("POST", f"{self._facts}/{_part(fact_id)}/reject")

    @override
    async def undo(self, turn_id: str, *, force: bool = False) -> Json:
        return await self._of_turn(turn_id, "undo", {"force": force})

    @override
    async def learn(self, turn_id: str, *, model: str | None = None, dry_run: bool = False) -> Json:
        return await self._of_turn(turn_id, "learn", {"model": model, "dry_run": dry_run})

    @override
    async def apply_learning(self, turn_id: str, *, preview_id: str) -> Json:
        return await self._of_turn(turn_id, "learn", {"preview_id": preview_id})

    @override
    async def add_text(self, text: str, *, scope: Literal["thread", "user"] = "user") -> Json:
        where = self._ids if scope == "thread" else self._user
        return await self._connection.call("POST", "/api/memory/add", body={**where, "content": text})

    async def _post(self, path: str, said: Json, *, repeatable: bool) -> Json:
        """Call a route that takes user and thread in its body."""
        return await self._connection.call("POST", path, body={**self._ids, **said}, repeatable=repeatable)

    async def _get(self, path: str, **query: str | int | None) -> Json:
        """Read from a route that takes the user in its query, or in its path."""
        whose = {} if path.startswith("/api/users/") else self._user
        return await self._connection.call("GET", path, query={**whose, **query}, repeatable=True)

    async def _of_turn(self, turn_id: str, act: str, body: Json) -> Json:
        return await self._connection.call("POST", f"/api/turns/{_part(turn_id)}/{act}", query=self._user, body=body)

    async def _newest_equal(self, user_message: str, assistant_response: str) -> str | None:
        """Return the id of the thread's newest turn, if its pair is this one."""
        window = (await self.context("-", top_k=0, window=1))["window"]
        said = [message["content"] for message in window]
        return window[0]["turn_id"] if said == [user_message, assistant_response] else None

    def _here(self, edit: FactEdit) -> Json:
        """Return the edit, with this thread's id where its scope is "thread" and it names none."""
        is_here = edit.get("scope") == "thread" and edit.get("thread_id") is None
        return {**edit, "thread_id": self._scope.thread} if is_here else {**edit}

    def _given(self, said: Mapping[str, Any], place: str = "") -> Json:
        """Return the exchange as the route takes it, checked as the library's own, with a turn_id for safe repeats."""
        read_exchange(said, now=utc_now(), place=place)
        named = {name: said.get(name) for name in ("user", "assistant")}
        whole = {name: {"content": text} if isinstance(text, str) else text for name, text in named.items()}
        return {**said, **whole, **self._ids, "turn_id": said.get("turn_id") or str(uuid4())}


def _part(text: str) -> str:
    """Return an id as a part of a path; what is no id (".." would be another path) names nothing that exists."""
    if not is_id(text):
        raise NotFound
    return quote(text, safe="")


def _document(hit: Json) -> "Document":
    """Return a hit as LangChain's document, which is imported with the first one: clients start without it."""
    from langchain_core.documents import Document

    return Document(page_content=hit.pop("content"), metadata=hit)
