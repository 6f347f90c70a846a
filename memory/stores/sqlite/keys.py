"""Keeps keys in SQLite."""

from datetime import datetime

from typing_extensions import override

from recollect.memory.ports.keys import Key, Keys
from recollect.memory.stores.sqlite.database import Row, SqliteDatabase
from recollect.memory.values.times import from_ms, to_ms

_COLUMNS = "id, digest, role, user_id, name, agent_id, created_at"

INSERT = f"INSERT INTO keys ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING RETURNING 1"
KEY = f"SELECT {_COLUMNS} FROM keys WHERE id = ?"
PAGE = f"SELECT {_COLUMNS} FROM keys WHERE (created_at, id) > (?, ?) ORDER BY created_at, id LIMIT ?"
COUNT = "SELECT count(*) FROM keys WHERE user_id = ?"
REMOVE = "DELETE FROM keys WHERE id = ? RETURNING 1"
DELETE = "DELETE FROM keys WHERE user_id = ? RETURNING 1"

_BEFORE_ALL = -(2**63)


class SqliteKeys(Keys):
    """Implements Keys over the table of keys."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    @override
    async def insert(self, key: Key) -> bool:
        row = (key.id, key.digest, key.role, key.user_id, key.name, key.agent_id, to_ms(key.created_at))
        return bool(await self._database.write(INSERT, row))

    @override
    async def key(self, key_id: str) -> Key | None:
        rows = await self._database.read(KEY, (key_id,))
        return _to_key(rows[0]) if rows else None

    @override
    async def page(self, *, limit: int, after: tuple[datetime, str] | None = None) -> list[Key]:
        place = (_BEFORE_ALL, "") if after is None else (to_ms(after[0]), after[1])
        return [_to_key(row) for row in await self._database.read(PAGE, (*place, limit))]

    @override
    async def remove(self, key_id: str) -> bool:
        return await self._database.erase(REMOVE, (key_id,)) > 0

    @override
    async def count(self, user_id: str) -> int:
        return (await self._database.read(COUNT, (user_id,)))[0][0]

    @override
    async def delete(self, user_id: str) -> int:
        return await self._database.delete(DELETE, (user_id,))


def _to_key(row: Row) -> Key:
    *said, agent_id, created_at = row
    return Key(*said, created_at=from_ms(created_at), agent_id=agent_id)
