"""Keeps one record of the whole database: a document of the `schema` collection, its content as text."""

from pymongo.errors import DuplicateKeyError
from typing_extensions import override

from recollect.memory.stores.mongo.connection import MARK, SCHEMA, MongoConnection
from recollect.memory.stores.text_record import TextRecord
from recollect.memory.values.frozen import frozen


@frozen
class SchemaRecord(TextRecord):
    """The record with the id `key`, which names nobody."""

    connection: MongoConnection
    key: str

    @override
    async def read(self) -> str | None:
        async with self.connection.use() as database:
            found = await database[SCHEMA].find_one({"_id": self.key})
        return None if found is None else found["content"]

    @override
    async def replace(self, content: str, *, seen: str | None) -> bool:
        async with self.connection.use() as database:
            if seen is None:
                try:
                    await database[SCHEMA].insert_one({**MARK, "_id": self.key, "content": content})
                except DuplicateKeyError:
                    return False
                return True
            asked = {"_id": self.key, "content": seen}
            return (await database[SCHEMA].update_one(asked, {"$set": {"content": content}})).matched_count > 0
