"""Keeps sessions in MongoDB: one document each, fields as in `Session`; `_id` is the digest."""

from datetime import datetime

from pymongo import ASCENDING, DESCENDING
from pymongo.errors import DuplicateKeyError
from typing_extensions import override

from recollect.memory.ports.sessions import Session, Sessions
from recollect.memory.stores.mongo.connection import MARK, SESSIONS, MongoConnection, MongoDatabase, Record


class MongoSessions(Sessions):
    """Implements Sessions over the `sessions` collection."""

    def __init__(self, connection: MongoConnection) -> None:
        self._connection = connection

    @override
    async def insert(self, session: Session) -> bool:
        async with self._connection.use() as database:
            try:
                await database[SESSIONS].insert_one(_from_session(session))
            except DuplicateKeyError:
                return False
        return True

    @override
    async def session(self, digest: str) -> Session | None:
        async with self._connection.use() as database:
            found = await database[SESSIONS].find_one({"_id": digest})
        return None if found is None else _to_session(found)

    @override
    async def extend(self, digest: str, *, expires_at: datetime) -> bool:
        query: Record = {"_id": digest, "expires_at": {"$lt": expires_at}}
        async with self._connection.use() as database:
            updated = await database[SESSIONS].update_one(query, {"$set": {"expires_at": expires_at}})
        return updated.modified_count > 0

    @override
    async def remove(self, digest: str) -> bool:
        async with self._connection.use() as database:
            return (await database[SESSIONS].delete_one({"_id": digest})).deleted_count > 0

    @override
    async def trim(self, name: str, *, keep: int) -> int:
        async with self._connection.use() as database:
            found = database[SESSIONS].find({"name": name}, {"_id": True})
            newest_first = found.sort([("started_at", DESCENDING), ("_id", ASCENDING)])
            return await _delete(database, await newest_first.skip(keep).to_list())

    @override
    async def expire(self, now: datetime, *, limit: int) -> int:
        if limit < 1:
            return 0
        async with self._connection.use() as database:
            found = database[SESSIONS].find({"expires_at": {"$lte": now}}, {"_id": True})
            return await _delete(database, await found.sort("expires_at", ASCENDING).limit(limit).to_list())

    @override
    async def delete(self, user_id: str) -> int:
        async with self._connection.use() as database:
            return (await database[SESSIONS].delete_many({"user_id": user_id})).deleted_count


async def _delete(database: MongoDatabase, found: list[Record]) -> int:
    ids = [document["_id"] for document in found]
    return (await database[SESSIONS].delete_many({"_id": {"$in": ids}})).deleted_count if ids else 0


def _from_session(session: Session) -> Record:
    return {
        **MARK,
        "_id": session.digest,
        "name": session.name,
        "user_id": session.user_id,
        "is_admin": session.is_admin,
        "key_id": session.key_id,
        "started_at": session.started_at,
        "expires_at": session.expires_at,
        "ends_at": session.ends_at,
    }


def _to_session(document: Record) -> Session:
    return Session(
        digest=document["_id"],
        name=document["name"],
        user_id=document["user_id"],
        is_admin=document["is_admin"],
        key_id=document["key_id"],
        started_at=document["started_at"],
        expires_at=document["expires_at"],
        ends_at=document["ends_at"],
    )
