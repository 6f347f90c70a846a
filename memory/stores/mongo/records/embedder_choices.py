"""Keeps the record of the embedder that serves in MongoDB."""

from typing_extensions import override

from recollect.memory.ports.embedder import EmbedderChoice, EmbedderChoices
from recollect.memory.stores.mongo.connection import MongoConnection
from recollect.memory.stores.mongo.records.schema_record import SchemaRecord


class MongoEmbedderChoices(EmbedderChoices):
    """Implements EmbedderChoices over a record of the whole database."""

    def __init__(self, connection: MongoConnection) -> None:
        self._record = SchemaRecord(connection, "embedders")

    @override
    async def read(self) -> EmbedderChoice | None:
        content = await self._record.read()
        return None if content is None else EmbedderChoice.of_text(content)

    @override
    async def replace(self, choice: EmbedderChoice, *, seen: EmbedderChoice | None) -> bool:
        return await self._record.replace(choice.as_text(), seen=None if seen is None else seen.as_text())
