"""Opens the store in MongoDB."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import uuid4

from typing_extensions import override

from recollect.memory.ports.store import Store
from recollect.memory.stores.mongo.callers.rate_leases import MongoRateLeases
from recollect.memory.stores.mongo.client_records import MongoClientRecords
from recollect.memory.stores.mongo.connection import (
    CONVERSATIONS,
    DOCUMENTS,
    FACTS,
    THREADS,
    MongoConnection,
    open_connection,
)
from recollect.memory.stores.mongo.conversations import MongoConversations
from recollect.memory.stores.mongo.counts import MongoCounts
from recollect.memory.stores.mongo.documents import MongoDocuments
from recollect.memory.stores.mongo.erasures import MongoErasures
from recollect.memory.stores.mongo.facts import MongoFacts
from recollect.memory.stores.mongo.filtering.filter_terms import MongoFilterTerms
from recollect.memory.stores.mongo.imports import MongoImports
from recollect.memory.stores.mongo.keys import MongoKeys
from recollect.memory.stores.mongo.leaps import users_of_any
from recollect.memory.stores.mongo.queue import LEASE, MongoThreadQueue
from recollect.memory.stores.mongo.records.schema_record import SchemaRecord
from recollect.memory.stores.mongo.schema import prepare
from recollect.memory.stores.mongo.sessions import MongoSessions
from recollect.memory.stores.mongo.threads import MongoThreads
from recollect.memory.stores.mongo.timeline import MongoTimeline
from recollect.memory.stores.mongo.updates import MongoUpdates
from recollect.memory.stores.text_record import RecordedChoices
from recollect.memory.values.filtering.keys import NO_KEYS, FilterKeys

_BATCH_USERS = 500


class MongoStore(Store):
    """Implements Store over one MongoDB database."""

    name = "mongodb"

    def __init__(self, connection: MongoConnection, queue: MongoThreadQueue) -> None:
        self.conversations = MongoConversations(connection)
        self.timeline = MongoTimeline(connection)
        self.imports = MongoImports(connection)
        self.facts = MongoFacts(connection)
        self.updates = MongoUpdates(connection)
        self.threads = MongoThreads(connection)
        self.counts = MongoCounts(connection)
        self.documents = MongoDocuments(connection)
        self.queue = queue
        self.keys = MongoKeys(connection)
        self.rate_leases = MongoRateLeases(connection)
        self.sessions = MongoSessions(connection)
        self.client_records = MongoClientRecords(connection)
        self.filter_terms = MongoFilterTerms(connection)
        self.embedder_choices = RecordedChoices(SchemaRecord(connection, "embedders"))
        self.erasures = MongoErasures(connection)
        self._connection = connection

    @override
    async def users(self) -> AsyncIterator[Sequence[str]]:
        after = ""
        while True:
            async with self._connection.use() as database:
                holders = (CONVERSATIONS, FACTS, THREADS, DOCUMENTS)
                users = await users_of_any(database, holders, limit=_BATCH_USERS, after=after)
            if not users:
                return
            yield users
            after = users[-1]

    @override
    async def ping(self) -> None:
        async with self._connection.use() as database:
            await database.ping()


@asynccontextmanager
async def open_mongo_store(  # noqa: PLR0913 - what a connection, its collections and its queue need
    url: str,
    database: str,
    *,
    prefix: str = "",
    pool: int = 100,
    owner: str | None = None,
    lease: timedelta = LEASE,
    keys: FilterKeys = NO_KEYS,
) -> AsyncGenerator[Store]:
    """Open the store in `database` of the server at `url`, and close the client at exit.

    The server need not answer yet. `prefix` begins the names of our collections, `pool` bounds this
    process's connections. It keeps terms of the `keys`. `owner` names this process in the
    thread queue (a new name by default); a process that does not renew its `lease` loses its place there.

    Raises:
        ConfigurationError: the URL or the database's name is not valid.
    """
    async with open_connection(url, database, prepare=prepare, prefix=prefix, pool=pool, keys=keys) as connection:
        queue = MongoThreadQueue(connection, owner=owner or uuid4().hex, lease=lease)
        try:
            yield MongoStore(connection, queue)
        finally:
            await queue.close()
