"""Keeps the record of the embedder that serves in MongoDB: one document, its content as JSON text."""

from pymongo.errors import DuplicateKeyError
from typing_extensions import override

from recollect.memory.ports.embedder import EmbedderChoice, EmbedderChoices
from recollect.memory.stores.mongo.connection import MARK, SCHEMA, MongoConnection

_KEY = "embedders"


class MongoEmbedderChoices(EmbedderChoices):
    """Implements EmbedderChoices over a document of the `schema` collection, which names nobody."""

    def __init__(self, connection: MongoConnection) -> None:
        self._connection = connection

    @override
    async def read(self) -> EmbedderChoice | None:
        async with self._connection.use() as database:
            found = await database[SCHEMA].find_one({"_id": _KEY})
        return None if found is None else EmbedderChoice.of_text(found["content"])

    @override
    async def replace(self, choice: EmbedderChoice, *, seen: EmbedderChoice | None) -> bool:
        content = choice.as_text()
        async with self._connection.use() as database:
            if seen is None:
                try:
                    await database[SCHEMA].insert_one({**MARK, "_id": _KEY, "content": content})
                except DuplicateKeyError:
                    return False
                return True
            asked = {"_id": _KEY, "content": seen.as_text()}
            return (await database[SCHEMA].update_one(asked, {"$set": {"content": content}})).matched_count > 0
