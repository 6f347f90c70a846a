"""Runs short reads on the event loop itself, where a thread's hop would take longer than they do."""

import sqlite3
from typing import cast

from recollect.memory.stores.sqlite.connections.step_limit import StepLimit
from recollect.memory.stores.sqlite.connections.transaction import Parameters, Row

_NOT_NOW = {sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}


class ShortReads:
    """Reads through a connection of its own, which waits for nobody; closed by `close`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._limit = StepLimit(connection)

    def rows(self, sql: str, parameters: Parameters) -> list[Row] | None:
        """Return all rows of one query; None where it is not short, or another program holds it up for now.

        Raises:
            sqlite3.Error: the query failed.
        """
        self._limit.start()
        try:
            return cast("list[Row]", self._connection.execute(sql, parameters).fetchall())
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF in _NOT_NOW:  # the rest of the code says more about it
                return None
            raise

    def close(self) -> None:
        """Release the file."""
        self._connection.close()
