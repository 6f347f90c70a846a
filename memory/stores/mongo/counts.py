"""Counts in MongoDB: the server counts along its indexes, and groups where it counts ids."""

import asyncio
from collections.abc import Sequence

from typing_extensions import override

from recollect.memory.ports.counts import Counted, Counts
from recollect.memory.stores.mongo.connection import (
    CONVERSATIONS,
    DOCUMENTS,
    FACTS,
    THREADS,
    MongoConnection,
    MongoDatabase,
    Record,
)
from recollect.memory.values.scope import GLOBAL_USER, Scope

_WHETHER_INDEXED = {"indexed": {"$in": [True, False]}}
"""Finds every reply, or fact, and lets an index that begins with `indexed` serve."""


class MongoCounts(Counts):
    """Implements Counts over all collections."""

    def __init__(self, connection: MongoConnection) -> None:
        self._connection = connection

    @override
    async def users(self) -> int:
        collections = (CONVERSATIONS, FACTS, THREADS, DOCUMENTS)
        async with self._connection.use() as database:
            found = await asyncio.gather(*(_users(database, collection) for collection in collections))
        return len({user_id for users in found for user_id in users} - {GLOBAL_USER})

    @override
    async def count(self, scope: Scope | None) -> Counted:
        own: Record = {} if scope is None else {"user_id": scope.user_id}
        any_one = _WHETHER_INDEXED if scope is None else {}
        here, home = dict(own), dict(own)
        if scope is not None and scope.thread_id is not None:
            here["thread_id"] = home["home"] = scope.thread_id
        async with self._connection.use() as database:
            messages, facts = database[CONVERSATIONS], database[FACTS]
            threads, asked, turns, halves, known, pending = await asyncio.gather(
                _threads(database, here),
                messages.count_documents({**here, "role": "user"}),
                messages.count_documents({**here, "role": "assistant"}),
                messages.count_documents({**here, **any_one, "said": 1}),
                facts.count_documents({**home, **any_one, "state": "open"}),
                messages.count_documents({**here, "status": "pending"}),
            )
        # An imported turn with only one message has an absent one in place of the other, which does not count.
        return Counted(threads, turns, asked + turns - halves, known, pending)


async def _users(database: MongoDatabase, collection: str) -> Sequence[str]:
    groups = await database[collection].aggregate([{"$group": {"_id": "$user_id"}}])
    return [group["_id"] for group in await groups.to_list()]


async def _threads(database: MongoDatabase, query: Record) -> int:
    groups: list[Record] = [
        {"$match": query},
        {"$group": {"_id": {"user": "$user_id", "thread": "$thread_id"}}},
        {"$count": "threads"},
    ]
    counted = await (await database[CONVERSATIONS].aggregate(groups)).to_list()
    return counted[0]["threads"] if counted else 0
