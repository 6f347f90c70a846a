"""Turns of the past in SQLite: each call is one statement, so that all of its turns are stored or none."""

from collections.abc import Sequence
from itertools import count
from typing import Any

from memory.stores.finished_turns import FinishedTurn, finished
from memory.stores.json_text import to_json
from memory.stores.sqlite.database import Database, Row
from memory.stores.sqlite.rows import message_columns, to_message
from memory.stores.update_json import is_indexed, update_to_json
from memory.times import to_ms
from memory.turn import Message, Turn
from memory.update import Update

_STORED = (
    *("user_id", "thread_id", "turn_id", "role", "created_at", "name", "content", "metadata", "imported_id", "absent"),
    *("result", "status", "indexed", "update_json", "said"),
)
_OF_A_MESSAGE = (None, None, 0, None, 2)
"""The last five of a user's message; they are its reply's."""


def known_statement(ids: int) -> str:
    """Finds the messages of finished turns with these imported ids."""
    return f"""
SELECT {message_columns("message")} FROM messages AS message INDEXED BY messages_imported
WHERE message.user_id = ? AND message.imported_id IN ({_places(ids)}) AND EXISTS (
    SELECT 1 FROM messages AS reply INDEXED BY messages_by_turn
    WHERE reply.user_id = message.user_id AND reply.turn_id = message.turn_id AND reply.role = 'assistant'
)
"""


def insert_statement(messages: int) -> str:
    """Inserts so many messages, those of a turn in a row; returns the role of each that is new.

    A turn that has its user's message keeps its place, the others come behind their threads' newest.
    """
    row = f"({_places(len(_STORED) + 1)})"
    return f"""
WITH given (number, {", ".join(_STORED)}) AS MATERIALIZED (VALUES {", ".join([row] * messages)}),
begun AS (
    SELECT given.*, stored.position AS place, (
        SELECT coalesce(max(position), 0) FROM messages
        WHERE messages.user_id = given.user_id AND messages.thread_id = given.thread_id
    ) AS newest
    FROM given LEFT JOIN messages AS stored
    ON stored.user_id = given.user_id AND stored.turn_id = given.turn_id AND stored.role = 'user'
    WHERE given.role = 'user' AND (stored.thread_id IS NULL OR stored.thread_id = given.thread_id)
),
placed (user_id, thread_id, turn_id, place) AS MATERIALIZED (
    SELECT user_id, thread_id, turn_id, coalesce(place, newest + newest % 2 - 1
        + 2 * row_number() OVER (PARTITION BY user_id, thread_id, place IS NULL ORDER BY number))
    FROM begun
)
INSERT INTO messages (position, {", ".join(_STORED)})
SELECT placed.place + (given.role = 'assistant'), {", ".join(f"given.{column}" for column in _STORED)}
FROM given CROSS JOIN placed USING (user_id, thread_id, turn_id)
WHERE true ORDER BY given.number
ON CONFLICT (user_id, turn_id, role) DO NOTHING
RETURNING role
"""


def settle_statement(turns: int) -> str:
    """Records an update for those of these turns that have another one."""
    return f"""
UPDATE messages SET update_json = ?, status = ?, indexed = ?
WHERE user_id = ? AND turn_id IN ({_places(turns)}) AND role = 'assistant' AND update_json = ? RETURNING 1
"""


class SqliteImports:
    """The messages table as the port wants it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def known(self, user_id: str, imported_ids: Sequence[str]) -> dict[str, Message]:
        """See the port."""
        if not imported_ids:
            return {}
        rows = await self._database.read(known_statement(len(imported_ids)), (user_id, *imported_ids))
        return {message.imported_id: message for message in map(to_message, rows) if message.imported_id is not None}

    async def insert(self, turns: Sequence[Turn]) -> int:
        """See the port."""
        if not turns:
            return 0
        numbers = count()
        rows = [(next(numbers), *row) for turn in finished(turns) for row in _rows(turn)]
        inserted = await self._database.write(insert_statement(len(rows)), [value for row in rows for value in row])
        return sum(role == "assistant" for (role,) in inserted)

    async def settle(self, user_id: str, turn_ids: Sequence[str], *, owed: Update, done: Update) -> int:
        """See the port."""
        if not turn_ids:
            return 0
        values = (update_to_json(done), done.status, int(is_indexed(done)), user_id, *turn_ids, update_to_json(owed))
        return len(await self._database.write(settle_statement(len(turn_ids)), values))


def _places(number: int) -> str:
    return ", ".join("?" * number)


def _rows(turn: FinishedTurn) -> tuple[Row, Row]:
    update = turn.update
    committed = (to_json(turn.result), update.status, int(is_indexed(update)), update_to_json(update), turn.said)
    return (*_values(turn.message), *_OF_A_MESSAGE), (*_values(turn.reply), *committed)


def _values(message: Message) -> tuple[Any, ...]:
    return (
        *(message.user_id, message.thread_id, message.turn_id, message.role, to_ms(message.created_at), message.name),
        *(message.content, to_json(message.metadata), message.imported_id, int(message.absent)),
    )
