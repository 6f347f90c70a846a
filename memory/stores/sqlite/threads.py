"""Keeps thread records in SQLite."""

from collections.abc import AsyncIterator, Sequence

from typing_extensions import override

from recollect.memory.ports.threads import Threads
from recollect.memory.stores.sqlite.database import Row, SqliteDatabase
from recollect.memory.values.scope import Scope
from recollect.memory.values.thread_record import ThreadRecord
from recollect.memory.values.times import from_ms, to_ms

_BATCH = 500
_RECORD = (
    *("user_id", "thread_id", "title", "summary", "summary_by", "summarised_to", "summarised_at"),
    *("archived_to", "archived_at", "closing", "revision", "indexed"),
)
_COLUMNS = ", ".join(_RECORD)
_PLACES = ", ".join("?" * len(_RECORD))
_HAS_POINT = "archived_to > 0 AND summary <> ''"

RECORD = f"SELECT {_COLUMNS} FROM threads WHERE user_id = ? AND thread_id = ?"
INSERT = f"INSERT INTO threads ({_COLUMNS}) VALUES ({_PLACES}) ON CONFLICT (user_id, thread_id) DO NOTHING RETURNING 1"
REPLACE = f"""
UPDATE threads SET ({_COLUMNS}) = ({_PLACES}) WHERE user_id = ? AND thread_id = ? AND revision = ? RETURNING 1
"""
CLOSING = f"SELECT {_COLUMNS} FROM threads WHERE closing = 1 LIMIT ?"
OWED = f"SELECT {_COLUMNS} FROM threads WHERE user_id = ? AND indexed = 0 LIMIT ?"
OWED_USERS = "SELECT DISTINCT user_id FROM threads WHERE indexed = 0 LIMIT ?"
MARK_INDEXED = "UPDATE threads SET indexed = 1 WHERE user_id = ? AND thread_id = ? AND revision = ? RETURNING 1"
INDEXED = f"""
SELECT {_COLUMNS}, rowid FROM threads NOT INDEXED
WHERE indexed = 1 AND {_HAS_POINT} AND rowid > :after ORDER BY rowid LIMIT :limit
"""
INDEXED_OF_USER = f"""
SELECT {_COLUMNS}, rowid FROM threads INDEXED BY threads_indexed
WHERE user_id = :user AND indexed = 1 AND {_HAS_POINT} AND rowid > :after ORDER BY rowid LIMIT :limit
"""
EVERY = f"SELECT {_COLUMNS} FROM threads WHERE user_id = ? AND thread_id > ? ORDER BY thread_id LIMIT ?"
COUNT_INDEXED = f"SELECT count(*) FROM threads INDEXED BY threads_indexed WHERE indexed = 1 AND {_HAS_POINT}"


class SqliteThreads(Threads):
    """Implements Threads over the table of threads."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    @override
    async def record(self, scope: Scope) -> ThreadRecord | None:
        rows = await self._database.read(RECORD, (scope.user_id, scope.thread))
        return _to_record(rows[0]) if rows else None

    @override
    async def records(self, *, user_id: str, thread_ids: Sequence[str]) -> list[ThreadRecord]:
        if not thread_ids:
            return []
        places = ", ".join("?" * len(thread_ids))
        sql = f"SELECT {_COLUMNS} FROM threads WHERE user_id = ? AND thread_id IN ({places})"
        return [_to_record(row) for row in await self._database.read(sql, (user_id, *thread_ids))]

    @override
    async def put(self, record: ThreadRecord, *, revision: int) -> bool:
        if revision == 0:
            return bool(await self._database.write(INSERT, _from_record(record)))
        key = (record.user_id, record.thread_id, revision)
        return bool(await self._database.write(REPLACE, (*_from_record(record), *key)))

    @override
    async def closing(self, *, limit: int) -> list[ThreadRecord]:
        return [_to_record(row) for row in await self._database.read(CLOSING, (limit,))]

    @override
    async def owed(self, *, user_id: str, limit: int) -> list[ThreadRecord]:
        return [_to_record(row) for row in await self._database.read(OWED, (user_id, limit))]

    @override
    async def owed_users(self, *, limit: int) -> list[str]:
        return [user_id for (user_id,) in await self._database.read(OWED_USERS, (limit,))]

    @override
    async def mark_indexed(self, record: ThreadRecord) -> bool:
        return bool(await self._database.write(MARK_INDEXED, (record.user_id, record.thread_id, record.revision)))

    @override
    async def indexed(self, *, user_id: str | None = None) -> AsyncIterator[Sequence[ThreadRecord]]:
        sql = INDEXED if user_id is None else INDEXED_OF_USER
        values = {"limit": _BATCH, "after": 0} if user_id is None else {"limit": _BATCH, "after": 0, "user": user_id}
        while rows := await self._database.read(sql, values):
            yield [_to_record(row[:-1]) for row in rows]
            values["after"] = rows[-1][-1]

    @override
    async def count_indexed(self) -> int:
        return (await self._database.read(COUNT_INDEXED))[0][0]

    @override
    async def every(self, user_id: str) -> AsyncIterator[Sequence[ThreadRecord]]:
        after = ""
        while rows := await self._database.read(EVERY, (user_id, after, _BATCH)):
            records = [_to_record(row) for row in rows]
            yield records
            after = records[-1].thread_id

    @override
    async def delete(self, scope: Scope) -> int:
        if scope.thread_id is None:
            return await self._database.delete("DELETE FROM threads WHERE user_id = ? RETURNING 1", (scope.user_id,))
        return await self._database.erase(
            "DELETE FROM threads WHERE user_id = ? AND thread_id = ? RETURNING 1", (scope.user_id, scope.thread_id)
        )


def _from_record(record: ThreadRecord) -> Row:
    return (
        *(record.user_id, record.thread_id, record.title, record.summary, record.summary_by, record.summarised_to),
        None if record.summarised_at is None else to_ms(record.summarised_at),
        record.archived_to,
        None if record.archived_at is None else to_ms(record.archived_at),
        *(int(record.closing), record.revision, int(record.indexed)),
    )


def _to_record(row: Row) -> ThreadRecord:
    user_id, thread_id, title, summary, summary_by, summarised_to, summarised_at, *rest = row
    archived_to, archived_at, closing, revision, indexed = rest
    return ThreadRecord(
        user_id=user_id,
        thread_id=thread_id,
        title=title,
        summary=summary,
        summary_by=summary_by,
        summarised_to=summarised_to,
        summarised_at=None if summarised_at is None else from_ms(summarised_at),
        archived_to=archived_to,
        archived_at=None if archived_at is None else from_ms(archived_at),
        closing=bool(closing),
        revision=revision,
        indexed=bool(indexed),
    )
