"""Keeps the record of the embedder that serves in SQLite: a table of one row."""

from typing_extensions import override

from recollect.memory.ports.embedder import EmbedderChoice, EmbedderChoices
from recollect.memory.stores.sqlite.database import SqliteDatabase

READ = "SELECT content FROM embedder_choice"
INSERT = "INSERT INTO embedder_choice (number, content) VALUES (1, ?) ON CONFLICT (number) DO NOTHING RETURNING 1"
REPLACE = "UPDATE embedder_choice SET content = ? WHERE content = ? RETURNING 1"


class SqliteEmbedderChoices(EmbedderChoices):
    """Implements EmbedderChoices over its table."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    @override
    async def read(self) -> EmbedderChoice | None:
        rows = await self._database.read(READ)
        return EmbedderChoice.of_text(rows[0][0]) if rows else None

    @override
    async def replace(self, choice: EmbedderChoice, *, seen: EmbedderChoice | None) -> bool:
        if seen is None:
            return bool(await self._database.write(INSERT, (choice.as_text(),)))
        return bool(await self._database.write(REPLACE, (choice.as_text(), seen.as_text())))
