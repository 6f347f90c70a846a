"""Conversations in SQLite: each call is one statement."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from memory.scope import Scope
from memory.stores.json_text import from_json, to_json
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.rows import (
    exchange_columns,
    message_columns,
    to_exchange,
    to_message,
)
from memory.stores.update_json import is_indexed, update_from_json, update_to_json
from memory.times import from_ms, to_ms
from memory.turn import Exchange, Message, Turn
from memory.update import Update

_BATCH_TURNS = 250
_LARGEST = 2**63 - 1

ACCEPT = """
INSERT INTO messages (user_id, thread_id, turn_id, role, name, content, metadata, position, created_at)
SELECT :user, :thread, :turn, :role, :name, :content, :metadata, newest + 1 + newest % 2, max(:now, latest + 1)
FROM (SELECT
    (SELECT coalesce(max(position), 0) FROM messages WHERE user_id = :user AND thread_id = :thread) AS newest,
    (SELECT coalesce(max(created_at), 0) FROM messages WHERE user_id = :user AND thread_id = :thread) AS latest)
WHERE true
ON CONFLICT (user_id, turn_id, role) DO NOTHING
RETURNING position, created_at
"""
COMMIT = """
INSERT INTO messages
    (user_id, thread_id, turn_id, role, name, content, metadata, position, created_at, result, status, indexed,
     update_json)
SELECT :user, :thread, :turn, :role, :name, :content, :metadata, :position, :now, :result, :status, :indexed, :update
FROM messages
WHERE user_id = :user AND turn_id = :turn AND role = 'user' AND thread_id = :thread AND position = :position - 1
ON CONFLICT DO NOTHING
RETURNING 1
"""
TURN = f"""
SELECT {message_columns()}, result, update_json FROM messages WHERE user_id = ? AND turn_id = ? ORDER BY role DESC
"""
MESSAGES = f"""
SELECT {message_columns()} FROM messages
WHERE user_id = ? AND thread_id = ? AND position > ? ORDER BY position LIMIT ?
"""
RECENT = f"""
SELECT {exchange_columns()} FROM messages AS reply CROSS JOIN messages AS message
ON message.user_id = reply.user_id AND message.turn_id = reply.turn_id AND message.role = 'user'
WHERE reply.user_id = ? AND reply.thread_id = ? AND reply.position < ? AND reply.position % 2 = 0
ORDER BY reply.position DESC LIMIT ?
"""
COUNT_OF_THREAD = """
SELECT count(*) FROM
(SELECT 1 FROM messages WHERE user_id = ? AND thread_id = ? AND position % 2 = 0 LIMIT ?)
"""
COUNT_OF_USER = """
SELECT count(*) FROM
(SELECT 1 FROM messages INDEXED BY messages_by_position WHERE user_id = ? AND position % 2 = 0 LIMIT ?)
"""
INDEXED = f"""
SELECT {exchange_columns()}, reply.seq FROM messages AS reply CROSS JOIN messages AS message
ON message.user_id = reply.user_id AND message.turn_id = reply.turn_id AND message.role = 'user'
WHERE reply.indexed = 1 AND reply.seq > :after AND (:user IS NULL OR reply.user_id = :user)
ORDER BY reply.seq LIMIT :limit
"""
INDEXED_OF_USER = INDEXED.replace("(:user IS NULL OR reply.user_id = :user)", "reply.user_id = :user")
COUNT_INDEXED = "SELECT 2 * count(*) FROM messages WHERE indexed = 1"


class SqliteConversations:
    """The messages table as the port wants it. A reply's position is even, which the indexes make use of."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def accept(self, message: Message) -> Message:
        """See the port."""
        stored = await self._database.write(ACCEPT, {**_values(message), "now": to_ms(message.created_at)})
        if stored:
            position, created_at = stored[0]
            return replace(message, position=position, created_at=from_ms(created_at))
        earlier = await self.turn(user_id=message.user_id, turn_id=message.turn_id)
        # A deletion can come between the two statements; then the turn is new after all.
        return earlier.message if earlier else await self.accept(message)

    async def commit(self, reply: Message, *, result: Mapping[str, Any], update: Update) -> bool:
        """See the port. Also False where the user's message is gone: a turn that was erased while it ran."""
        values = {
            **_values(reply),
            "position": reply.position,
            "now": to_ms(reply.created_at),
            "result": to_json(result),
            "status": update.status,
            "indexed": int(is_indexed(update)),
            "update": update_to_json(update),
        }
        return bool(await self._database.write(COMMIT, values))

    async def turn(self, *, user_id: str, turn_id: str) -> Turn | None:
        """See the port."""
        rows = await self._database.read(TURN, (user_id, turn_id))
        if not rows:
            return None
        if len(rows) == 1:
            return Turn(to_message(rows[0]))
        message, reply = rows
        result, update = reply[-2:]
        return Turn(to_message(message), to_message(reply), result=from_json(result), update=update_from_json(update))

    async def messages(self, scope: Scope, *, limit: int, after: int = 0) -> list[Message]:
        """See the port."""
        rows = await self._database.read(MESSAGES, (scope.user_id, scope.thread, after, limit))
        return [to_message(row) for row in rows]

    async def recent(self, scope: Scope, *, limit: int, before: int | None = None) -> list[Exchange]:
        """See the port."""
        below = _LARGEST if before is None else before
        rows = await self._database.read(RECENT, (scope.user_id, scope.thread, below, limit))
        return [to_exchange(row) for row in reversed(rows)]

    async def count_turns(self, scope: Scope, *, at_most: int) -> int:
        """See the port."""
        if scope.thread_id is None:
            rows = await self._database.read(COUNT_OF_USER, (scope.user_id, at_most))
        else:
            rows = await self._database.read(COUNT_OF_THREAD, (scope.user_id, scope.thread_id, at_most))
        return rows[0][0]

    async def indexed_messages(self, *, user_id: str | None = None) -> AsyncIterator[Sequence[Message]]:
        """See the port."""
        sql = INDEXED if user_id is None else INDEXED_OF_USER
        after = 0
        while rows := await self._database.read(sql, {"user": user_id, "after": after, "limit": _BATCH_TURNS}):
            exchanges = map(to_exchange, rows)
            yield [message for exchange in exchanges for message in exchange.messages]
            after = rows[-1][-1]

    async def count_indexed_messages(self) -> int:
        """See the port."""
        return (await self._database.read(COUNT_INDEXED))[0][0]

    async def delete(self, scope: Scope) -> int:
        """See the port."""
        if scope.thread_id is None:
            return await self._database.erase("DELETE FROM messages WHERE user_id = ? RETURNING 1", (scope.user_id,))
        return await self._database.erase(
            "DELETE FROM messages WHERE user_id = ? AND thread_id = ? RETURNING 1", (scope.user_id, scope.thread_id)
        )


def _values(message: Message) -> dict[str, Any]:
    return {
        "user": message.user_id,
        "thread": message.thread_id,
        "turn": message.turn_id,
        "role": message.role,
        "name": message.name,
        "content": message.content,
        "metadata": to_json(message.metadata),
    }
