"""Opens the MongoDB client and translates the driver's errors to ours, here alone.

Nothing needs a server until the first call: the first one that reaches it prepares the collections.
"""

import asyncio
import hashlib
import logging
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC
from typing import Any, TypeVar

from pymongo import AsyncMongoClient
from pymongo import lock as driver_lock
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.errors import InvalidName, PyMongoError
from pymongo.read_preferences import ReadPreference

from recollect.memory.values.errors import ConfigurationError, StoreUnavailable
from recollect.memory.values.filtering.keys import NO_KEYS, FilterKeys

Record = dict[str, Any]

CONVERSATIONS = "conversations"
FACTS = "user_facts"
THREADS = "threads"
DOCUMENTS = "documents"
PASSAGES = "passages"
ATTACHMENTS = "attachments"
CLAIMS = "claims"
QUEUE = "thread_queue"
PROCESSES = "processes"
RATE_LEASES = "rate_leases"
SCHEMA = "schema"
KEYS = "keys"
SESSIONS = "sessions"
CLIENT_RECORDS = "client_records"
ERASURES = "erasures"
TOMBSTONES = "tombstones"

MARK: Mapping[str, Any] = {"recollect": 1}
"""The field that each of our own documents carries; those of the first version do not."""


class MongoDatabase:
    """Our own collections of a database. Their names begin with `prefix`, which no other part of this package sees."""

    def __init__(self, whole: AsyncDatabase[Record], prefix: str = "") -> None:
        self.whole = whole
        self.prefix = prefix

    def __getitem__(self, collection: str) -> AsyncCollection[Record]:
        """Return our collection of this name, without the prefix."""
        return self.whole[f"{self.prefix}{collection}"]

    async def ping(self) -> None:
        """Ask the server whether it is up."""
        await self.whole.command("ping")


Prepare = Callable[[MongoDatabase], Awaitable[None]]

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")


async def _wait_in_task(waiting: Awaitable[Answer], seconds: float | None) -> Answer:
    """Wait as `asyncio.wait_for` does from Python 3.12 on: in the task itself."""
    async with asyncio.timeout(seconds):
        return await waiting


# Python 3.11 waits in another task. Of a call that is cancelled twice while it waits for a server, that task came to
# the driver's lock after the call had left, and nobody released it: every later call of the process waited for ever.
if sys.version_info < (3, 12):
    driver_lock.wait_for = _wait_in_task  # pyright: ignore[reportPrivateImportUsage] - its own name for asyncio's

_TIMEOUTS: Mapping[str, int] = {"serverSelectionTimeoutMS": 3_000, "connectTimeoutMS": 3_000, "timeoutMS": 5_000}


class MongoConnection:
    """Gives access to one database of one client. Whoever opened the client closes it.

    `keys` are those of which items keep terms.
    """

    def __init__(self, database: MongoDatabase, prepare: Prepare, keys: FilterKeys = NO_KEYS) -> None:
        self.keys = keys
        self._database = database
        self._prepare = prepare
        self._is_prepared = False
        self._preparing = asyncio.Lock()
        self._failure: PyMongoError | None = None

    @asynccontextmanager
    async def use(self) -> AsyncGenerator[MongoDatabase]:
        """Yield the database with its collections prepared; raise the driver's errors as StoreUnavailable."""
        try:
            if not self._is_prepared:
                await self._prepare_once()
            yield self._database
        except PyMongoError as error:
            # The driver's own message may quote a document, so only its type is logged.
            raise StoreUnavailable(
                f"The document store at MONGODB_URL cannot serve ({type(error).__name__}); check that it runs and lets "
                "this service in, then send the request again with the same turn_id."
            ) from error

    async def _prepare_once(self) -> None:
        """Prepare the collections once. Waiting calls share a failed attempt: one by one they would take minutes."""
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
async def open_connection(
    url: str,
    database: str,
    *,
    prepare: Prepare,
    prefix: str = "",
    pool: int = 100,
    keys: FilterKeys = NO_KEYS,
) -> AsyncGenerator[MongoConnection]:
    """Open a client for `url`, closed at exit. Timeouts and a pool's size in the URL go before the built-in ones.

    `prefix` begins the names of our collections. At most `pool` connections are open at once; a call that waits for
    one does so within its own total time.

    Raises:
        ConfigurationError: the URL or the database's name is not valid.
    """
    options = url.partition("?")[2].lower()
    chosen_here = {**_TIMEOUTS, "maxPoolSize": pool}
    bounds: dict[str, Any] = {name: value for name, value in chosen_here.items() if f"{name.lower()}=" not in options}
    try:
        client = AsyncMongoClient[Record](
            url, w="majority", journal=True, tz_aware=True, tzinfo=UTC, appname="recollect", **bounds
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
        yield MongoConnection(MongoDatabase(chosen, prefix), prepare, keys)


def hidden_key(*ids: str) -> str:
    """Return a document's key that hides its `ids`: for documents that may outlive an erased user's data."""
    return hashlib.sha256("/".join(ids).encode()).hexdigest()[:40]
