"""Queues the turns of each thread over MongoDB: one document per thread holds the queue's tickets.

`thread_queue` holds one document per busy thread: {_id, tickets: ["owner/…", …]}. Taking a ticket is one atomic append,
so the array is in order of arrival, and no ticket is ever taken but not yet visible. The turn of the first ticket runs.
Leaving removes the ticket, and the document with the last one.

A new turn's ticket names the reply that will end it. With that reply the thread is free, and the ticket is left: one
round trip for a turn without rivals. Every 5 s the process removes all that it has left, at once. Before that the next
turn of the thread in this process puts its own ticket in the left one's place, and whoever waits in another process
looks for the reply, and removes the ticket of a turn that has it.

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
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from pymongo import DeleteMany, ReturnDocument, UpdateOne
from pymongo.errors import DuplicateKeyError
from typing_extensions import override

from recollect.memory.ports.thread_queue import Hold, ThreadQueue
from recollect.memory.stores.mongo.connection import (
    CONVERSATIONS,
    MARK,
    PROCESSES,
    QUEUE,
    MongoConnection,
    MongoDatabase,
    Record,
    hidden_key,
)
from recollect.memory.stores.thread_queue import LocalThreadQueue
from recollect.memory.values.errors import StoreUnavailable, ThreadBusy
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope

LEASE = timedelta(seconds=15)

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.075
_CLOSE_SECONDS = 2.0
_FORGOTTEN = timedelta(days=1)


@frozen
class _Ticket:
    """A place in the queue of the thread with this key; its id reads `owner/uuid`, or `owner/uuid/reply's id`."""

    thread: str
    id: str

    @classmethod
    def new(cls, scope: Scope, owner: str, reply_id: str | None) -> "_Ticket":
        """Return a ticket that nobody has taken yet."""
        parts = (owner, uuid4().hex, *([reply_id] if reply_id is not None else []))
        return cls(hidden_key(scope.user_id, scope.thread), "/".join(parts))

    @property
    def owner(self) -> str:
        """The process whose ticket it is."""
        return self.id.split("/")[0]

    @property
    def reply_id(self) -> str | None:
        """The id of the reply with which its turn ends."""
        return "".join(self.id.split("/")[2:]) or None


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
        self._left: dict[str, _Ticket] = {}
        self._removals: set[asyncio.Task[None]] = set()
        self._renewal: asyncio.Task[None] | None = None
        self._shown_until: datetime | None = None
        self._alive_until: dict[str, datetime] = {}

    @override
    @asynccontextmanager
    async def turn(self, scope: Scope, *, wait_seconds: float, reply_id: str | None = None) -> AsyncGenerator[Hold]:
        """Hold the thread for one turn.

        Raises:
            ThreadBusy: the thread did not come free within `wait_seconds`.
        """
        clock = asyncio.get_running_loop().time
        deadline = clock() + wait_seconds
        ticket, hold = _Ticket.new(scope, self._owner, reply_id), Hold()
        try:
            # Two local queues: `_arrivals` takes tickets in the order of the calls, and `_line` lets one waiter at a
            # time poll the server.
            async with self._arrivals.turn(scope, wait_seconds=wait_seconds):
                tickets = await self._take(ticket)
            async with self._line.turn(scope, wait_seconds=deadline - clock()):
                try:
                    await self._reach_front(ticket, tickets, scope.user_id, deadline)
                    yield hold
                finally:
                    # Before the next waiter of this process looks whether it is first.
                    if hold.is_answered and not self._line.is_awaited(scope):
                        self._living.discard(ticket)
                        self._left[ticket.thread] = ticket
                    else:
                        await self._leave(ticket)
        finally:
            await self._leave(ticket)

    async def close(self) -> None:
        """Remove tickets and lease within 2 s; if the server cannot be reached, the lease runs out by itself."""
        if self._renewal:
            self._renewal.cancel()
            await asyncio.gather(self._renewal, return_exceptions=True)
        if self._shown_until is None:
            return
        with suppress(StoreUnavailable, TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await asyncio.gather(*self._removals)
                await self._remove_left()
                async with self._connection.use() as database:
                    await database[PROCESSES].delete_one({"_id": self._owner})

    async def _take(self, ticket: _Ticket) -> list[str]:
        """Append the ticket to its thread's queue, unless it is there already, and return the queue."""
        # The lease comes before the ticket: others would remove a ticket whose process they do not know.
        if self._shown_until is None or self._shown_until - _now() < self._lease * 2 / 3:
            await self._show()
        self._living.add(ticket)
        left = self._left.get(ticket.thread)
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.create_task(self._renew(), name="thread-leases")
        try:
            async with self._connection.use() as database:
                if left is not None:
                    is_placed = await _put_in_place(database, left, ticket)
                    self._left.pop(ticket.thread, None)
                    if is_placed:
                        return [ticket.id]
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

    async def _reach_front(self, ticket: _Ticket, tickets: list[str], user_id: str, deadline: float) -> None:
        """Wait until the ticket is the first of its queue; remove tickets before it whose turn or process has ended.

        `tickets` is the queue as it was when the ticket was taken.
        """
        if tickets[0] == ticket.id:
            return
        if _Ticket(ticket.thread, tickets[0]).reply_id is None:
            tickets = await self._line_of(ticket)  # others may have left since
        while True:
            if ticket.id not in tickets:  # Our lease had run out and others removed it: start again at the end.
                tickets = await self._take(ticket)
            if tickets[0] == ticket.id:
                return
            first = _Ticket(ticket.thread, tickets[0])
            if await self._is_over(first, user_id):
                tickets = await self._pull(first)
                continue
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                raise ThreadBusy
            await asyncio.sleep(min(_POLL_SECONDS, left))
            tickets = await self._line_of(ticket)

    async def _line_of(self, ticket: _Ticket) -> list[str]:
        async with self._connection.use() as database:
            line = await database[QUEUE].find_one({"_id": ticket.thread})
        return line["tickets"] if line else []

    async def _is_over(self, ticket: _Ticket, user_id: str) -> bool:
        """Tell whether the user's turn that took the ticket has ended, or its process has."""
        if ticket.owner == self._owner:
            return ticket not in self._living
        return await self._is_answered(ticket, user_id) or await self._is_dead(ticket.owner)

    async def _is_dead(self, owner: str) -> bool:
        """Tell whether this process has let its lease run out."""
        if self._alive_until.get(owner, _now()) > _now():
            return False
        async with self._connection.use() as database:
            process = await database[PROCESSES].find_one({"_id": owner})
        if process is None or process["expires_at"] <= _now():
            self._alive_until.pop(owner, None)
            return True
        self._alive_until[owner] = process["expires_at"]
        return False

    async def _is_answered(self, ticket: _Ticket, user_id: str) -> bool:
        """Tell whether the reply that the ticket names is stored."""
        if ticket.reply_id is None:
            return False
        async with self._connection.use() as database:
            reply: Record = {"user_id": user_id, "_id": ticket.reply_id}
            return await database[CONVERSATIONS].find_one(reply, {"_id": True}) is not None

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
        # Each delete names the tickets it expects, so a ticket that arrives in between keeps the document.
        async with self._connection.use() as database:
            last = await database[QUEUE].delete_one(_alone(ticket))
        if not last.deleted_count and not await self._pull(ticket):
            async with self._connection.use() as database:
                await database[QUEUE].delete_one({"_id": ticket.thread, "tickets": []})

    async def _pull(self, ticket: _Ticket) -> list[str]:
        """Remove the ticket, and return those that are left in its queue."""
        async with self._connection.use() as database:
            line = await database[QUEUE].find_one_and_update(
                {"_id": ticket.thread}, {"$pull": {"tickets": ticket.id}}, return_document=ReturnDocument.AFTER
            )
        return line["tickets"] if line else []

    async def _remove_left(self) -> None:
        """Remove the tickets of answered turns; those that could not be removed are tried again one by one."""
        left, self._left = list(self._left.values()), {}
        if not left:
            return
        pulls = [UpdateOne({"_id": one.thread, "tickets": one.id}, {"$pull": {"tickets": one.id}}) for one in left]
        emptied: Record = {"_id": {"$in": [one.thread for one in left]}, "tickets": []}
        try:
            async with self._connection.use() as database:
                await database[QUEUE].bulk_write([*pulls, DeleteMany(emptied)])
        except StoreUnavailable:
            self._leaving.update(left)
            raise

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
        """Renew this process's lease every third of it while it has tickets; remove those left, and retry removals."""
        while self._living or self._leaving or self._left:
            await asyncio.sleep(self._lease.total_seconds() / 3)
            try:
                if self._living:
                    await self._show()
                await self._remove_left()
            except StoreUnavailable:
                logger.warning("The thread leases could not be renewed", extra={"action": "leases_not_renewed"})
                continue
            for ticket in tuple(self._leaving):
                await self._try_to_remove(ticket)


async def count_left(database: MongoDatabase, user_id: str, threads: Sequence[str]) -> int:
    """Count those of the user's `threads` (keys) whose queue holds nothing but the ticket of an answered turn."""
    lines = await database[QUEUE].find({"_id": {"$in": list(threads)}}).to_list()
    alone = [_Ticket(line["_id"], line["tickets"][0]).reply_id for line in lines if len(line["tickets"]) == 1]
    replies = [reply_id for reply_id in alone if reply_id is not None]
    if not replies:
        return 0
    return await database[CONVERSATIONS].count_documents({"user_id": user_id, "_id": {"$in": replies}})


async def _put_in_place(database: MongoDatabase, left: _Ticket, ticket: _Ticket) -> bool:
    """Put `ticket` in the place of `left`; return False, and change nothing, if that is not its queue's only one."""
    return (await database[QUEUE].update_one(_alone(left), {"$set": {"tickets": [ticket.id]}})).matched_count == 1


def _alone(ticket: _Ticket) -> Record:
    """Return the query for the ticket's queue if it holds no other ticket."""
    return {"_id": ticket.thread, "tickets": [ticket.id]}


def _now() -> datetime:
    return datetime.now(UTC)
