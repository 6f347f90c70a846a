"""Prepares the collections before their first use: makes indexes and migrates documents of earlier versions.

It makes only plain indexes, which every MongoDB-compatible server has. Several processes may prepare at once, and one
may repeat it after a crash.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from pymongo import ASCENDING, UpdateOne

from recollect.memory.language.said_hash import said_hash
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
    RATE_LEASES,
    SCHEMA,
    SESSIONS,
    THREADS,
    TOMBSTONES,
    MongoDatabase,
    Record,
)
from recollect.memory.stores.mongo.foreign import check_own
from recollect.memory.values.errors import ConfigurationError

_INDEXES: Mapping[str, Sequence[tuple[Sequence[str], bool]]] = {
    CONVERSATIONS: (
        (("user_id", "thread_id", "timestamp"), False),  # what other readers of such histories expect
        (("user_id", "thread_id", "timestamp", "position"), False),
        (("session_id", "timestamp"), False),
        (("user_id", "thread_id", "position"), True),
        (("user_id", "role", "thread_id"), False),
        (("user_id", "role", "_id"), False),
        (("user_id", "role", "timestamp", "_id"), False),
        (("user_id", "timestamp", "thread_id", "position"), False),
        (("user_id", "imported_id"), False),
        (("user_id", "name"), False),
        (("user_id", "said_hash", "timestamp"), False),
        (("user_id", "absent", "thread_id"), False),
        (("role", "timestamp", "_id"), False),
        (("status", "committed"), False),
        (("status", "user_id", "committed"), False),
        (("user_id", "status", "committed"), False),
        (("user_id", "status", "timestamp", "committed"), False),
        (("indexed", "user_id", "_id"), False),
        (("indexed", "said"), False),
        (("further_said",), False),
        (("user_id", "terms"), False),
        (("user_id", "terms_by"), False),
    ),
    FACTS: (
        (("user_id", "home", "state", "created_at", "id"), False),
        (("user_id", "home", "state", "until"), False),
        (("user_id", "key", "home", "state", "until"), False),
        (("user_id", "home", "created_at", "id"), False),
        (("user_id", "replaces", "created_at", "id"), False),
        (("user_id", "state", "pinned", "importance", "confirmed_at"), False),
        (("user_id", "_id"), False),
        (("pinned", "confirmed_at"), False),
        (("indexed", "user_id", "_id"), False),
        (("indexed", "state", "_id"), False),
        (("user_id", "terms"), False),
        (("user_id", "terms_by"), False),
    ),
    THREADS: (
        (("user_id", "_id"), False),
        (("closing", "user_id"), False),
        (("indexed", "user_id", "_id"), False),
    ),
    DOCUMENTS: (
        (("user_id", "created_at", "id"), False),
        (("user_id", "domain", "created_at", "id"), False),
        (("status", "updated_at"), False),
        (("user_id", "terms"), False),
        (("user_id", "terms_by"), False),
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
    SESSIONS: (
        (("user_id",), False),
        (("name", "started_at"), False),
        (("expires_at",), False),
    ),
    KEYS: (
        (("user_id",), False),
        (("created_at", "_id"), False),
    ),
    RATE_LEASES: ((("full_at",), False),),
    CLIENT_RECORDS: (
        (("user_id", "id"), False),
        (("user_id", "thread_id", "id"), False),
        (("expires_at",), False),
    ),
}
Migration = Callable[[MongoDatabase], Awaitable[None]]
FIRST_VERSION = 2
"""The oldest version that is opened; the one below it was never released."""
_BATCH = 500


async def _hash_texts(database: MongoDatabase) -> None:
    """Add the hashes of what users said."""
    query: Record = {"role": "user", "absent": {"$ne": True}}
    while page := await database[CONVERSATIONS].find(query, {"content": True}).sort("_id").limit(_BATCH).to_list():
        hashed = [UpdateOne({"_id": one["_id"]}, {"$set": {"said_hash": said_hash(one["content"])}}) for one in page]
        await database[CONVERSATIONS].bulk_write(hashed, ordered=False)
        query["_id"] = {"$gt": page[-1]["_id"]}


MIGRATIONS: Sequence[Migration] = (_hash_texts,)
"""Each brings the documents up by one version from `FIRST_VERSION` on; several processes may run one at once."""


async def prepare(database: MongoDatabase) -> None:
    """Make the missing indexes, then migrate older documents.

    Raises:
        ConfigurationError: collections of these names hold another program's documents, or those of a version before
            `FIRST_VERSION`; nothing is made in them.
    """
    await check_own(database)
    await _check_version(database)
    for collection, indexes in _INDEXES.items():
        for fields, unique in indexes:
            keys = [(field, ASCENDING) for field in fields]
            await database[collection].create_index(keys, unique=unique)
    await migrate(database, MIGRATIONS)


async def migrate(database: MongoDatabase, migrations: Sequence[Migration]) -> None:
    """Run those of the `migrations` that the documents have not been through, in order, and record the version."""
    found = await database[SCHEMA].find_one({"_id": FACTS})
    version = FIRST_VERSION if found is None else found["version"]
    last = FIRST_VERSION + len(migrations)
    for migration in migrations[version - FIRST_VERSION :]:
        await migration(database)
    if found is None or version < last:
        await database[SCHEMA].update_one({"_id": FACTS}, {"$set": {**MARK, "version": last}}, upsert=True)


async def _check_version(database: MongoDatabase) -> None:
    """Refuse facts of version 1, which had no revision; the version was recorded only from the next one on."""
    if await database[SCHEMA].find_one({"_id": FACTS, "version": {"$gte": FIRST_VERSION}}):
        return
    if await database[FACTS].find_one({"revision": {"$exists": False}}):
        raise ConfigurationError(
            f"The collection {database.prefix}{FACTS} was written by an earlier version (schema 1, this one opens "
            f"{FIRST_VERSION} and later); run `recollect export` of the version before, then `recollect import` here "
            "with another MONGODB_DATABASE or MONGODB_PREFIX."
        )
