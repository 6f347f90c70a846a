"""Keeps tombstones and receipts of erasures in MongoDB, and scans all collections for a user's data.

`tombstones` holds one document per subject, one with the key of the hashes, and one that counts all fences that were
raised or lifted.
"""

import contextlib
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime

from bson import Binary
from pymongo import ASCENDING, ReturnDocument
from pymongo.errors import DuplicateKeyError
from typing_extensions import override

from recollect.memory.ports.erasures import SECRET_BYTES, Erasure, Erasures, Tombstone
from recollect.memory.stores.json_text import from_json, to_json
from recollect.memory.stores.mongo.connection import (
    ATTACHMENTS,
    CLAIMS,
    CLIENT_RECORDS,
    CONVERSATIONS,
    DOCUMENTS,
    ERASURES,
    FACTS,
    KEYS,
    MARK,
    PASSAGES,
    PROCESSES,
    QUEUE,
    RATE_LEASES,
    SCHEMA,
    SESSIONS,
    THREADS,
    TOMBSTONES,
    MongoConnection,
    MongoDatabase,
    Record,
    hidden_key,
)
from recollect.memory.stores.mongo.leaps import distinct_of
from recollect.memory.stores.mongo.queue import count_left
from recollect.memory.values.scope import Scope

HOLDERS: Mapping[str, tuple[str, str | None]] = {
    CONVERSATIONS: ("conversations", "thread_id"),
    FACTS: ("facts", "home"),
    THREADS: ("threads", "thread_id"),
    DOCUMENTS: ("documents", None),
    PASSAGES: ("documents", None),
    ATTACHMENTS: ("documents", "thread_id"),
    KEYS: ("keys", None),
    SESSIONS: ("sessions", None),
    CLIENT_RECORDS: ("client_records", "thread_id"),
}
"""For each collection that holds users' data: its data holder, and the field that names the thread."""
WORK = frozenset({CLAIMS, QUEUE})
"""Collections with a document for each user, or thread, that somebody works on: by a hash (`hidden_key`)."""
NOBODYS = frozenset({PROCESSES, RATE_LEASES, SCHEMA, ERASURES, TOMBSTONES})
"""Collections that hold no user's data; an erasure names its user until all is gone, and `rate_leases` count requests
by a hash of their sender for minutes."""

_SECRET, _RAISES = "*secret", "*raises"
"""No hash reads like these ids."""
_THREADS = 500


class MongoErasures(Erasures):
    """Implements Erasures over the collections `tombstones` and `erasures`."""

    is_shared = True

    def __init__(self, connection: MongoConnection) -> None:
        self._connection = connection

    @override
    async def secret(self) -> bytes:
        async with self._connection.use() as database:
            tombstones = database[TOMBSTONES]
            found = await tombstones.find_one({"_id": _SECRET})
            if found is None:
                with contextlib.suppress(DuplicateKeyError):  # another process was first: read its secret below
                    secret = Binary(secrets.token_bytes(SECRET_BYTES))
                    await tombstones.insert_one({**MARK, "_id": _SECRET, "secret": secret})
                found = await tombstones.find_one({"_id": _SECRET})
        assert found is not None
        return bytes(found["secret"])

    @override
    async def block(self, subject: str, erasure_id: str, *, at: datetime) -> Tombstone:
        user = subject.partition("/")[0]
        change: Record = {
            "$inc": {"epoch": 1},
            "$set": {"at": at, "user": user},
            "$addToSet": {"erasing": erasure_id},
        }
        async with self._connection.use() as database:
            raised = await _upserted(database, subject, change)
            # Counted last: who reads the new count and then the tombstone must find it raised.
            await _upserted(database, _RAISES, {"$inc": {"raises": 1}})
            return _to_tombstone(raised)

    @override
    async def unblock(self, subject: str, erasure_id: str, *, at: datetime) -> None:
        async with self._connection.use() as database:
            done = await database[TOMBSTONES].update_one(
                {"_id": subject, "erasing": erasure_id},
                {"$inc": {"epoch": 1}, "$set": {"at": at}, "$pull": {"erasing": erasure_id}},
            )
            if done.matched_count:
                await _upserted(database, _RAISES, {"$inc": {"raises": 1}})

    @override
    async def tombstones(self, subjects: Sequence[str]) -> dict[str, Tombstone]:
        async with self._connection.use() as database:
            if len(subjects) == 1:
                one = await database[TOMBSTONES].find_one({"_id": subjects[0]})
                found = [] if one is None else [one]
            else:
                found = await database[TOMBSTONES].find({"_id": {"$in": list(subjects)}}).to_list()
        return {tombstone.subject: tombstone for tombstone in map(_to_tombstone, found)}

    @override
    async def erased(self, users: Sequence[str]) -> set[str]:
        async with self._connection.use() as database:
            found = (
                await database[TOMBSTONES].find({"user": {"$in": list(users)}}, {"_id": False, "user": True}).to_list()
            )
        return {document["user"] for document in found}

    @override
    async def tombstones_since(self, at: datetime, *, after: str = "", limit: int = 500) -> list[Tombstone]:
        query: Record = {"at": {"$gte": at}, "_id": {"$gt": after}}
        async with self._connection.use() as database:
            found = await database[TOMBSTONES].find(query).sort("_id", ASCENDING).limit(limit).to_list()
        return [_to_tombstone(document) for document in found]

    @override
    async def epoch(self) -> int:
        async with self._connection.use() as database:
            found = await database[TOMBSTONES].find_one({"_id": _RAISES})
        return 0 if found is None else found["raises"]

    @override
    async def put(self, erasure: Erasure) -> None:
        async with self._connection.use() as database:
            await database[ERASURES].replace_one({"_id": erasure.id}, _from_erasure(erasure), upsert=True)

    @override
    async def erasure(self, erasure_id: str) -> Erasure | None:
        async with self._connection.use() as database:
            found = await database[ERASURES].find_one({"_id": erasure_id})
        return None if found is None else _to_erasure(found)

    @override
    async def unfinished(self, *, limit: int) -> list[Erasure]:
        async with self._connection.use() as database:
            found = database[ERASURES].find({"is_done": False}).sort("touched_at", ASCENDING).limit(limit)
            return [_to_erasure(document) for document in await found.to_list()]

    @override
    async def delete_work(self, scope: Scope) -> int:
        # A waiter in a deleted queue takes a new ticket; the fence stops the one that was running.
        async with self._connection.use() as database:
            deleted = 0
            if scope.thread_id is None:
                deleted += (await database[CLAIMS].delete_one({"_id": hidden_key(scope.user_id)})).deleted_count
            async for keys in _queues(database, scope):
                left = await count_left(database, scope.user_id, keys)
                queues = (await database[QUEUE].delete_many({"_id": {"$in": keys}})).deleted_count
                deleted += max(0, queues - left)  # what an answered turn has left is no work
        return deleted

    @override
    async def count(self, holder: str, scope: Scope) -> int:
        # Tickets of a thread whose messages are gone cannot be found; their keys name nobody.
        counted = 0
        async with self._connection.use() as database:
            if holder == "work" and scope.thread_id is None:
                counted += await database[CLAIMS].count_documents({"_id": hidden_key(scope.user_id)})
            for collection, (name, thread) in HOLDERS.items():
                query: Record = {"user_id": scope.user_id}
                if scope.thread_id is not None and thread is not None:
                    query[thread] = scope.thread_id
                if name == holder and (scope.thread_id is None or thread is not None):
                    counted += await database[collection].count_documents(query)
        return counted

    @override
    async def scrub(self) -> None:
        """Do nothing: the files are the server's."""


async def _upserted(database: MongoDatabase, key: str, change: Record) -> Record:
    while True:
        try:
            found = await database[TOMBSTONES].find_one_and_update(
                {"_id": key}, {**change, "$setOnInsert": MARK}, upsert=True, return_document=ReturnDocument.AFTER
            )
        except DuplicateKeyError:
            continue  # two processes made the document at once: one of them retries
        if found is not None:
            return found


async def _queues(database: MongoDatabase, scope: Scope) -> AsyncIterator[list[str]]:
    """Yield the queue keys of the user's threads, or of the scope's one thread, in batches."""
    if scope.thread_id is not None:
        yield [hidden_key(scope.user_id, scope.thread_id)]
        return
    for collection in (CONVERSATIONS, THREADS):
        after = ""
        query: Record = {"user_id": scope.user_id}
        while threads := await distinct_of(database[collection], "thread_id", limit=_THREADS, query=query, after=after):
            yield [hidden_key(scope.user_id, thread) for thread in threads]
            after = threads[-1]


def _to_tombstone(document: Record) -> Tombstone:
    return Tombstone(document["_id"], document["epoch"], document["at"], frozenset(document["erasing"]))


def _from_erasure(erasure: Erasure) -> Record:
    scope = erasure.scope
    return {
        **MARK,
        "_id": erasure.id,
        "subject": erasure.subject,
        "by": erasure.by,
        "erased_at": erasure.erased_at,
        "touched_at": erasure.touched_at,
        "user_id": None if scope is None else scope.user_id,
        "thread_id": None if scope is None else scope.thread_id,
        "counts": to_json(erasure.counts),
        "remaining": to_json(erasure.remaining),
        "is_done": erasure.is_done,
    }


def _to_erasure(document: Record) -> Erasure:
    user_id = document["user_id"]
    return Erasure(
        id=document["_id"],
        subject=document["subject"],
        by=document["by"],
        erased_at=document["erased_at"],
        touched_at=document["touched_at"],
        scope=None if user_id is None else Scope(user_id, document["thread_id"]),
        counts=from_json(document["counts"]),
        remaining=from_json(document["remaining"]),
        is_done=document["is_done"],
    )
