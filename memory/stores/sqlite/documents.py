"""Opening the SQLite documents."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from memory.documents import Documents
from memory.stores.sqlite.conversations import SqliteConversations
from memory.stores.sqlite.database import Database, open_database
from memory.stores.sqlite.facts import SqliteFacts
from memory.stores.sqlite.updates import SqliteUpdates
from memory.thread_queue import LocalThreadQueue


class SqliteDocuments:
    """All documents of one file."""

    name = "sqlite"

    def __init__(self, database: Database) -> None:
        self.conversations = SqliteConversations(database)
        self.facts = SqliteFacts(database)
        self.updates = SqliteUpdates(database)
        self.threads = LocalThreadQueue()
        self._database = database

    async def ping(self) -> None:
        """See the port."""
        await self._database.read("SELECT openings FROM state")


@asynccontextmanager
async def open_sqlite_documents(path: Path) -> AsyncGenerator[Documents]:
    """Open (or create) the documents in the file at `path`, and close them at the end.

    One process at a time may hold a file open: claims and the thread queue live in that process.

    Raises:
        ConfigurationError: the file cannot be opened, or is newer than this code.
    """
    async with open_database(path) as database:
        yield SqliteDocuments(database)
