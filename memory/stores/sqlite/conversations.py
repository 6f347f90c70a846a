"""Keeps conversations in SQLite: each call is one statement."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from typing_extensions import override

from recollect.memory.background.batches import batches
from recollect.memory.ports.conversations import Conversations
from recollect.memory.stores.finished_turns import further_of
from recollect.memory.stores.json_text import from_json, result_to_json, to_json
from recollect.memory.stores.sqlite import message_queries as sql
from recollect.memory.stores.sqlite.database import SqliteDatabase
from recollect.memory.stores.sqlite.narrowed import narrowed, terms_json
from recollect.memory.stores.sqlite.rows import text_hash, to_exchange, to_message, to_turn
from recollect.memory.stores.stored_terms import terms_of
from recollect.memory.stores.update_json import is_indexed, update_from_json, update_to_json
from recollect.memory.values.filtering.keys import FilterKeys
from recollect.memory.values.filtering.narrow import ALL, Narrow
from recollect.memory.values.scope import Scope
from recollect.memory.values.thread_record import ThreadOverview
from recollect.memory.values.times import from_ms, to_ms
from recollect.memory.values.turn import Exchange, Message, Turn
from recollect.memory.values.update import Update

_BATCH_TURNS = 250
_BATCH_MESSAGES = 500
_LARGEST = 2**63 - 1


class SqliteConversations(Conversations):
    """Implements Conversations over the table of messages."""

    def __init__(self, database: SqliteDatabase, keys: FilterKeys) -> None:
        self._database = database
        self._keys = keys

    @override
    async def accept(self, message: Message) -> Message:
        values = {**self._values(message), "hash": text_hash(message), "now": to_ms(message.created_at)}
        stored = await self._database.write(sql.ACCEPT, values)
        if stored:
            position, created_at = stored[0]
            return replace(message, position=position, created_at=from_ms(created_at))
        earlier = await self.turn(user_id=message.user_id, turn_id=message.turn_id)
        # A deletion can come between the two statements; then the turn is new: accept it again.
        return earlier.message if earlier else await self.accept(message)

    @override
    async def commit(self, reply: Message, *, result: Mapping[str, Any], update: Update) -> bool:
        values = {
            **self._values(reply),
            "position": reply.position,
            "now": to_ms(reply.created_at),
            **_owing(result, update),
        }
        return bool(await self._database.write(sql.COMMIT, values))

    @override
    async def turn(self, *, user_id: str, turn_id: str) -> Turn | None:
        rows = await self._database.read(sql.TURN, (user_id, turn_id))
        if not rows:
            return None
        if len(rows) == 1:
            return Turn(to_message(rows[0]))
        message, reply = rows
        result, update = reply[-2:]
        return Turn(to_message(message), to_message(reply), result=from_json(result), update=update_from_json(update))

    @override
    async def messages(self, scope: Scope, *, limit: int, after: int = 0, where: Narrow = ALL) -> list[Message]:
        values = {"user": scope.user_id, "thread": scope.thread, "after": after, "limit": limit}
        statement = narrowed(sql.MESSAGES, where, "episode", self._keys, values)
        rows = await self._database.read(statement, values)
        return [to_message(row) for row in rows]

    @override
    async def recent(self, scope: Scope, *, limit: int, before: int | None = None) -> list[Exchange]:
        below = _LARGEST if before is None else before
        rows = await self._database.read(sql.RECENT, (scope.user_id, scope.thread, below, limit))
        return [to_exchange(row) for row in reversed(rows)]

    @override
    async def count_turns(self, scope: Scope, *, at_most: int) -> int:
        if scope.thread_id is None:
            rows = await self._database.read(sql.COUNT_OF_USER, (scope.user_id, at_most))
        else:
            rows = await self._database.read(sql.COUNT_OF_THREAD, (scope.user_id, scope.thread_id, at_most))
        return rows[0][0]

    @override
    async def indexed_messages(self, *, user_id: str | None = None) -> AsyncIterator[Sequence[Message]]:
        statement = sql.INDEXED if user_id is None else sql.INDEXED_OF_USER
        after = 0
        while rows := await self._database.read(statement, {"user": user_id, "after": after, "limit": _BATCH_TURNS}):
            said = [message for row in rows for message in to_exchange(row).spoken]
            for batch in batches(said, _BATCH_MESSAGES):
                yield batch
            after = rows[-1][-1]

    @override
    async def count_indexed_messages(self) -> int:
        return (await self._database.read(sql.COUNT_INDEXED))[0][0]

    @override
    async def exchanges(self, scope: Scope, *, after: int, limit: int) -> list[Exchange]:
        rows = await self._database.read(sql.EXCHANGES, (scope.user_id, scope.thread, after, limit))
        return [to_exchange(row) for row in rows]

    @override
    async def overviews(
        self, user_id: str, *, limit: int, before: tuple[datetime, str] | None = None, text: str | None = None
    ) -> list[ThreadOverview]:
        at, thread_id = (None, None) if before is None else (to_ms(before[0]), before[1])
        values = {"user": user_id, "limit": limit, "before_at": at, "before_thread": thread_id}
        if text is not None:
            values["text"] = text.casefold()
        rows = await self._database.read(sql.OVERVIEWS if text is None else sql.OVERVIEWS_SAYING, values)
        return [ThreadOverview(row[0], from_ms(row[1]), *row[2:]) for row in rows]

    @override
    async def overview(self, scope: Scope, *, agent_id: str | None = None) -> ThreadOverview | None:
        whose = (scope.user_id, scope.thread)
        if agent_id is None:
            rows = await self._database.read(sql.OVERVIEW, whose)
        else:
            rows = await self._database.read(sql.OVERVIEW_OF_AGENT, (*whose, agent_id))
        return next((ThreadOverview(row[0], from_ms(row[1]), *row[2:]) for row in rows), None)

    @override
    async def openings(self, user_id: str, thread_ids: Sequence[str], *, characters: int) -> dict[str, str]:
        values = {"user": user_id, "threads": json.dumps(list(thread_ids)), "characters": characters}
        return dict(await self._database.read(sql.OPENINGS, values))

    @override
    async def threads_saying(self, user_id: str, said_hash: str, *, limit: int) -> list[str]:
        rows = await self._database.read(sql.SAYING, (user_id, said_hash, limit))
        return list(dict.fromkeys(thread_id for (thread_id,) in rows))

    @override
    async def last_position(self, scope: Scope) -> int:
        return (await self._database.read(sql.LAST_POSITION, (scope.user_id, scope.thread)))[0][0]

    @override
    async def turns(self, user_id: str) -> AsyncIterator[Sequence[Turn]]:
        after = ""
        while rows := await self._database.read(sql.TURNS, {"user": user_id, "after": after, "limit": _BATCH_TURNS}):
            turns = [to_turn(row) for row in rows]
            yield turns
            after = turns[-1].message.turn_id

    @override
    async def every(self, scope: Scope) -> AsyncIterator[Sequence[Turn]]:
        thread, after, limit = scope.thread_id or "", 0, _BATCH_TURNS
        while True:
            values = {"user": scope.user_id, "thread": thread, "after": after, "limit": limit}
            rows = await self._database.read(sql.EVERY_OF_THREAD, values)
            if not rows and scope.thread_id is None:
                rows = await self._database.read(sql.EVERY_BEHIND, values)
            if not rows:
                return
            turns = [to_turn(row) for row in rows]
            yield turns
            thread, after = turns[-1].message.thread_id, turns[-1].message.position

    @override
    async def rewrite(self, turn: Turn, *, result: Mapping[str, Any], update: Update) -> bool:
        """Replace the result and the update, and remove the replaced text from the disk."""
        rewritten = await self._swap(sql.REWRITE, turn, _owing(result, update))
        if rewritten:
            await self._database.cut_off_log()
        return rewritten

    @override
    async def recommit(
        self,
        turn: Turn,
        reply: Message,
        *,
        result: Mapping[str, Any],
        update: Update,
        generation: int | None = None,
    ) -> bool:
        values = {
            **_owing(result, update),
            "content": reply.content,
            "name": reply.name,
            **self._terms(reply),
            "metadata": to_json(reply.metadata),
            "now": to_ms(reply.created_at),
            "said": (1 if turn.message.absent else 2) + further_of(turn.message),
            "generation": generation,
        }
        return await self._swap(sql.RECOMMIT, turn, values)

    @override
    async def retract(self, turn: Turn) -> bool:
        return await self._swap(sql.RETRACT, turn, {})

    def _values(self, message: Message) -> dict[str, Any]:
        return {**_values(message), **self._terms(message)}

    def _terms(self, message: Message) -> dict[str, Any]:
        terms, made_by = terms_of(message, self._keys)
        return {"terms": terms_json(terms), "terms_by": made_by}

    async def _swap(self, statement: str, turn: Turn, values: Mapping[str, Any]) -> bool:
        """Run a statement that changes the turn's reply if its update is still that of `turn`; tell whether it was."""
        if turn.update is None:
            return False
        user_id, turn_id = turn.message.user_id, turn.message.turn_id
        stored = update_to_json(turn.update)
        values = {**values, "user": user_id, "turn": turn_id}
        if await self._database.write(statement, {**values, "stored": stored}):
            return True
        # An earlier version of this code may have written the same update as another text: compare the values.
        for (text,) in await self._database.read(sql.UPDATE, (user_id, turn_id)):
            if text != stored and update_from_json(text) == turn.update:
                return bool(await self._database.write(statement, {**values, "stored": text}))
        return False

    @override
    async def aged(self, *, before: datetime, limit: int) -> list[Message]:
        return [to_message(row) for row in await self._database.read(sql.AGED, (to_ms(before), limit))]

    @override
    async def count_messages(self, user_id: str) -> int:
        return (await self._database.read(sql.COUNT_MESSAGES, {"user": user_id}))[0][0]

    @override
    async def oldest(self, user_id: str, *, limit: int) -> list[Message]:
        return [to_message(row) for row in await self._database.read(sql.OLDEST, (user_id, limit))]

    @override
    async def remove(self, *, user_id: str, turn_ids: Sequence[str]) -> int:
        if not turn_ids:
            return 0
        return await self._database.erase(sql.turns_removed(len(turn_ids)), (user_id, *turn_ids))

    @override
    async def delete(self, scope: Scope) -> int:
        if scope.thread_id is None:
            return await self._database.delete(sql.DELETE_USER, (scope.user_id,))
        return await self._database.erase(sql.DELETE_THREAD, (scope.user_id, scope.thread_id))


def _owing(result: Mapping[str, Any], update: Update) -> dict[str, Any]:
    return {
        "result": result_to_json(result),
        "update": update_to_json(update),
        "status": update.status,
        "indexed": int(is_indexed(update)),
    }


def _values(message: Message) -> dict[str, Any]:
    return {
        "user": message.user_id,
        "thread": message.thread_id,
        "turn": message.turn_id,
        "role": message.role,
        "name": message.name,
        "content": message.content,
        "metadata": to_json(message.metadata),
        "imported": message.imported_id,
        "absent": int(message.absent),
        "agent": message.agent_id,
    }
