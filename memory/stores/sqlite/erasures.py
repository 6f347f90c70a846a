"""Keeps tombstones and receipts of erasures in SQLite, scans all tables for a user's data, and scrubs the file."""

import json
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime

from typing_extensions import override

from recollect.memory.ports.erasures import SECRET_BYTES, Erasure, Erasures, Tombstone
from recollect.memory.stores.json_text import from_json, to_json
from recollect.memory.stores.sqlite.database import Row, SqliteDatabase
from recollect.memory.values.scope import Scope
from recollect.memory.values.times import from_ms, to_ms

HOLDERS: Mapping[str, tuple[str, str | None]] = {
    "messages": ("conversations", "thread_id"),
    "facts": ("facts", "home"),
    "threads": ("threads", "thread_id"),
    "documents": ("documents", None),
    "passages": ("documents", None),
    "attachments": ("documents", "thread_id"),
    # Triggers delete terms with what they are of; documents are the last of it.
    "filter_terms": ("documents", None),
    "keys": ("keys", None),
    "sessions": ("sessions", None),
    "client_records": ("client_records", "thread_id"),
}
"""For each table that holds users' data: its data holder, and the column that names the thread where rows have one."""
NOBODYS = frozenset({"state", "embedder_choice", "filter_filling", "erasure_secret", "tombstones", "erasures"})
"""Tables that hold no user's data; an erasure names its user until all is gone."""

_COLUMNS = "id, subject, by, erased_at, touched_at, user_id, thread_id, counts, remaining, is_done"
_TOMBSTONE = "subject, epoch, at, erasing"

MAKE_SECRET = "INSERT INTO erasure_secret (number, secret) VALUES (1, ?) ON CONFLICT (number) DO NOTHING"
SECRET = "SELECT secret FROM erasure_secret"
RAISE = f"""
INSERT INTO tombstones ({_TOMBSTONE}) VALUES (:subject, 1, :at, json_array(:erasure))
ON CONFLICT (subject) DO UPDATE SET epoch = epoch + 1, at = excluded.at, erasing = (
    SELECT json_group_array(DISTINCT value)
    FROM (SELECT value FROM json_each(tombstones.erasing) UNION SELECT :erasure)
) RETURNING {_TOMBSTONE}
"""
LIFT = """
UPDATE tombstones SET epoch = epoch + 1, at = :at, erasing = (
    SELECT json_group_array(value) FROM json_each(tombstones.erasing) WHERE value <> :erasure
) WHERE subject = :subject AND EXISTS (SELECT 1 FROM json_each(tombstones.erasing) WHERE value = :erasure)
"""
SINCE = f"SELECT {_TOMBSTONE} FROM tombstones WHERE at >= ? AND subject > ? ORDER BY subject LIMIT ?"
RAISES = "SELECT coalesce(sum(epoch), 0) FROM tombstones"
PUT = f"INSERT OR REPLACE INTO erasures ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
ERASURE = f"SELECT {_COLUMNS} FROM erasures WHERE id = ?"
UNFINISHED = f"""
SELECT {_COLUMNS} FROM erasures INDEXED BY erasures_unfinished WHERE is_done = 0 ORDER BY touched_at, id LIMIT ?
"""


class SqliteErasures(Erasures):
    """Implements Erasures over its tables. DATA_DIR has one owner, so no other process erases in it."""

    is_shared = False

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    @override
    async def secret(self) -> bytes:
        await self._database.write(MAKE_SECRET, (secrets.token_bytes(SECRET_BYTES),))
        return (await self._database.read(SECRET))[0][0]

    @override
    async def block(self, subject: str, erasure_id: str, *, at: datetime) -> Tombstone:
        values = {"subject": subject, "erasure": erasure_id, "at": to_ms(at)}
        return _to_tombstone((await self._database.write(RAISE, values))[0])

    @override
    async def unblock(self, subject: str, erasure_id: str, *, at: datetime) -> None:
        await self._database.write(LIFT, {"subject": subject, "erasure": erasure_id, "at": to_ms(at)})

    @override
    async def tombstones(self, subjects: Sequence[str]) -> dict[str, Tombstone]:
        places = ", ".join("?" * len(subjects))
        rows = await self._database.read(
            f"SELECT {_TOMBSTONE} FROM tombstones WHERE subject IN ({places})", tuple(subjects)
        )
        return {tombstone.subject: tombstone for tombstone in map(_to_tombstone, rows)}

    @override
    async def erased(self, users: Sequence[str]) -> set[str]:
        places = ", ".join("(?)" for _ in users)
        sql = f"""
        WITH asked (user) AS (VALUES {places})
        SELECT user FROM asked
        WHERE EXISTS (
            SELECT 1 FROM tombstones WHERE subject = user OR (subject > user || '/' AND subject < user || '0')
        )
        """
        return {user for (user,) in await self._database.read(sql, tuple(users))} if users else set()

    @override
    async def tombstones_since(self, at: datetime, *, after: str = "", limit: int = 500) -> list[Tombstone]:
        return [_to_tombstone(row) for row in await self._database.read(SINCE, (to_ms(at), after, limit))]

    @override
    async def epoch(self) -> int:
        return (await self._database.read(RAISES))[0][0]

    @override
    async def put(self, erasure: Erasure) -> None:
        await self._database.write(PUT, _from_erasure(erasure))

    @override
    async def erasure(self, erasure_id: str) -> Erasure | None:
        rows = await self._database.read(ERASURE, (erasure_id,))
        return _to_erasure(rows[0]) if rows else None

    @override
    async def unfinished(self, *, limit: int) -> list[Erasure]:
        return [_to_erasure(row) for row in await self._database.read(UNFINISHED, (limit,))]

    @override
    async def delete_work(self, scope: Scope) -> int:
        """Delete nothing: claims and queue are in memory, and the disk names nobody in them."""
        return 0

    @override
    async def count(self, holder: str, scope: Scope) -> int:
        counted = 0
        for table, (name, thread) in HOLDERS.items():
            if name != holder:
                continue
            if scope.thread_id is None:
                sql, values = f"SELECT count(*) FROM {table} WHERE user_id = ?", (scope.user_id,)
            elif thread is not None:
                sql = f"SELECT count(*) FROM {table} WHERE user_id = ? AND {thread} = ?"
                values = (scope.user_id, scope.thread_id)
            else:
                continue
            counted += (await self._database.read(sql, values))[0][0]
        return counted

    @override
    async def scrub(self) -> None:
        await self._database.scrub()


def _to_tombstone(row: Row) -> Tombstone:
    subject, epoch, at, erasing = row
    return Tombstone(subject, epoch, from_ms(at), frozenset(json.loads(erasing)))


def _from_erasure(erasure: Erasure) -> Row:
    scope = erasure.scope
    return (
        *(erasure.id, erasure.subject, erasure.by, to_ms(erasure.erased_at), to_ms(erasure.touched_at)),
        *((None, None) if scope is None else (scope.user_id, scope.thread_id)),
        *(to_json(erasure.counts), to_json(erasure.remaining), int(erasure.is_done)),
    )


def _to_erasure(row: Row) -> Erasure:
    erasure_id, subject, by, erased_at, touched_at, user_id, thread_id, counts, remaining, is_done = row
    return Erasure(
        id=erasure_id,
        subject=subject,
        by=by,
        erased_at=from_ms(erased_at),
        touched_at=from_ms(touched_at),
        scope=None if user_id is None else Scope(user_id, thread_id),
        counts=from_json(counts),
        remaining=from_json(remaining),
        is_done=bool(is_done),
    )
