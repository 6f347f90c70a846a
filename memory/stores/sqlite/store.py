"""Opens the store in SQLite."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from typing_extensions import override

from recollect.memory.ports.store import Store
from recollect.memory.stores.sqlite.client_records import SqliteClientRecords
from recollect.memory.stores.sqlite.conversations import SqliteConversations
from recollect.memory.stores.sqlite.counts import SqliteCounts
from recollect.memory.stores.sqlite.database import SqliteDatabase, open_database
from recollect.memory.stores.sqlite.documents import SqliteDocuments
from recollect.memory.stores.sqlite.erasures import SqliteErasures
from recollect.memory.stores.sqlite.facts import SqliteFacts
from recollect.memory.stores.sqlite.filter_terms import SqliteFilterTerms
from recollect.memory.stores.sqlite.imports import SqliteImports
from recollect.memory.stores.sqlite.keys import SqliteKeys
from recollect.memory.stores.sqlite.sessions import SqliteSessions
from recollect.memory.stores.sqlite.single_record import SingleRecord
from recollect.memory.stores.sqlite.threads import SqliteThreads
from recollect.memory.stores.sqlite.timeline import SqliteTimeline
from recollect.memory.stores.sqlite.updates import SqliteUpdates
from recollect.memory.stores.text_record import RecordedChoices
from recollect.memory.stores.thread_queue import LocalThreadQueue
from recollect.memory.values.filtering.keys import NO_KEYS, FilterKeys

_BATCH = 500

# Seeks from one user to the next, and so reads no table as a whole.
USERS = """
WITH RECURSIVE found(user_id) AS (
    SELECT :after
    UNION ALL
    SELECT (SELECT min(next) FROM (
        SELECT (SELECT min(user_id) FROM messages WHERE user_id > found.user_id) AS next
        UNION ALL SELECT (SELECT min(user_id) FROM facts WHERE user_id > found.user_id)
        UNION ALL SELECT (SELECT min(user_id) FROM threads WHERE user_id > found.user_id)
        UNION ALL SELECT (SELECT min(user_id) FROM documents WHERE user_id > found.user_id)
    ))
    FROM found WHERE found.user_id IS NOT NULL LIMIT :limit + 1
)
SELECT user_id FROM found WHERE user_id > :after
"""


class SqliteStore(Store):
    """Implements Store over one SQLite file."""

    name = "sqlite"

    def __init__(self, database: SqliteDatabase, keys: FilterKeys) -> None:
        self.conversations = SqliteConversations(database, keys)
        self.timeline = SqliteTimeline(database, keys)
        self.imports = SqliteImports(database, keys)
        self.facts = SqliteFacts(database, keys)
        self.updates = SqliteUpdates(database)
        self.threads = SqliteThreads(database)
        self.counts = SqliteCounts(database)
        self.documents = SqliteDocuments(database, keys)
        self.queue = LocalThreadQueue()
        self.keys = SqliteKeys(database)
        self.rate_leases = None
        self.sessions = SqliteSessions(database)
        self.client_records = SqliteClientRecords(database)
        self.embedder_choices = RecordedChoices(SingleRecord(database, "embedder_choice"))
        self.filter_terms = SqliteFilterTerms(database, keys)
        self.erasures = SqliteErasures(database)
        self._database = database

    @override
    async def users(self) -> AsyncIterator[Sequence[str]]:
        after = ""
        while rows := await self._database.read(USERS, {"after": after, "limit": _BATCH}):
            yield [user_id for (user_id,) in rows]
            after = rows[-1][0]

    @override
    async def ping(self) -> None:
        await self._database.read("SELECT openings FROM state")


@asynccontextmanager
async def open_sqlite_store(path: Path, *, keys: FilterKeys = NO_KEYS) -> AsyncGenerator[Store]:
    """Open or create the store in the file at `path`, and close it at exit. It keeps terms of the `keys`.

    One process at a time may hold a file open: claims and the thread queue live in that process.

    Raises:
        ConfigurationError: the file cannot be opened, or is newer than this code.
    """
    async with open_database(path) as database:
        yield SqliteStore(database, keys)
