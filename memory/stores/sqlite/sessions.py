"""Keeps sessions in SQLite."""

from datetime import datetime

from typing_extensions import override

from recollect.memory.ports.sessions import Session, Sessions
from recollect.memory.stores.sqlite.database import Row, SqliteDatabase
from recollect.memory.values.times import from_ms, to_ms

_COLUMNS = "digest, name, user_id, is_admin, key_id, started_at, expires_at, ends_at"

INSERT = f"""
INSERT INTO sessions ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (digest) DO NOTHING RETURNING 1
"""
SESSION = f"SELECT {_COLUMNS} FROM sessions WHERE digest = ?"
EXTEND = "UPDATE sessions SET expires_at = :at WHERE digest = :digest AND expires_at < :at RETURNING 1"
REMOVE = "DELETE FROM sessions WHERE digest = ? RETURNING 1"
TRIM = """
DELETE FROM sessions WHERE rowid IN (
    SELECT rowid FROM sessions WHERE name = ? ORDER BY started_at DESC, digest LIMIT -1 OFFSET ?
) RETURNING 1
"""
EXPIRE = """
DELETE FROM sessions WHERE rowid IN (
    SELECT rowid FROM sessions WHERE expires_at <= ? ORDER BY expires_at LIMIT ?
) RETURNING 1
"""
DELETE = "DELETE FROM sessions WHERE user_id = ? RETURNING 1"


class SqliteSessions(Sessions):
    """Implements Sessions over the table of sessions."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    @override
    async def insert(self, session: Session) -> bool:
        whose = (session.digest, session.name, session.user_id, int(session.is_admin), session.key_id)
        times = (to_ms(session.started_at), to_ms(session.expires_at), to_ms(session.ends_at))
        return bool(await self._database.write(INSERT, (*whose, *times)))

    @override
    async def session(self, digest: str) -> Session | None:
        rows = await self._database.read(SESSION, (digest,))
        return _to_session(rows[0]) if rows else None

    @override
    async def extend(self, digest: str, *, expires_at: datetime) -> bool:
        return bool(await self._database.write(EXTEND, {"digest": digest, "at": to_ms(expires_at)}))

    @override
    async def remove(self, digest: str) -> bool:
        return await self._database.delete(REMOVE, (digest,)) > 0

    @override
    async def trim(self, name: str, *, keep: int) -> int:
        return await self._database.delete(TRIM, (name, keep))

    @override
    async def expire(self, now: datetime, *, limit: int) -> int:
        return await self._database.delete(EXPIRE, (to_ms(now), limit))

    @override
    async def delete(self, user_id: str) -> int:
        return await self._database.delete(DELETE, (user_id,))


def _to_session(row: Row) -> Session:
    digest, name, user_id, is_admin, key_id, *times = row
    started_at, expires_at, ends_at = map(from_ms, times)
    return Session(digest, name, user_id, bool(is_admin), key_id, started_at, expires_at, ends_at)
