"""Keeps client records in SQLite."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime

from typing_extensions import override

from recollect.memory.ports.client_records import ClientRecord, ClientRecords
from recollect.memory.stores.json_text import from_json, to_json
from recollect.memory.stores.sqlite.database import Row, SqliteDatabase
from recollect.memory.values.scope import Scope
from recollect.memory.values.times import from_ms, to_ms

_COLUMNS = "user_id, thread_id, id, kind, created_at, expires_at, content"
_BATCH = 100

PUT = f"INSERT OR REPLACE INTO client_records ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"
INSERT = f"""
INSERT INTO client_records ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (user_id, id) DO NOTHING RETURNING 1
"""
RECORD = f"SELECT {_COLUMNS} FROM client_records WHERE user_id = ? AND id = ?"
OF_USER = f"SELECT {_COLUMNS} FROM client_records WHERE user_id = ? AND id > ? ORDER BY id LIMIT ?"
OF_THREAD = f"""
SELECT {_COLUMNS} FROM client_records WHERE user_id = ? AND thread_id = ? AND id > ? ORDER BY id LIMIT ?
"""
REMOVE = "DELETE FROM client_records WHERE user_id = ? AND id = ? RETURNING 1"
EXPIRE = """
DELETE FROM client_records WHERE rowid IN (
    SELECT rowid FROM client_records INDEXED BY client_records_ending
    WHERE expires_at IS NOT NULL AND expires_at <= ? ORDER BY expires_at LIMIT ?
) RETURNING 1
"""
DELETE_OF_USER = "DELETE FROM client_records WHERE user_id = ? RETURNING 1"
DELETE_OF_THREAD = "DELETE FROM client_records WHERE user_id = ? AND thread_id = ? RETURNING 1"


class SqliteClientRecords(ClientRecords):
    """Implements ClientRecords over the table of client records."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    @override
    async def put(self, record: ClientRecord) -> None:
        await self._database.write(PUT, _from_record(record))

    @override
    async def insert(self, record: ClientRecord) -> bool:
        return bool(await self._database.write(INSERT, _from_record(record)))

    @override
    async def record(self, *, user_id: str, record_id: str) -> ClientRecord | None:
        rows = await self._database.read(RECORD, (user_id, record_id))
        return _to_record(rows[0]) if rows else None

    @override
    async def every(self, scope: Scope) -> AsyncIterator[Sequence[ClientRecord]]:
        sql, of = (OF_USER, (scope.user_id,)) if scope.thread_id is None else (OF_THREAD, (scope.user_id, scope.thread))
        after = ""
        while rows := await self._database.read(sql, (*of, after, _BATCH)):
            records = [_to_record(row) for row in rows]
            yield records
            after = records[-1].id

    @override
    async def remove(self, *, user_id: str, record_id: str) -> bool:
        return await self._database.erase(REMOVE, (user_id, record_id)) > 0

    @override
    async def expire(self, now: datetime, *, limit: int) -> int:
        return await self._database.erase(EXPIRE, (to_ms(now), limit))

    @override
    async def delete(self, scope: Scope) -> int:
        if scope.thread_id is None:
            return await self._database.delete(DELETE_OF_USER, (scope.user_id,))
        return await self._database.delete(DELETE_OF_THREAD, (scope.user_id, scope.thread))


def _from_record(record: ClientRecord) -> Row:
    ends = None if record.expires_at is None else to_ms(record.expires_at)
    whose = (record.user_id, record.thread_id, record.id, record.kind)
    return (*whose, to_ms(record.created_at), ends, to_json(record.content))


def _to_record(row: Row) -> ClientRecord:
    user_id, thread_id, record_id, kind, created_at, ends, content = row
    ends_at = None if ends is None else from_ms(ends)
    return ClientRecord(user_id, thread_id, record_id, kind, from_ms(created_at), ends_at, from_json(content))
