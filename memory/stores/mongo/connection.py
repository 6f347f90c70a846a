"""The MongoDB client, and the one place where the driver's errors become ours.

Nothing here needs a server until the first call: the collections are prepared by the first one that reaches it.
"""

import asyncio
import hashlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC
from typing import Any

from pymongo import AsyncMongoClient
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.errors import InvalidName, PyMongoError
from pymongo.read_preferences import ReadPreference

from memory.errors import ConfigurationError, StoreUnavailable

Document = dict[str, Any]
Database = AsyncDatabase[Document]

CONVERSATIONS = "conversations"
FACTS = "user_facts"
THREADS = "threads"
DOCUMENTS = "documents"
PASSAGES = "passages"
ATTACHMENTS = "attachments"
CLAIMS = "claims"
QUEUE = "thread_queue"
PROCESSES = "processes"
SCHEMA = "schema"
KEYS = "keys"
ERASURES = "erasures"
TOMBSTONES = "tombstones"

Prepare = Callable[[Database], Awaitable[None]]

logger = logging.getLogger(__name__)

_TIMEOUTS: Mapping[str, int] = {"serverSelectionTimeoutMS": 3_000, "connectTimeoutMS": 3_000, "timeoutMS": 5_000}


class Connection:
    """One database of one client. Whoever opened the client closes it."""

    def __init__(self, database: Database, prepare: Prepare) -> None:
        self._database = database
        self._prepare = prepare
        self._is_prepared = False
        self._preparing = asyncio.Lock()
        self._failure: PyMongoError | None = None

    @asynccontextmanager
    async def use(self) -> AsyncGenerator[Database]:
        """The database with its collections prepared; errors of the driver leave as StoreUnavailable."""
        try:
            if not self._is_prepared:
                await self._prepare_once()
            yield self._database
        except PyMongoError as error:
            # The driver's own message may quote a document, so only its kind is told.
            raise StoreUnavailable(
                f"The document store at MONGODB_URL cannot serve ({type(error).__name__}); check that it runs and lets "
                "this service in, then send the request again with the same turn_id."
            ) from error

    async def _prepare_once(self) -> None:
        """Calls that wait for an attempt share its failure: one by one they would wait for minutes."""
        known = self._failure
        async with self._preparing:
            if self._is_prepared:
                return
            if self._failure is not None and self._failure is not known:
                raise self._failure
            try:
                await self._prepare(self._database)
            except PyMongoError as error:
                self._failure = error
                raise
            self._is_prepared = True
            logger.info("MongoDB indexes are in place", extra={"action": "mongo_indexes"})


@asynccontextmanager
async def open_connection(url: str, database: str, *, prepare: Prepare) -> AsyncGenerator[Connection]:
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
        yield Connection(chosen, prepare)


def key_of(*ids: str) -> str:
    """A document's key made of ids, from which they cannot be read: for what may outlive an erased user's data."""
    return hashlib.sha256("/".join(ids).encode()).hexdigest()[:40]
