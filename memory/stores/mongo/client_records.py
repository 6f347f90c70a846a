"""Keeps client records in MongoDB: one document each; `_id` is a hash of user and id, `content` is JSON text."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime

from pymongo import ASCENDING
from pymongo.errors import DuplicateKeyError
from typing_extensions import override

from recollect.memory.ports.client_records import ClientRecord, ClientRecords
from recollect.memory.stores.json_text import from_json, to_json
from recollect.memory.stores.mongo.connection import (
    CLIENT_RECORDS,
    MARK,
    MongoConnection,
    MongoDatabase,
    Record,
    hidden_key,
)
from recollect.memory.values.scope import Scope

_BATCH = 100


class MongoClientRecords(ClientRecords):
    """Implements ClientRecords over the `client_records` collection."""

    def __init__(self, connection: MongoConnection) -> None:
        self._connection = connection

    @override
    async def put(self, record: ClientRecord) -> None:
        async with self._connection.use() as database:
            while not await _is_put(database, _from_record(record)):
                pass  # two processes made the document at once: one of them retries

    @override
    async def insert(self, record: ClientRecord) -> bool:
        async with self._connection.use() as database:
            try:
                await database[CLIENT_RECORDS].insert_one(_from_record(record))
            except DuplicateKeyError:
                return False
        return True

    @override
    async def record(self, *, user_id: str, record_id: str) -> ClientRecord | None:
        async with self._connection.use() as database:
            found = await database[CLIENT_RECORDS].find_one({"user_id": user_id, "_id": hidden_key(user_id, record_id)})
        return None if found is None else _to_record(found)

    @override
    async def every(self, scope: Scope) -> AsyncIterator[Sequence[ClientRecord]]:
        after = ""
        while True:
            query: Record = {**_of(scope), "id": {"$gt": after}}
            async with self._connection.use() as database:
                found = await database[CLIENT_RECORDS].find(query).sort("id", ASCENDING).limit(_BATCH).to_list()
            if not found:
                return
            yield [_to_record(document) for document in found]
            after = found[-1]["id"]

    @override
    async def remove(self, *, user_id: str, record_id: str) -> bool:
        async with self._connection.use() as database:
            one: Record = {"user_id": user_id, "_id": hidden_key(user_id, record_id)}
            deleted = await database[CLIENT_RECORDS].delete_one(one)
        return deleted.deleted_count > 0

    @override
    async def expire(self, now: datetime, *, limit: int) -> int:
        query: Record = {"expires_at": {"$lte": now}}
        if limit < 1:
            return 0
        async with self._connection.use() as database:
            records = database[CLIENT_RECORDS]
            found = await records.find(query, {"_id": True}).sort("expires_at", ASCENDING).limit(limit).to_list()
            ids = [document["_id"] for document in found]
            return (await records.delete_many({"_id": {"$in": ids}, **query})).deleted_count if ids else 0

    @override
    async def delete(self, scope: Scope) -> int:
        async with self._connection.use() as database:
            return (await database[CLIENT_RECORDS].delete_many(_of(scope))).deleted_count


async def _is_put(database: MongoDatabase, document: Record) -> bool:
    try:
        one = {name: document[name] for name in ("user_id", "_id")}
        await database[CLIENT_RECORDS].replace_one(one, document, upsert=True)
    except DuplicateKeyError:
        return False
    return True


def _of(scope: Scope) -> Record:
    whose: Record = {"user_id": scope.user_id}
    return whose if scope.thread_id is None else {**whose, "thread_id": scope.thread_id}


def _from_record(record: ClientRecord) -> Record:
    return {
        **MARK,
        "_id": hidden_key(record.user_id, record.id),
        "user_id": record.user_id,
        "thread_id": record.thread_id,
        "id": record.id,
        "kind": record.kind,
        "created_at": record.created_at,
        "expires_at": record.expires_at,
        "content": to_json(record.content),
    }


def _to_record(document: Record) -> ClientRecord:
    return ClientRecord(
        user_id=document["user_id"],
        thread_id=document["thread_id"],
        id=document["id"],
        kind=document["kind"],
        created_at=document["created_at"],
        expires_at=document["expires_at"],
        content=from_json(document["content"]),
    )
