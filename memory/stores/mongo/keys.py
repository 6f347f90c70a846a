"""Keeps keys in MongoDB: one document each, fields as in `Key`; `_id` is the key's id."""

from datetime import datetime

from pymongo import ASCENDING
from pymongo.errors import DuplicateKeyError
from typing_extensions import override

from recollect.memory.ports.keys import Key, Keys
from recollect.memory.stores.mongo.connection import KEYS, MARK, MongoConnection, Record


class MongoKeys(Keys):
    """Implements Keys over the `keys` collection."""

    def __init__(self, connection: MongoConnection) -> None:
        self._connection = connection

    @override
    async def insert(self, key: Key) -> bool:
        async with self._connection.use() as database:
            try:
                await database[KEYS].insert_one(_from_key(key))
            except DuplicateKeyError:
                return False
        return True

    @override
    async def key(self, key_id: str) -> Key | None:
        async with self._connection.use() as database:
            document = await database[KEYS].find_one({"_id": key_id})
        return _to_key(document) if document is not None else None

    @override
    async def page(self, *, limit: int, after: tuple[datetime, str] | None = None) -> list[Key]:
        if limit < 1:
            return []
        query: Record = {}
        if after is not None:
            created_at, key_id = after
            query = {"$or": [{"created_at": {"$gt": created_at}}, {"created_at": created_at, "_id": {"$gt": key_id}}]}
        async with self._connection.use() as database:
            found = database[KEYS].find(query).sort([("created_at", ASCENDING), ("_id", ASCENDING)]).limit(limit)
            return [_to_key(document) for document in await found.to_list()]

    @override
    async def remove(self, key_id: str) -> bool:
        async with self._connection.use() as database:
            return (await database[KEYS].delete_one({"_id": key_id})).deleted_count > 0

    @override
    async def count(self, user_id: str) -> int:
        async with self._connection.use() as database:
            return await database[KEYS].count_documents({"user_id": user_id})

    @override
    async def delete(self, user_id: str) -> int:
        async with self._connection.use() as database:
            return (await database[KEYS].delete_many({"user_id": user_id})).deleted_count


def _from_key(key: Key) -> Record:
    return {
        **MARK,
        "_id": key.id,
        "digest": key.digest,
        "role": key.role,
        "user_id": key.user_id,
        "name": key.name,
        "created_at": key.created_at,
        "agent_id": key.agent_id,
    }


def _to_key(document: Record) -> Key:
    return Key(
        id=document["_id"],
        digest=document["digest"],
        role=document["role"],
        user_id=document["user_id"],
        name=document["name"],
        created_at=document["created_at"],
        agent_id=document.get("agent_id"),
    )
