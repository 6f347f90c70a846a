"""Commits all writes that wait as one transaction, so that many users share one fsync."""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from recollect.memory.background.short_calls import SHORT_CALLS
from recollect.memory.stores.sqlite.connections.transaction import MOST_AT_ONCE, Outcome, Parameters, Row, Transactions

MOST_TOGETHER = 200
"""The most writes of one transaction: the first of them waits for the last."""


@dataclass(frozen=True, slots=True, eq=False)
class _Write:
    sql: str
    parameters: Parameters
    joins: bool
    ended: "asyncio.Future[Outcome]"


class GroupCommit:
    """Runs writing statements in the order of their calls, those that wait together in one transaction.

    Each has a savepoint of its own: one that fails fails its own caller alone. Nobody gets a result before the commit,
    with its fsync, has returned. A caller that is cancelled leaves its statement done or not done. Short statements run
    on the event loop where they may (`SHORT_CALLS`); the commit, which waits for the disk, never does. `connection`,
    which is in autocommit and closed by `close`, is used by one thread at a time.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._transactions = Transactions(connection)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sqlite-writer")
        self._waiting: list[_Write] = []
        self._task: asyncio.Task[None] | None = None

    async def run(self, sql: str, parameters: Parameters = (), *, joins: bool = True) -> list[Row]:
        """Run one statement and return its rows; a write is durable by then. With `joins` False it runs by itself.

        PRAGMA and VACUUM must run by themselves: a transaction cannot hold them.

        Raises:
            sqlite3.Error: it failed, and changed nothing.
        """
        write = _Write(sql, parameters, joins, asyncio.get_running_loop().create_future())
        self._waiting.append(write)
        if self._task is None:
            self._task = asyncio.create_task(self._work(), name="sqlite-group-commit")
        outcome = await write.ended
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def close(self) -> None:
        """Finish the writes that wait, then close the connection."""
        while self._task is not None:
            await asyncio.wait({self._task})
        await asyncio.get_running_loop().run_in_executor(self._thread, self._connection.close)
        self._thread.shutdown(wait=False)

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                group = self._next_group()
                try:
                    outcomes = await loop.run_in_executor(self._thread, self._begun(group))
                except Exception as error:  # the connection is of no more use: no caller may wait for ever
                    outcomes = [error] * len(group)
                for write, outcome in zip(group, outcomes, strict=True):
                    if not write.ended.done():  # its caller may have been cancelled
                        write.ended.set_result(outcome)
        finally:
            # Without an await after the last look at `_waiting`: a call either finds this task or starts another.
            self._task = None

    def _begun(self, group: list[_Write]) -> Callable[[], list[Outcome]]:
        """Run the group's statements where they are short; return what is left for the thread, which is the commit."""
        statements = [(write.sql, write.parameters) for write in group]
        if SHORT_CALLS.on_loop and group[0].joins:
            outcomes = self._transactions.begin(statements)
            if outcomes is not None:
                return lambda: self._transactions.commit(statements, outcomes)
        return lambda: self._transactions.run(statements)

    def _next_group(self) -> list[_Write]:
        """Take the first writes that may share a transaction; at least one."""
        count = next((at for at, write in enumerate(self._waiting) if not write.joins), len(self._waiting))
        count = max(1, min(count, MOST_AT_ONCE if SHORT_CALLS.on_loop else MOST_TOGETHER))
        group, self._waiting = self._waiting[:count], self._waiting[count:]
        return group
