"""The MongoDB client, the indexes, and the one place where the driver's errors become ours.

Nothing here needs a server until the first call: the indexes are made by the first one that reaches it. Only plain
indexes and basic operators are used, which every MongoDB-compatible server has.
"""

import asyncio
import hashlib
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC
from typing import Any

from pymongo import ASCENDING, AsyncMongoClient
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.errors import InvalidName, PyMongoError
from pymongo.read_preferences import ReadPreference

from memory.errors import ConfigurationError, StoreUnavailable

Document = dict[str, Any]
Database = AsyncDatabase[Document]

CONVERSATIONS = "conversations"
FACTS = "user_facts"
CLAIMS = "claims"
THREADS = "threads"
PROCESSES = "processes"

logger = logging.getLogger(__name__)

_TIMEOUTS: Mapping[str, int] = {"serverSelectionTimeoutMS": 3_000, "connectTimeoutMS": 3_000, "timeoutMS": 5_000}

_INDEXES: Mapping[str, Sequence[tuple[Sequence[str], bool]]] = {
    CONVERSATIONS: (
        (("user_id", "thread_id", "timestamp"), False),
        (("session_id", "timestamp"), False),
        (("user_id", "thread_id", "position"), True),
        (("user_id", "role", "thread_id"), False),
        (("status", "committed"), False),
        (("user_id", "status", "committed"), False),
        (("indexed", "user_id", "_id"), False),
    ),
    FACTS: ((("user_id", "home", "valid_to", "created_at", "id"), False),),
}


class Connection:
    """One database of one client. Whoever opened the client closes it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._has_indexes = False
        self._indexing = asyncio.Lock()
        self._failure: PyMongoError | None = None

    @asynccontextmanager
    async def use(self) -> AsyncGenerator[Database]:
        """The database with its indexes made; errors of the driver leave as StoreUnavailable."""
        try:
            if not self._has_indexes:
                await self._make_indexes()
            yield self._database
        except PyMongoError as error:
            # The driver's own message may quote a document, so only its kind is told.
            raise StoreUnavailable(
                f"The document store at MONGODB_URL cannot serve ({type(error).__name__}); check that it runs and lets "
                "this service in, then send the request again with the same turn_id."
            ) from error

    async def _make_indexes(self) -> None:
        """Make them once. Calls that wait for an attempt share its failure: one by one they would wait for minutes."""
        known = self._failure
        async with self._indexing:
            if self._has_indexes:
                return
            if self._failure is not None and self._failure is not known:
                raise self._failure
            try:
                await self._create_indexes()
            except PyMongoError as error:
                self._failure = error
                raise
            self._has_indexes = True
            logger.info("MongoDB indexes are in place", extra={"action": "mongo_indexes"})

    async def _create_indexes(self) -> None:
        for collection, indexes in _INDEXES.items():
            for fields, unique in indexes:
                keys = [(field, ASCENDING) for field in fields]
                await self._database[collection].create_index(keys, unique=unique)


@asynccontextmanager
async def open_connection(url: str, database: str) -> AsyncGenerator[Connection]:
    """A client for `url`, closed at the end. Time limits that the URL names go before the built-in ones.

    Raises:
        ConfigurationError: the URL or the database's name is not valid.
    """
    options = url.partition("?")[2].lower()
    timeouts: dict[str, Any] = {name: value for name, value in _TIMEOUTS.items() if f"{name.lower()}=" not in options}
    try:
        client = AsyncMongoClient[Document](
            url, w="majority", journal=True, tz_aware=True, tzinfo=UTC, appname="recollect", **timeouts
        )
    except (PyMongoError, ValueError, TypeError):
        # Not chained: the driver's message may quote the address, and with it the password.
        raise ConfigurationError(
            "MONGODB_URL is not a valid MongoDB address; it should read like mongodb://user:password@host:27017/ "
            "(with special characters in the password percent-encoded)."
        ) from None
    async with client:
        try:
            chosen = client.get_database(database, read_preference=ReadPreference.PRIMARY)
        except InvalidName:
            raise ConfigurationError(
                "MONGODB_DATABASE is not a valid database name; use letters, digits, - and _."
            ) from None
        yield Connection(chosen)


def key_of(*ids: str) -> str:
    """A document's key made of ids, from which they cannot be read: for what may outlive an erased user's data."""
    return hashlib.sha256("/".join(ids).encode()).hexdigest()[:40]
