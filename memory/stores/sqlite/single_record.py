"""Keeps one record of the whole file: a table of one row, its content as text."""

from typing_extensions import override

from recollect.memory.stores.sqlite.database import SqliteDatabase
from recollect.memory.stores.text_record import TextRecord
from recollect.memory.values.frozen import frozen


@frozen
class SingleRecord(TextRecord):
    """The record in the table `table`, a name of our own."""

    database: SqliteDatabase
    table: str

    @override
    async def read(self) -> str | None:
        rows = await self.database.read(f"SELECT content FROM {self.table}")
        return rows[0][0] if rows else None

    @override
    async def replace(self, content: str, *, seen: str | None) -> bool:
        if seen is None:
            insert = f"INSERT INTO {self.table} (number, content) VALUES (1, ?)"
            return bool(await self.database.write(f"{insert} ON CONFLICT (number) DO NOTHING RETURNING 1", (content,)))
        replace = f"UPDATE {self.table} SET content = ? WHERE content = ? RETURNING 1"
        return bool(await self.database.write(replace, (content, seen)))
