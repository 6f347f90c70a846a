"""Keeps the record of the embedder that serves in SQLite."""

from typing_extensions import override

from recollect.memory.ports.embedder import EmbedderChoice, EmbedderChoices
from recollect.memory.stores.sqlite.database import SqliteDatabase
from recollect.memory.stores.sqlite.single_record import SingleRecord


class SqliteEmbedderChoices(EmbedderChoices):
    """Implements EmbedderChoices over a record of the whole file."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._record = SingleRecord(database, "embedder_choice")

    @override
    async def read(self) -> EmbedderChoice | None:
        content = await self._record.read()
        return None if content is None else EmbedderChoice.of_text(content)

    @override
    async def replace(self, choice: EmbedderChoice, *, seen: EmbedderChoice | None) -> bool:
        return await self._record.replace(choice.as_text(), seen=None if seen is None else seen.as_text())
