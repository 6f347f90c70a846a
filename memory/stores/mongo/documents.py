"""Opening the MongoDB documents."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import uuid4

from memory.documents import Documents
from memory.stores.mongo.connection import CONVERSATIONS, DOCUMENTS, FACTS, THREADS, Connection, open_connection
from memory.stores.mongo.conversations import MongoConversations
from memory.stores.mongo.counts import MongoCounts
from memory.stores.mongo.erasures import MongoErasures
from memory.stores.mongo.facts import MongoFacts
from memory.stores.mongo.imports import MongoImports
from memory.stores.mongo.keys import MongoKeys
from memory.stores.mongo.library import MongoLibrary
from memory.stores.mongo.queue import LEASE, MongoThreadQueue
from memory.stores.mongo.schema import prepare
from memory.stores.mongo.threads import MongoThreads
from memory.stores.mongo.timeline import MongoTimeline
from memory.stores.mongo.updates import MongoUpdates
from memory.stores.mongo.users import users_of_any

_BATCH_USERS = 500


class MongoDocuments:
    """All documents of one database."""

    name = "mongodb"

    def __init__(self, connection: Connection, queue: MongoThreadQueue) -> None:
        self.conversations = MongoConversations(connection)
        self.timeline = MongoTimeline(connection)
        self.imports = MongoImports(connection)
        self.facts = MongoFacts(connection)
        self.updates = MongoUpdates(connection)
        self.threads = MongoThreads(connection)
        self.counts = MongoCounts(connection)
        self.library = MongoLibrary(connection)
        self.queue = queue
        self.keys = MongoKeys(connection)
        self.erasures = MongoErasures(connection)
        self._connection = connection

    async def users(self) -> AsyncIterator[Sequence[str]]:
        """See the port."""
        after = ""
        while True:
            async with self._connection.use() as database:
                holders = (CONVERSATIONS, FACTS, THREADS, DOCUMENTS)
                users = await users_of_any(database, holders, limit=_BATCH_USERS, after=after)
            if not users:
                return
            yield users
            after = users[-1]

    async def ping(self) -> None:
        """See the port."""
        async with self._connection.use() as database:
            await database.command("ping")


@asynccontextmanager
async def open_mongo_documents(
    url: str, database: str, *, owner: str | None = None, lease: timedelta = LEASE
) -> AsyncGenerator[Documents]:
    """Open the documents in `database` of the server at `url`, and close the client at the end.

    The server need not answer yet. `owner` names this process in the thread queue (a new name by default); a process
    that shows no life for `lease` loses its place there.

    Raises:
        ConfigurationError: the URL or the database's name is not valid.
    """
    async with open_connection(url, database, prepare=prepare) as connection:
        queue = MongoThreadQueue(connection, owner=owner or uuid4().hex, lease=lease)
        try:
            yield MongoDocuments(connection, queue)
        finally:
            await queue.close()
