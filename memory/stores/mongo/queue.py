"""Queues the turns of each thread over MongoDB: one document per thread holds the queue's tickets.

`thread_queue` holds one document per busy thread: {_id, tickets: ["owner/…", …]}. Taking a ticket is one atomic append,
so the array is in order of arrival, and no ticket is ever taken but not yet visible. The turn of the first ticket runs.
Leaving removes the ticket, and the document with the last one: two round trips for a turn without rivals (three when
this process has to renew its lease).

Tickets carry no lease of their own. Each open store holds one lease, a document of `processes`, which one task renews
while the store has tickets. Where the lease of the first ticket's process has run out, whoever waits behind removes the
ticket. Clocks of the processes should agree within some seconds. Nobody can stop a process that is cut off from the
server for longer than its lease: its turn may then overlap with the next one, and the unique inserts of the
conversation keep the two apart.

Within a process, tickets of a thread are taken in the order of the calls, and only the first of its waiters asks the
server, so fifty waiters cost no more than one.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError
from typing_extensions import override

from recollect.memory.ports.thread_queue import ThreadQueue
from recollect.memory.stores.mongo.connection import MARK, PROCESSES, QUEUE, MongoConnection, hidden_key
from recollect.memory.stores.thread_queue import LocalThreadQueue
from recollect.memory.values.errors import StoreUnavailable, ThreadBusy
from recollect.memory.values.scope import Scope

LEASE = timedelta(seconds=15)

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.075
_CLOSE_SECONDS = 2.0
_FORGOTTEN = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class _Ticket:
    thread: str
    id: str


class MongoThreadQueue(ThreadQueue):
    """The thread queue of one open store. Two stores that are open at once must have different `owner`s."""

    def __init__(self, connection: MongoConnection, *, owner: str, lease: timedelta = LEASE) -> None:
        self._connection = connection
        self._owner = owner
        self._lease = lease
        self._arrivals = LocalThreadQueue()
        self._line = LocalThreadQueue()
        self._living: set[_Ticket] = set()
        self._leaving: set[_Ticket] = set()
        self._removals: set[asyncio.Task[None]] = set()
        self._renewal: asyncio.Task[None] | None = None
        self._shown_until: datetime | None = None
        self._alive_until: dict[str, datetime] = {}

    @override
    @asynccontextmanager
    async def turn(self, scope: Scope, *, wait_seconds: float) -> AsyncGenerator[None]:
        """Hold the thread for one turn.

        Raises:
            ThreadBusy: the thread did not come free within `wait_seconds`.
        """
        clock = asyncio.get_running_loop().time
        deadline = clock() + wait_seconds
        ticket = _Ticket(hidden_key(scope.user_id, scope.thread), f"{self._owner}/{uuid4().hex}")
        try:
            # Two local queues: `_arrivals` takes tickets in the order of the calls, and `_line` lets one waiter at a
            # time poll the server.
            async with self._arrivals.turn(scope, wait_seconds=wait_seconds):
                tickets = await self._take(ticket)
            async with self._line.turn(scope, wait_seconds=deadline - clock()):
                try:
                    if tickets[0] != ticket.id:
                        await self._reach_front(ticket, deadline)
                    yield
                finally:
                    await self._leave(ticket)  # Before the next waiter of this process looks whether it is first.
        finally:
            await self._leave(ticket)

    async def close(self) -> None:
        """Release tickets and lease within 2 s; if the server cannot be reached, the lease runs out by itself."""
        if self._renewal:
            self._renewal.cancel()
            await asyncio.gather(self._renewal, return_exceptions=True)
        if self._shown_until is None:
            return
        with suppress(StoreUnavailable, TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await asyncio.gather(*self._removals)
                async with self._connection.use() as database:
                    await database[PROCESSES].delete_one({"_id": self._owner})

    async def _take(self, ticket: _Ticket) -> list[str]:
        """Append the ticket to its thread's queue, unless it is there already, and return the queue."""
        # The lease comes before the ticket: others would remove a ticket whose process they do not know.
        if self._shown_until is None or self._shown_until - _now() < self._lease * 2 / 3:
            await self._show()
        self._living.add(ticket)
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.create_task(self._renew(), name="thread-leases")
        try:
            async with self._connection.use() as database:
                while True:
                    with suppress(DuplicateKeyError):  # Two processes made the document at once: retry.
                        line = await database[QUEUE].find_one_and_update(
                            {"_id": ticket.thread},
                            {"$addToSet": {"tickets": ticket.id}, "$setOnInsert": MARK},
                            upsert=True,
                            return_document=ReturnDocument.AFTER,
                        )
                        if line is not None:
                            return line["tickets"]
        except StoreUnavailable:
            self._living.discard(ticket)
            self._leaving.add(ticket)  # The server may have stored it all the same.
            raise

    async def _reach_front(self, ticket: _Ticket, deadline: float) -> None:
        """Wait until the ticket is the first of its queue; remove tickets before it whose process is gone."""
        while True:
            tickets = await self._line_of(ticket)
            if ticket.id not in tickets:  # Our lease had run out and others removed it: start again at the end.
                tickets = await self._take(ticket)
            if tickets[0] == ticket.id:
                return
            first = _Ticket(ticket.thread, tickets[0])
            if await self._is_dead(first):
                await self._remove(first)
                continue
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                raise ThreadBusy
            await asyncio.sleep(min(_POLL_SECONDS, left))

    async def _line_of(self, ticket: _Ticket) -> list[str]:
        async with self._connection.use() as database:
            line = await database[QUEUE].find_one({"_id": ticket.thread})
        return line["tickets"] if line else []

    async def _is_dead(self, ticket: _Ticket) -> bool:
        owner = ticket.id.rpartition("/")[0]
        if owner == self._owner:
            return ticket not in self._living
        if self._alive_until.get(owner, _now()) > _now():
            return False
        async with self._connection.use() as database:
            process = await database[PROCESSES].find_one({"_id": owner})
        if process is None or process["expires_at"] <= _now():
            self._alive_until.pop(owner, None)
            return True
        self._alive_until[owner] = process["expires_at"]
        return False

    async def _leave(self, ticket: _Ticket) -> None:
        """Remove the ticket in a task of its own, so that a cancelled caller leaves too. Never raises."""
        if ticket not in self._living:
            return
        self._living.discard(ticket)
        self._leaving.add(ticket)
        removal = asyncio.create_task(self._try_to_remove(ticket), name="thread-ticket-removal")
        self._removals.add(removal)
        removal.add_done_callback(self._removals.discard)
        await asyncio.shield(removal)

    async def _try_to_remove(self, ticket: _Ticket) -> None:
        try:
            await self._remove(ticket)
        except StoreUnavailable:
            logger.warning("A ticket could not be removed; it is tried again", extra={"action": "ticket_kept"})
        else:
            self._leaving.discard(ticket)

    async def _remove(self, ticket: _Ticket) -> None:
        async with self._connection.use() as database:
            threads = database[QUEUE]
            # Each delete names the tickets it expects, so a ticket that arrives in between keeps the document.
            last = await threads.delete_one({"_id": ticket.thread, "tickets": [ticket.id]})
            if last.deleted_count:
                return
            line = await threads.find_one_and_update(
                {"_id": ticket.thread}, {"$pull": {"tickets": ticket.id}}, return_document=ReturnDocument.AFTER
            )
            if line is not None and not line["tickets"]:
                await threads.delete_one({"_id": ticket.thread, "tickets": []})

    async def _show(self) -> None:
        expires_at = _now() + self._lease
        async with self._connection.use() as database:
            if self._shown_until is None:
                await database[PROCESSES].delete_many({"expires_at": {"$lt": _now() - _FORGOTTEN}})
            await database[PROCESSES].update_one(
                {"_id": self._owner}, {"$set": {**MARK, "expires_at": expires_at}}, upsert=True
            )
        self._shown_until = expires_at

    async def _renew(self) -> None:
        """Renew this process's lease every third of it while it has tickets, and retry removals that failed."""
        while self._living or self._leaving:
            await asyncio.sleep(self._lease.total_seconds() / 3)
            try:
                if self._living:
                    await self._show()
            except StoreUnavailable:
                logger.warning("The thread leases could not be renewed", extra={"action": "leases_not_renewed"})
                continue
            for ticket in tuple(self._leaving):
                await self._try_to_remove(ticket)


def _now() -> datetime:
    return datetime.now(UTC)
