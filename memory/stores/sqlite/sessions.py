"""Keeps sessions in SQLite."""

from datetime import datetime

from recollect.memory.ports.sessions import Session
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


class SqliteSessions:
    """Implements Sessions over the table of sessions."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def insert(self, session: Session) -> bool:
        """See the port."""
        whose = (session.digest, session.name, session.user_id, int(session.is_admin), session.key_id)
        times = (to_ms(session.started_at), to_ms(session.expires_at), to_ms(session.ends_at))
        return bool(await self._database.write(INSERT, (*whose, *times)))

    async def session(self, digest: str) -> Session | None:
        """See the port."""
        rows = await self._database.read(SESSION, (digest,))
        return _to_session(rows[0]) if rows else None

    async def extend(self, digest: str, *, expires_at: datetime) -> bool:
        """See the port."""
        return bool(await self._database.write(EXTEND, {"digest": digest, "at": to_ms(expires_at)}))

    async def remove(self, digest: str) -> bool:
        """See the port."""
        return await self._database.delete(REMOVE, (digest,)) > 0

    async def trim(self, name: str, *, keep: int) -> int:
        """See the port."""
        return await self._database.delete(TRIM, (name, keep))

    async def expire(self, now: datetime, *, limit: int) -> int:
        """See the port."""
        return await self._database.delete(EXPIRE, (to_ms(now), limit))

    async def delete(self, user_id: str) -> int:
        """See the port."""
        return await self._database.delete(DELETE, (user_id,))


def _to_session(row: Row) -> Session:
    digest, name, user_id, is_admin, key_id, *times = row
    started_at, expires_at, ends_at = map(from_ms, times)
    return Session(digest, name, user_id, bool(is_admin), key_id, started_at, expires_at, ends_at)
