"""Counting in MongoDB: the server counts along its indexes, and groups where ids are counted."""

import asyncio
from collections.abc import Sequence

from memory.counts import Counted
from memory.scope import GLOBAL_USER, Scope
from memory.stores.mongo.connection import CONVERSATIONS, DOCUMENTS, FACTS, THREADS, Connection, Database, Document

_WHETHER_INDEXED = {"indexed": {"$in": [True, False]}}
"""Finds every reply, or fact, and lets an index that begins with `indexed` serve."""


class MongoCounts:
    """The collections as the port wants them counted."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def users(self) -> int:
        """See the port."""
        collections = (CONVERSATIONS, FACTS, THREADS, DOCUMENTS)
        async with self._connection.use() as database:
            found = await asyncio.gather(*(_users(database, collection) for collection in collections))
        return len({user_id for users in found for user_id in users} - {GLOBAL_USER})

    async def count(self, scope: Scope | None) -> Counted:
        """See the port."""
        own: Document = {} if scope is None else {"user_id": scope.user_id}
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
        # A turn of which only half was said has an absent message in the other half's place.
        return Counted(threads, turns, asked + turns - halves, known, pending)


async def _users(database: Database, collection: str) -> Sequence[str]:
    groups = await database[collection].aggregate([{"$group": {"_id": "$user_id"}}])
    return [group["_id"] for group in await groups.to_list()]


async def _threads(database: Database, query: Document) -> int:
    groups: list[Document] = [
        {"$match": query},
        {"$group": {"_id": {"user": "$user_id", "thread": "$thread_id"}}},
        {"$count": "threads"},
    ]
    counted = await (await database[CONVERSATIONS].aggregate(groups)).to_list()
    return counted[0]["threads"] if counted else 0
