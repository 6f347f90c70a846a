"""Finds messages by time and by position in SQLite: each call is one statement along an index."""

import json
from collections.abc import Sequence

from typing_extensions import override

from recollect.memory.ports.timeline import Timeline
from recollect.memory.stores.period_bounds import bounds_ms
from recollect.memory.stores.sqlite.database import SqliteDatabase
from recollect.memory.stores.sqlite.narrowed import narrowed
from recollect.memory.stores.sqlite.rows import message_columns, to_message
from recollect.memory.values.filtering.keys import FilterKeys
from recollect.memory.values.filtering.narrow import ALL, Narrow
from recollect.memory.values.period import Period
from recollect.memory.values.scope import Scope
from recollect.memory.values.times import to_ms
from recollect.memory.values.turn import Message

_SEARCHABLE = """
messages.absent = 0 AND EXISTS (
    SELECT 1 FROM messages AS reply INDEXED BY messages_searchable
    WHERE reply.user_id = messages.user_id AND reply.thread_id = messages.thread_id
    AND reply.position = messages.position + messages.position % 2 AND reply.indexed = 1
)
"""
# Seeks from one name to the next.
NAMES = """
WITH RECURSIVE found(name) AS (
    SELECT ''
    UNION ALL
    SELECT (SELECT min(name) FROM messages WHERE user_id = :user AND name > found.name)
    FROM found WHERE found.name IS NOT NULL LIMIT :limit + 1
)
SELECT name FROM found WHERE name > ''
"""
DURING_OF_THREAD = f"""
SELECT {message_columns()} FROM messages INDEXED BY messages_by_time
WHERE user_id = :user AND thread_id = :thread AND created_at >= :begin AND created_at < :end AND {_SEARCHABLE}
ORDER BY created_at, position LIMIT :limit
"""
DURING_OF_USER = f"""
SELECT {message_columns()} FROM messages INDEXED BY messages_of_user_by_time
WHERE user_id = :user AND created_at >= :begin AND created_at < :end AND {_SEARCHABLE}
ORDER BY created_at, thread_id, position LIMIT :limit
"""
LATEST_OF_THREAD = f"""
SELECT {message_columns()} FROM messages INDEXED BY messages_by_time
WHERE user_id = :user AND thread_id = :thread AND {_SEARCHABLE}
ORDER BY created_at DESC, position DESC LIMIT :limit
"""
LATEST_OF_USER = f"""
SELECT {message_columns()} FROM messages INDEXED BY messages_of_user_by_time
WHERE user_id = :user AND {_SEARCHABLE}
ORDER BY created_at DESC, thread_id DESC, position DESC LIMIT :limit
"""
_UNREAD = message_columns().replace("messages.content", "''")
DESCRIBED_OF_THREAD = f"""
SELECT {_UNREAD} FROM messages INDEXED BY messages_by_time
WHERE user_id = :user AND thread_id = :thread AND (created_at, position) < (:time, :position) AND {_SEARCHABLE}
ORDER BY created_at DESC, position DESC LIMIT :limit
"""
DESCRIBED_OF_USER = f"""
SELECT {_UNREAD} FROM messages INDEXED BY messages_of_user_by_time
WHERE user_id = :user AND (created_at, thread_id, position) < (:time, :last, :position) AND {_SEARCHABLE}
ORDER BY created_at DESC, thread_id DESC, position DESC LIMIT :limit
"""
THREADS = f"""
SELECT DISTINCT thread_id FROM messages INDEXED BY messages_by_time
WHERE user_id = :user AND {_SEARCHABLE} ORDER BY thread_id
"""
_END = 2**62
"""A time behind every other, in milliseconds."""
# A reply's own message, which counts even while the turn is being indexed, and the last indexed turns before.
PRECEDING = """
WITH asked(number, user_id, thread_id, position) AS MATERIALIZED (
    SELECT key, json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]')
    FROM json_each(:asked)
)
SELECT asked.number, own.position, own.content
FROM asked CROSS JOIN messages AS own INDEXED BY messages_by_position
ON own.user_id = asked.user_id AND own.thread_id = asked.thread_id AND own.position = asked.position - 1
WHERE own.position % 2 = 1 AND own.absent = 0
UNION ALL
SELECT asked.number, earlier.position, earlier.content
FROM asked CROSS JOIN messages AS turn INDEXED BY messages_searchable
ON turn.user_id = asked.user_id AND turn.thread_id = asked.thread_id AND turn.indexed = 1
AND turn.position < asked.position AND turn.position >= coalesce((
    SELECT far.position FROM messages AS far INDEXED BY messages_searchable
    WHERE far.user_id = asked.user_id AND far.thread_id = asked.thread_id AND far.position < asked.position
    AND far.indexed = 1 AND far.said > 0 ORDER BY far.position DESC LIMIT 1 OFFSET :count - 1
), 0)
CROSS JOIN messages AS earlier INDEXED BY messages_by_position
ON earlier.user_id = turn.user_id AND earlier.thread_id = turn.thread_id
AND earlier.position IN (turn.position - 1, turn.position) AND earlier.absent = 0
"""
BEFORE = f"""
SELECT {message_columns()} FROM messages INDEXED BY messages_by_position
WHERE user_id = :user AND thread_id = :thread AND position < :position AND {_SEARCHABLE}
ORDER BY position DESC LIMIT :limit
"""
AFTER = f"""
SELECT {message_columns()} FROM messages INDEXED BY messages_by_position
WHERE user_id = :user AND thread_id = :thread AND position > :position AND {_SEARCHABLE}
ORDER BY position LIMIT :limit
"""


class SqliteTimeline(Timeline):
    """Implements Timeline over the table of messages."""

    def __init__(self, database: SqliteDatabase, keys: FilterKeys) -> None:
        self._database = database
        self._keys = keys

    @override
    async def names(self, user_id: str, *, limit: int) -> list[str]:
        return [name for (name,) in await self._database.read(NAMES, {"user": user_id, "limit": limit})]

    @override
    async def during(self, scope: Scope, period: Period, *, limit: int, where: Narrow = ALL) -> list[Message]:
        begin, end = bounds_ms(period)
        sql = DURING_OF_USER if scope.thread_id is None else DURING_OF_THREAD
        return await self._found(sql, scope, where, begin=begin, end=end, limit=limit)

    @override
    async def latest(self, scope: Scope, *, limit: int, where: Narrow = ALL) -> list[Message]:
        sql = LATEST_OF_USER if scope.thread_id is None else LATEST_OF_THREAD
        return await self._found(sql, scope, where, limit=limit)

    @override
    async def described(
        self, scope: Scope, *, limit: int, before: Message | None = None, where: Narrow = ALL
    ) -> list[Message]:
        sql = DESCRIBED_OF_USER if scope.thread_id is None else DESCRIBED_OF_THREAD
        place: dict[str, int | str] = {"time": _END, "last": "", "position": 0}
        if before is not None:
            place = {"time": to_ms(before.created_at), "last": before.thread_id, "position": before.position}
        return await self._found(sql, scope, where, limit=limit, **place)

    @override
    async def threads(self, user_id: str, *, where: Narrow) -> list[str]:
        values = {"user": user_id}
        statement = narrowed(THREADS, where, "episode", self._keys, values)
        return [thread_id for (thread_id,) in await self._database.read(statement, values)]

    @override
    async def preceding(self, messages: Sequence[Message], *, count: int) -> dict[str, list[str]]:
        if count < 1:
            return {}
        asked = json.dumps([(message.user_id, message.thread_id, message.position) for message in messages])
        ids = [message.id for message in messages]
        said: dict[str, list[tuple[int, str]]] = {}
        for number, position, content in await self._database.read(PRECEDING, {"asked": asked, "count": count}):
            said.setdefault(ids[int(number)], []).append((position, content))
        return {key: [text for _, text in sorted(texts, reverse=True)[:count]] for key, texts in said.items()}

    @override
    async def around(self, scope: Scope, position: int, *, before: int, after: int) -> list[Message]:
        earlier = await self._found(BEFORE, scope, position=position, limit=before)
        later = await self._found(AFTER, scope, position=position, limit=after)
        return [*reversed(earlier), *later]

    async def _found(self, sql: str, scope: Scope, where: Narrow = ALL, **more: int | str) -> list[Message]:
        values = {"user": scope.user_id, "thread": scope.thread_id, **more}
        rows = await self._database.read(narrowed(sql, where, "episode", self._keys, values), values)
        return [to_message(row) for row in rows]
