"""Holds the three connections to the SQLite file and translates its errors to ours, here alone.

Writes share one connection and are single statements, which are committed in groups (`connections/`): a caller that is
cancelled leaves a statement done or not done, never a transaction open. Reads have connections of their own (WAL), so
that none waits for a write's fsync: one for a service's short reads on the event loop, one for the others in a thread.
Rows are fetched at once; no cursor leaves its thread.
"""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import cast

import aiosqlite

from recollect.memory.background.short_calls import SHORT_CALLS
from recollect.memory.stores.private_folder import make_folder
from recollect.memory.stores.sqlite.connections.group_commit import GroupCommit
from recollect.memory.stores.sqlite.connections.short_reads import ShortReads
from recollect.memory.stores.sqlite.connections.transaction import BUSY_SECONDS, Parameters, Row
from recollect.memory.stores.sqlite.schema import OLDEST_SQLITE, prepare
from recollect.memory.values.errors import ConfigurationError, StoreUnavailable

_MOST_IN_MEMORY = 100_000_000
_ROWS_AT_ONCE = 64  # that a cursor would fetch: aiosqlite wants the number, though rows are fetched all at once here
_PRAGMAS = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA secure_delete = ON;
PRAGMA temp_store = MEMORY;
"""
_TRUNCATE = "PRAGMA wal_checkpoint(TRUNCATE)"


class SqliteDatabase:
    """The open file. `opening` counts its openings so far, with this one."""

    def __init__(self, writer: GroupCommit, short: ShortReads, reader: aiosqlite.Connection, opening: int) -> None:
        self.opening = opening
        self._writer = writer
        self._short = short
        self._reader = reader
        self._is_closed = False

    async def read(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """Return all rows of one query, which sees every write acknowledged before."""
        if SHORT_CALLS.on_loop:
            await asyncio.sleep(0)  # whoever reads much in a row leaves the loop to others in between
        self._check_open()
        with _translated():
            found = self._short.rows(sql, parameters) if SHORT_CALLS.on_loop else None
            if found is None:
                found = cast("list[Row]", await self._reader.execute_fetchall(sql, parameters))
            return found

    async def write(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """Run one writing statement and return its rows; the write is durable by then."""
        self._check_open()
        with _translated():
            return await self._writer.run(sql, parameters)

    async def delete(self, sql: str, parameters: Parameters = ()) -> int:
        """Run one DELETE that returns 1 or 0 for each row, and return their sum. `scrub` removes the bytes."""
        return sum(count for (count,) in await self.write(sql, parameters))

    async def erase(self, sql: str, parameters: Parameters = ()) -> int:
        """Run a DELETE as `delete` does and remove the bytes, except copies in split pages (see `scrub`)."""
        deleted = await self.delete(sql, parameters)
        await self.cut_off_log()
        return deleted

    async def cut_off_log(self) -> None:
        """Remove from the disk what earlier writes have deleted or replaced.

        `secure_delete` has overwritten it in the file; this checkpoint truncates the log, which still holds it.

        Raises:
            StoreUnavailable: another program's reading holds it up. The writes are done all the same.
        """
        (busy, *_), *_ = await self._alone(_TRUNCATE)
        if busy:
            raise StoreUnavailable(
                "Deleted, but the bytes are still in the log because another program reads the database in DATA_DIR; "
                "close it and delete again."
            )

    async def scrub(self) -> None:
        """Rewrite the whole file, so that it holds only stored data. Takes about 5 ms for each MB.

        Pages that were split when a row grew keep copies of other rows and keys, which `secure_delete` does not reach.
        Larger files are copied through an unlinked temporary file in place of memory.

        Raises:
            StoreUnavailable: the disk is full, or another program's reading holds it up.
        """
        ((pages,),) = await self._alone("PRAGMA page_count")
        ((size,),) = await self._alone("PRAGMA page_size")
        is_large = pages * size > _MOST_IN_MEMORY
        if is_large:
            await self._alone("PRAGMA temp_store = FILE")
        try:
            await self._alone("VACUUM")
        finally:
            if is_large:
                await self._alone("PRAGMA temp_store = MEMORY")
        await self.cut_off_log()

    def close(self) -> None:
        """Refuse all later calls."""
        self._is_closed = True

    async def _alone(self, sql: str) -> list[Row]:
        """Run a statement that no transaction may hold, after the writes before it."""
        self._check_open()
        with _translated():
            return await self._writer.run(sql, joins=False)

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreUnavailable("The database in DATA_DIR is closed; start the service again.")


@contextmanager
def _translated() -> Generator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StoreUnavailable(
            f"The database in DATA_DIR cannot serve ({error}); "
            "check the disk's space and health, then send the request again."
        ) from error


@asynccontextmanager
async def open_database(path: Path) -> AsyncGenerator[SqliteDatabase]:
    """Open the file, creating it (and its folder) where there is none.

    Raises:
        ConfigurationError: it cannot be opened, is no SQLite database, or is newer than this code.
    """
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise ConfigurationError(
            f"This Python brings SQLite {sqlite3.sqlite_version}; 3.37 or newer is needed, or set MONGODB_URL."
        )
    async with AsyncExitStack() as stack:
        try:
            opening = await asyncio.to_thread(_prepare_file, path)
            writer = GroupCommit(await asyncio.to_thread(_connect, path))
            stack.push_async_callback(writer.close)
            short = ShortReads(await asyncio.to_thread(_connect_short, path))
            stack.callback(short.close)
            reader = aiosqlite.Connection(lambda: _connect_reading(path), iter_chunk_size=_ROWS_AT_ONCE)
            await stack.enter_async_context(reader)
        except (sqlite3.Error, OSError) as error:
            raise ConfigurationError(
                f"The database {path} in DATA_DIR cannot be opened ({error}); restore it from a backup, "
                "or choose another DATA_DIR."
            ) from error
        database = SqliteDatabase(writer, short, reader, opening)
        stack.callback(database.close)
        yield database


def _connect_short(path: Path) -> sqlite3.Connection:
    """Open the connection for short reads; where one would have to wait, the connection for the others does."""
    connection = _connect_reading(path)
    connection.execute("PRAGMA busy_timeout = 0")
    return connection


def _connect_reading(path: Path) -> sqlite3.Connection:
    connection = _connect(path)
    connection.execute("PRAGMA query_only = ON")
    return connection


def _connect(path: Path) -> sqlite3.Connection:
    """Open a connection, which is used in one thread at a time, though not in this one."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=BUSY_SECONDS, check_same_thread=False)
    connection.executescript(_PRAGMAS)
    # SQLite's own lower() knows the letters of ASCII alone.
    connection.create_function("casefold", 1, str.casefold, deterministic=True)
    return connection


def _prepare_file(path: Path) -> int:
    make_folder(path.parent)
    path.touch(mode=0o600)  # Conversations are private; SQLite gives its log and index the same mode.
    connection = sqlite3.connect(path, isolation_level=None, timeout=BUSY_SECONDS)
    try:
        connection.executescript(_PRAGMAS)
        return prepare(connection, path)
    finally:
        connection.close()
