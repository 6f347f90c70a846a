"""Inserts imported turns into SQLite: each call is one statement, which stores all of its turns or none."""

from collections.abc import Sequence
from itertools import count
from typing import Any

from typing_extensions import override

from recollect.memory.ports.imports import Imports
from recollect.memory.stores.finished_turns import FinishedTurn, finished
from recollect.memory.stores.json_text import result_to_json, to_json
from recollect.memory.stores.sqlite.database import Row, SqliteDatabase
from recollect.memory.stores.sqlite.message_queries import turns_statement
from recollect.memory.stores.sqlite.narrowed import terms_json
from recollect.memory.stores.sqlite.rows import message_columns, text_hash, to_message, to_turn
from recollect.memory.stores.stored_terms import terms_of
from recollect.memory.stores.update_json import is_indexed, update_to_json
from recollect.memory.values.filtering.keys import FilterKeys
from recollect.memory.values.further_message import further_json
from recollect.memory.values.times import to_ms
from recollect.memory.values.turn import Message, Turn
from recollect.memory.values.update import Update

_STORED = (
    *("user_id", "thread_id", "turn_id", "role", "created_at", "name", "content", "metadata", "imported_id", "absent"),
    *("further", "said_hash", "agent_id", "terms", "terms_by"),
    *("result", "status", "indexed", "update_json", "said"),
)
_OF_A_MESSAGE = (None, None, 0, None, 2)
"""The last five of a user's message; they are its reply's."""


def imported_statement(ids: int) -> str:
    """Return the statement that finds messages of finished turns by `ids` imported ids."""
    return f"""
SELECT {message_columns("message")} FROM messages AS message INDEXED BY messages_imported
WHERE message.user_id = ? AND message.imported_id IN ({_places(ids)}) AND EXISTS (
    SELECT 1 FROM messages AS reply INDEXED BY messages_by_turn
    WHERE reply.user_id = message.user_id AND reply.turn_id = message.turn_id AND reply.role = 'assistant'
)
"""


def insert_statement(messages: int) -> str:
    """Return the statement that inserts so many messages, turn by turn; it returns turn and role of each new one.

    A turn whose user's message is stored keeps that position. The others follow their threads' newest: each is at least
    at `least`, and at least two above the one before it. `step` counts 2, 4, …; a running maximum of each position's
    distance from its step, added to the step, gives the position.
    """
    row = f"({_places(len(_STORED) + 2)})"
    return f"""
WITH given (number, least, {", ".join(_STORED)}) AS MATERIALIZED (VALUES {", ".join([row] * messages)}),
begun AS (
    SELECT given.*, stored.position AS place, (
        SELECT coalesce(max(position), 0) FROM messages
        WHERE messages.user_id = given.user_id AND messages.thread_id = given.thread_id
    ) AS newest
    FROM given LEFT JOIN messages AS stored
    ON stored.user_id = given.user_id AND stored.turn_id = given.turn_id AND stored.role = 'user'
    WHERE given.role = 'user' AND (stored.thread_id IS NULL OR stored.thread_id = given.thread_id)
),
stepped AS (
    SELECT begun.*,
        2 * row_number() OVER (PARTITION BY user_id, thread_id, place IS NULL ORDER BY number) AS step
    FROM begun
),
placed (user_id, thread_id, turn_id, place) AS MATERIALIZED (
    SELECT user_id, thread_id, turn_id, coalesce(place, step + max(max(newest + newest % 2 - 1, least - step))
        OVER (PARTITION BY user_id, thread_id, place IS NULL ORDER BY number))
    FROM stepped
)
INSERT INTO messages (position, {", ".join(_STORED)})
SELECT placed.place + (given.role = 'assistant'), {", ".join(f"given.{column}" for column in _STORED)}
FROM given CROSS JOIN placed USING (user_id, thread_id, turn_id)
WHERE true ORDER BY given.number
ON CONFLICT (user_id, turn_id, role) DO NOTHING
RETURNING turn_id, role
"""


def settle_statement(turns: int) -> str:
    """Return the statement that records one update for `turns` turns that still have the expected one."""
    return f"""
UPDATE messages SET update_json = ?, status = ?, indexed = ?
WHERE user_id = ? AND turn_id IN ({_places(turns)}) AND role = 'assistant' AND update_json = ? RETURNING 1
"""


def settle_each_statement(turns: int) -> str:
    """Return the statement that records an update for each of `turns` turns that still has its expected one."""
    return f"""
WITH given (turn_id, update_json, status, indexed, owed) AS MATERIALIZED (
    VALUES {", ".join(["(?, ?, ?, ?, ?)"] * turns)}
)
UPDATE messages SET update_json = given.update_json, status = given.status, indexed = given.indexed
FROM given
WHERE messages.user_id = ? AND messages.turn_id = given.turn_id AND messages.role = 'assistant'
AND messages.update_json = given.owed
RETURNING 1
"""


class SqliteImports(Imports):
    """Implements Imports over the table of messages."""

    def __init__(self, database: SqliteDatabase, keys: FilterKeys) -> None:
        self._database = database
        self._keys = keys

    @override
    async def known(self, user_id: str, imported_ids: Sequence[str]) -> dict[str, Message]:
        if not imported_ids:
            return {}
        rows = await self._database.read(imported_statement(len(imported_ids)), (user_id, *imported_ids))
        return {message.imported_id: message for message in map(to_message, rows) if message.imported_id is not None}

    @override
    async def stored(self, user_id: str, turn_ids: Sequence[str]) -> dict[str, Turn]:
        if not turn_ids:
            return {}
        rows = await self._database.read(turns_statement(len(turn_ids)), (user_id, *turn_ids))
        return {turn.message.turn_id: turn for turn in map(to_turn, rows)}

    @override
    async def insert(self, turns: Sequence[Turn]) -> int:
        if not turns:
            return 0
        numbers = count()
        whole = {turn.message.turn_id: turn for turn in finished(turns)}
        taken = [
            _rows(whole[key], self._keys) if (key := turn.message.turn_id) in whole else (_asked(turn, self._keys),)
            for turn in turns
        ]
        rows = [(next(numbers), *row) for of_a_turn in taken for row in of_a_turn]
        inserted = await self._database.write(insert_statement(len(rows)), [value for row in rows for value in row])
        return sum(role == "assistant" or turn_id not in whole for turn_id, role in inserted)

    @override
    async def settle(self, user_id: str, turn_ids: Sequence[str], *, owed: Update, done: Update) -> int:
        if not turn_ids:
            return 0
        values = (update_to_json(done), done.status, int(is_indexed(done)), user_id, *turn_ids, update_to_json(owed))
        return len(await self._database.write(settle_statement(len(turn_ids)), values))

    @override
    async def settle_each(self, turns: Sequence[Turn], *, done: Sequence[Update]) -> int:
        rows = [
            (turn.message.turn_id, update_to_json(new), new.status, int(is_indexed(new)), update_to_json(turn.update))
            for turn, new in zip(turns, done, strict=True)
            if turn.update is not None
        ]
        if not rows:
            return 0
        values = (*(value for row in rows for value in row), turns[0].message.user_id)
        return len(await self._database.write(settle_each_statement(len(rows)), values))


def _places(number: int) -> str:
    return ", ".join("?" * number)


def _rows(turn: FinishedTurn, keys: FilterKeys) -> tuple[Row, Row]:
    update = turn.update
    committed = (result_to_json(turn.result), update.status, int(is_indexed(update)), update_to_json(update))
    committed += (turn.said + turn.further,)
    message = (turn.message.position, *_values(turn.message, keys), *_OF_A_MESSAGE)
    return message, (turn.reply.position, *_values(turn.reply, keys), *committed)


def _asked(turn: Turn, keys: FilterKeys) -> Row:
    return (turn.message.position, *_values(turn.message, keys), *_OF_A_MESSAGE)


def _values(message: Message, keys: FilterKeys) -> tuple[Any, ...]:
    terms, made_by = terms_of(message, keys)
    return (
        *(message.user_id, message.thread_id, message.turn_id, message.role, to_ms(message.created_at), message.name),
        *(message.content, to_json(message.metadata), message.imported_id, int(message.absent)),
        to_json(further_json(message.further)) if message.further else None,
        text_hash(message),
        *(message.agent_id, terms_json(terms), made_by),
    )
