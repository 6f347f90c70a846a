"""Tells collections of other programs from our own by their documents, so that the two never mix.

Another agent's database often has `conversations` and `user_facts` too. A document of ours carries the mark, or, where
the first version wrote it, a field that all documents of its collection had.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence

from pymongo import ASCENDING, DESCENDING

from recollect.memory.stores.mongo.connection import (
    ATTACHMENTS,
    CLIENT_RECORDS,
    CONVERSATIONS,
    DOCUMENTS,
    FACTS,
    KEYS,
    MARK,
    PASSAGES,
    SESSIONS,
    THREADS,
    MongoDatabase,
    Record,
)
from recollect.memory.values.errors import ConfigurationError

logger = logging.getLogger(__name__)

IMPORTABLE = (CONVERSATIONS, "messages_history", "messages", FACTS)
"""Collections that `recollect import` reads messages or facts from."""
_ALWAYS: Mapping[str, str] = {
    CONVERSATIONS: "position",
    FACTS: "home",
    THREADS: "revision",
    DOCUMENTS: "revision",
    PASSAGES: "place",
    ATTACHMENTS: "attached_at",
    KEYS: "digest",
    SESSIONS: "started_at",
    CLIENT_RECORDS: "expires_at",
}
_SAMPLE = 20
_NO_TEXTS: Record = {"content": False, "update": False, "result": False, "text": False}


def is_own(collection: str, document: Mapping[str, object]) -> bool:
    """Tell whether `document`, of our collection of this name (without the prefix), is ours."""
    return any(name in document for name in MARK) or _ALWAYS[collection] in document


async def check_own(database: MongoDatabase) -> None:
    """Check the collections that we are about to use, and log the names of those that can be imported.

    Raises:
        ConfigurationError: some of them hold another program's documents.
    """
    present = set(await database.whole.list_collection_names())
    ours = [name for name in _ALWAYS if f"{database.prefix}{name}" in present]
    theirs = [name for name, own in zip(ours, await _are_own(database, ours), strict=True) if not own]
    if theirs:
        raise ConfigurationError(_sentence(database, theirs))
    await _tell_importable(database, sorted(present))


async def _are_own(database: MongoDatabase, collections: Sequence[str]) -> list[bool]:
    return list(await asyncio.gather(*(_holds_own(database, collection) for collection in collections)))


async def _holds_own(database: MongoDatabase, collection: str) -> bool:
    """Tell whether a small sample of the collection is ours: its first documents, and the lowest and highest `_id`.

    MongoDB sorts ids by type, so one foreign ObjectId among a million texts of ours is at an end, and is found.
    """
    documents = database[collection]
    some, first, last = await asyncio.gather(
        documents.find({}, _NO_TEXTS).limit(_SAMPLE).to_list(),
        documents.find_one({}, _NO_TEXTS, sort=[("_id", ASCENDING)]),
        documents.find_one({}, _NO_TEXTS, sort=[("_id", DESCENDING)]),
    )
    return all(is_own(collection, each) for each in (*some, first, last) if each is not None)


async def _tell_importable(database: MongoDatabase, present: Sequence[str]) -> None:
    """Log a warning where we have no messages but another program has: its users would find an empty memory."""
    if await database[CONVERSATIONS].find_one({}, {"_id": True}) is not None:
        return
    own = {f"{database.prefix}{name}" for name in _ALWAYS}
    found = [name for name in IMPORTABLE if name in present and name not in own]
    if found:
        logger.warning(
            "the database holds another program's memory, which can be imported",
            extra={"action": "importable", "collections": found, "command": _command(database)},
        )


def _sentence(database: MongoDatabase, theirs: Sequence[str]) -> str:
    """Return the sentence that names the foreign collections and says what to do."""
    named = ", ".join(f"{database.prefix}{name}" for name in theirs)
    bring = f", then bring them in: {_command(database)}" if set(theirs) & set(IMPORTABLE) else ""
    return (
        f"MONGODB_DATABASE {database.whole.name} holds another program's collections ({named}), with which Recollect's "
        "own must not mix: set MONGODB_PREFIX (to recollect_, say) or another MONGODB_DATABASE, start again"
        f"{bring}."
    )


def _command(database: MongoDatabase) -> str:
    """Return the command that imports, with the server's address as far as it is known, without any password."""
    host, port = next(iter(sorted(database.whole.client.nodes)), ("localhost", 27017))
    return f"recollect import mongodb://{host}:{port}/{database.whole.name}"
