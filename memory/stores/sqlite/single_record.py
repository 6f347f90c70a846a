"""Keeps one record of the whole file: a table of one row, its content as text."""

from dataclasses import dataclass

from recollect.memory.stores.sqlite.database import SqliteDatabase


@dataclass(frozen=True, slots=True)
class SingleRecord:
    """The record in the table `table`, a name of our own."""

    database: SqliteDatabase
    table: str

    async def read(self) -> str | None:
        """Return its content, or None if it was never written."""
        rows = await self.database.read(f"SELECT content FROM {self.table}")
        return rows[0][0] if rows else None

    async def replace(self, content: str, *, seen: str | None) -> bool:
        """Write `content` in place of `seen` (None: nothing yet); return False where something else stands there."""
        if seen is None:
            insert = f"INSERT INTO {self.table} (number, content) VALUES (1, ?)"
            return bool(await self.database.write(f"{insert} ON CONFLICT (number) DO NOTHING RETURNING 1", (content,)))
        replace = f"UPDATE {self.table} SET content = ? WHERE content = ? RETURNING 1"
        return bool(await self.database.write(replace, (content, seen)))
