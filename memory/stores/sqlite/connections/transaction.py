"""Runs several writing statements in one transaction, each in a savepoint of its own."""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from recollect.memory.stores.sqlite.connections.step_limit import StepLimit

Row = tuple[Any, ...]
Parameters = Sequence[Any] | Mapping[str, Any]
Statement = tuple[str, Parameters]
Outcome = list[Row] | Exception

MOST_AT_ONCE = 40
"""How many statements may run on the event loop before a commit; each takes 50 microseconds."""
MOST_CHARACTERS = 1_000_000
"""Statements with more text than this, all together, are left to the thread: to store so much takes 0.3 to 1.4 ms."""
BUSY_SECONDS = 2.0
"""How long a statement waits in a thread while another program writes."""


class _UndoneError(Exception):
    """SQLite has rolled the whole transaction back, because the disk is full, say."""


class Transactions:
    """Runs statements on a connection in autocommit, which is used by one thread at a time.

    In a thread of its own (`run`), each of a statement's steps would wait for the interpreter, which a busy event loop
    gives up every millisecond only. So those that are short run on the loop (`begin`), and the thread has one step
    left: the commit with its fsync (`commit`).
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._waits: bool | None = None
        self._limit = StepLimit(connection)

    def begin(self, statements: Sequence[Statement]) -> list[Outcome] | None:
        """Run the statements in a transaction that stays open for `commit`, and return each one's rows or its error.

        None, with nothing changed, where they are long, or another program writes: they are to be `run` in a thread.
        """
        if _characters(statements) > MOST_CHARACTERS:
            return None
        try:
            self._wait_for_others(False)
            self._limit.start()
            self._connection.execute("BEGIN IMMEDIATE")
            outcomes = self._each(statements)
        except (sqlite3.Error, _UndoneError):
            self._undo()
            return None
        finally:
            self._limit.stop()
        if self._limit.is_passed:
            self._undo()
            return None
        return outcomes

    def commit(self, statements: Sequence[Statement], outcomes: list[Outcome]) -> list[Outcome]:
        """Commit what `begin` has run, and return its outcomes; where that fails, each statement tries alone."""
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error:
            self._undo()
            return self._alone(statements)
        return outcomes

    def run(self, statements: Sequence[Statement]) -> list[Outcome]:
        """Run the statements, several in one transaction; return each one's rows or its error."""
        self._wait_for_others(True)
        if len(statements) > 1:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
            except sqlite3.Error as error:  # another program writes
                return [error] * len(statements)
            try:
                outcomes = self._each(statements)
                self._connection.execute("COMMIT")
            except (sqlite3.Error, _UndoneError):
                # Nothing of the transaction is left. Each statement tries alone, so that only those fail that must.
                self._undo()
            else:
                return outcomes
        return self._alone(statements)

    def _each(self, statements: Sequence[Statement]) -> list[Outcome]:
        """Run each statement in a savepoint.

        Raises:
            _UndoneError: nothing of the transaction is left.
        """
        return [self._in_savepoint(statement) for statement in statements]

    def _in_savepoint(self, statement: Statement) -> Outcome:
        self._connection.execute("SAVEPOINT one")
        outcome = self._outcome(statement)
        if not self._connection.in_transaction:
            raise _UndoneError
        if isinstance(outcome, Exception):
            self._connection.execute("ROLLBACK TO one")
        self._connection.execute("RELEASE one")
        return outcome

    def _alone(self, statements: Sequence[Statement]) -> list[Outcome]:
        return [self._outcome(statement) for statement in statements]

    def _outcome(self, statement: Statement) -> Outcome:
        try:
            return self._connection.execute(*statement).fetchall()
        except Exception as error:  # handed to the statement's caller, whatever it is
            return error

    def _undo(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _wait_for_others(self, waits: bool) -> None:
        """Set whether a statement waits while another program writes."""
        if waits is not self._waits:
            self._connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000 if waits else 0:.0f}")
            self._waits = waits


def _characters(statements: Sequence[Statement]) -> int:
    """Return how many characters of text the statements store or compare."""
    values = (each.values() if isinstance(each, Mapping) else each for _, each in statements)
    return sum(len(value) for row in values for value in row if type(value) is str)
