"""Prepares the collections before their first use: makes indexes and migrates documents of earlier versions.

It makes only plain indexes, which every MongoDB-compatible server has. Several processes may prepare at once, and one
may repeat it after a crash.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pymongo import ASCENDING

from recollect.memory.stores.mongo.connection import (
    ATTACHMENTS,
    CLIENT_RECORDS,
    CONVERSATIONS,
    DOCUMENTS,
    ERASURES,
    FACTS,
    KEYS,
    MARK,
    PASSAGES,
    SCHEMA,
    THREADS,
    TOMBSTONES,
    MongoDatabase,
    Record,
)
from recollect.memory.stores.mongo.fact_document import from_fact, to_fact
from recollect.memory.stores.mongo.foreign import check_own
from recollect.memory.values.fact import Ended

_INDEXES: Mapping[str, Sequence[tuple[Sequence[str], bool]]] = {
    CONVERSATIONS: (
        (("user_id", "thread_id", "timestamp"), False),  # what other readers of such histories expect
        (("user_id", "thread_id", "timestamp", "position"), False),
        (("session_id", "timestamp"), False),
        (("user_id", "thread_id", "position"), True),
        (("user_id", "role", "thread_id"), False),
        (("user_id", "role", "timestamp", "_id"), False),
        (("user_id", "timestamp", "thread_id", "position"), False),
        (("user_id", "imported_id"), False),
        (("user_id", "name"), False),
        (("user_id", "absent", "thread_id"), False),
        (("role", "timestamp", "_id"), False),
        (("status", "committed"), False),
        (("status", "user_id", "committed"), False),
        (("user_id", "status", "committed"), False),
        (("user_id", "status", "timestamp", "committed"), False),
        (("indexed", "user_id", "_id"), False),
        (("indexed", "said"), False),
    ),
    FACTS: (
        (("user_id", "home", "state", "created_at", "id"), False),
        (("user_id", "home", "state", "until"), False),
        (("user_id", "home", "created_at", "id"), False),
        (("user_id", "replaces", "created_at", "id"), False),
        (("user_id", "state", "pinned", "importance", "confirmed_at"), False),
        (("pinned", "confirmed_at"), False),
        (("indexed", "user_id", "_id"), False),
        (("indexed", "state", "_id"), False),
    ),
    THREADS: (
        (("user_id",), False),
        (("closing", "user_id"), False),
        (("indexed", "user_id", "_id"), False),
    ),
    DOCUMENTS: (
        (("user_id", "created_at", "id"), False),
        (("user_id", "domain", "created_at", "id"), False),
        (("status", "updated_at"), False),
    ),
    PASSAGES: (
        (("user_id", "document_id", "version", "place"), False),
        (("user_id", "document_id", "version", "indexed", "place"), False),
        (("user_id", "id"), False),
        (("indexed", "user_id", "_id"), False),
    ),
    ATTACHMENTS: (
        (("user_id", "thread_id", "attached_at"), False),
        (("owner", "document_id"), False),
    ),
    ERASURES: ((("is_done", "touched_at"), False),),
    TOMBSTONES: (
        (("at", "_id"), False),
        (("user",), False),
    ),
    KEYS: (
        (("user_id",), False),
        (("created_at", "_id"), False),
    ),
    CLIENT_RECORDS: (
        (("user_id", "id"), False),
        (("user_id", "thread_id", "id"), False),
        (("expires_at",), False),
    ),
}
_FACTS_VERSION = 2


async def prepare(database: MongoDatabase) -> None:
    """Make the missing indexes, then migrate older documents.

    Raises:
        ConfigurationError: collections of these names hold another program's documents; nothing is made in them.
    """
    await check_own(database)
    for collection, indexes in _INDEXES.items():
        for fields, unique in indexes:
            keys = [(field, ASCENDING) for field in fields]
            await database[collection].create_index(keys, unique=unique)
    await _bring_facts_up(database)


async def _bring_facts_up(database: MongoDatabase) -> None:
    """Migrate facts of version 1: they had no revision, no point in the index, and an end only through `valid_to`."""
    if await database[SCHEMA].find_one({"_id": FACTS, "version": {"$gte": _FACTS_VERSION}}):
        return
    older: Record = {"revision": {"$exists": False}}
    async for document in database[FACTS].find(older):
        fact = to_fact(document)
        if fact.valid_to is not None:
            successor = await database[FACTS].find_one({"user_id": fact.user_id, "replaces": fact.id})
            fact = replace(fact, ended=Ended("turn", fact.valid_to, successor["turn_id"] if successor else None))
        await database[FACTS].replace_one({"_id": document["_id"], **older}, from_fact(fact))
    await database[SCHEMA].update_one({"_id": FACTS}, {"$set": {**MARK, "version": _FACTS_VERSION}}, upsert=True)
