"""Keeps thread records in MongoDB: one document each, fields as in `ThreadRecord`.

`_id` joins user and thread; `has_point` stores the record's property of that name, for queries.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import fields

from pymongo import ASCENDING
from pymongo.errors import DuplicateKeyError
from typing_extensions import override

from recollect.memory.ports.threads import Threads
from recollect.memory.stores.mongo.connection import MARK, THREADS, MongoConnection, Record
from recollect.memory.stores.mongo.leaps import users_of
from recollect.memory.values.scope import Scope
from recollect.memory.values.thread_record import ThreadRecord

_BATCH = 500
_FIELDS = tuple(item.name for item in fields(ThreadRecord))


class MongoThreads(Threads):
    """Implements Threads over the `threads` collection."""

    def __init__(self, connection: MongoConnection) -> None:
        self._connection = connection

    @override
    async def record(self, scope: Scope) -> ThreadRecord | None:
        found = await self._found(_one(scope.user_id, scope.thread), limit=1)
        return found[0] if found else None

    @override
    async def records(self, *, user_id: str, thread_ids: Sequence[str]) -> list[ThreadRecord]:
        keys = [_key(user_id, thread_id) for thread_id in thread_ids]
        return await self._found({"user_id": user_id, "_id": {"$in": keys}}, limit=len(keys))

    @override
    async def put(self, record: ThreadRecord, *, revision: int) -> bool:
        async with self._connection.use() as database:
            if revision:
                stored: Record = {**_one(record.user_id, record.thread_id), "revision": revision}
                return (await database[THREADS].replace_one(stored, _from_record(record))).matched_count == 1
            try:
                await database[THREADS].insert_one(_from_record(record))
            except DuplicateKeyError:
                return False
        return True

    @override
    async def closing(self, *, limit: int) -> list[ThreadRecord]:
        return await self._found({"closing": True}, limit=limit)

    @override
    async def owed(self, *, user_id: str, limit: int) -> list[ThreadRecord]:
        return await self._found({"user_id": user_id, "indexed": False}, limit=limit)

    @override
    async def owed_users(self, *, limit: int) -> list[str]:
        async with self._connection.use() as database:
            return await users_of(database, THREADS, limit=limit, query={"indexed": False})

    @override
    async def mark_indexed(self, record: ThreadRecord) -> bool:
        stored: Record = {**_one(record.user_id, record.thread_id), "revision": record.revision}
        async with self._connection.use() as database:
            return (await database[THREADS].update_one(stored, {"$set": {"indexed": True}})).matched_count == 1

    @override
    async def indexed(self, *, user_id: str | None = None) -> AsyncIterator[Sequence[ThreadRecord]]:
        query: Record = {} if user_id is None else {"user_id": user_id}
        query |= {"indexed": True, "has_point": True}
        while records := await self._found(query, limit=_BATCH):
            yield records
            query["_id"] = {"$gt": _key(records[-1].user_id, records[-1].thread_id)}

    @override
    async def count_indexed(self) -> int:
        async with self._connection.use() as database:
            return await database[THREADS].count_documents({"indexed": True, "has_point": True})

    @override
    async def every(self, user_id: str) -> AsyncIterator[Sequence[ThreadRecord]]:
        # `_id` joins the user's id and the thread's, so it sorts a user's records by thread id.
        query: Record = {"user_id": user_id, "_id": {"$gt": _key(user_id, "")}}
        while records := await self._found(query, limit=_BATCH):
            yield records
            query["_id"] = {"$gt": _key(user_id, records[-1].thread_id)}

    @override
    async def delete(self, scope: Scope) -> int:
        query: Record = {"user_id": scope.user_id}
        if scope.thread_id is not None:
            query = _one(scope.user_id, scope.thread_id)
        async with self._connection.use() as database:
            return (await database[THREADS].delete_many(query)).deleted_count

    async def _found(self, query: Record, *, limit: int) -> list[ThreadRecord]:
        if limit < 1:
            return []
        async with self._connection.use() as database:
            found = database[THREADS].find(query).sort("_id", ASCENDING).limit(limit)
            return [_to_record(document) for document in await found.to_list()]


def _one(user_id: str, thread_id: str) -> Record:
    """Return the query for one record: the user leads, so that a sharded cluster asks one shard."""
    return {"user_id": user_id, "_id": _key(user_id, thread_id)}


def _key(user_id: str, thread_id: str) -> str:
    return f"{user_id}/{thread_id}"


def _from_record(record: ThreadRecord) -> Record:
    document: Record = {name: getattr(record, name) for name in _FIELDS}
    return {**MARK, **document, "_id": _key(record.user_id, record.thread_id), "has_point": record.has_point}


def _to_record(document: Record) -> ThreadRecord:
    return ThreadRecord(**{name: document[name] for name in _FIELDS if name in document})
