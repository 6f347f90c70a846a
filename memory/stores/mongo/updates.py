"""Pending updates in MongoDB, and the claims on users, one document each."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta

from pymongo import ASCENDING, ReturnDocument
from pymongo.errors import DuplicateKeyError

from memory.documents import Backlog, Claim
from memory.stores.mongo.connection import CLAIMS, CONVERSATIONS, Connection, Document, key_of
from memory.stores.mongo.message_document import from_update
from memory.stores.mongo.turns import turns_of
from memory.stores.mongo.users import users_of
from memory.turn import Turn, derived_id
from memory.update import Update

_PAGE = 100
_BATCH_TURNS = 100
_COMMITS = (("committed", ASCENDING), ("_id", ASCENDING))
_LONG_AGO = datetime.fromtimestamp(0, UTC)


class MongoUpdates:
    """The updates that travel in the replies' documents."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def pending_users(self, *, limit: int) -> list[str]:
        """See the port. Mostly one query; users with long backlogs are passed over in the next."""
        users: dict[str, None] = {}
        async with self._connection.use() as database:
            while len(users) < limit:
                query: Document = {"status": "pending"}
                if users:
                    query["user_id"] = {"$nin": list(users)}
                found = database[CONVERSATIONS].find(query, {"_id": False, "user_id": True})
                page = await found.sort("committed", ASCENDING).limit(_PAGE).to_list()
                users |= dict.fromkeys(document["user_id"] for document in page)
                if len(page) < _PAGE:
                    break
        return list(users)[:limit]

    async def pending(self, user_id: str, *, limit: int) -> list[Turn]:
        """See the port. A reply whose message was deleted while it was being committed is deleted too."""
        if limit < 1:
            return []
        async with self._connection.use() as database:
            messages = database[CONVERSATIONS]
            found = messages.find({"user_id": user_id, "status": "pending"}).sort("committed", ASCENDING).limit(limit)
            turns, orphans = await turns_of(database, await found.to_list())
            if orphans:
                await messages.delete_many({"_id": {"$in": orphans}})
        return turns

    async def record(self, turn: Turn, update: Update, *, generation: int) -> bool:
        """See the port."""
        reply_id = derived_id(turn.message.user_id, turn.message.turn_id, "assistant")
        async with self._connection.use() as database:
            done = await database[CONVERSATIONS].update_one(
                {"_id": reply_id, "generation": {"$lte": generation}},
                {"$set": {**from_update(update), "generation": generation}},
            )
        return done.matched_count == 1

    async def failed(self, *, user_id: str | None = None) -> AsyncIterator[Sequence[Turn]]:
        """See the port."""
        if user_id is not None:
            async for batch in self._failed_of(user_id):
                yield batch
            return
        after = ""
        while True:
            async with self._connection.use() as database:
                query: Document = {"status": "failed"}
                users = await users_of(database, CONVERSATIONS, limit=_PAGE, after=after, query=query)
            if not users:
                return
            for user in users:
                async for batch in self._failed_of(user):
                    yield batch
            after = users[-1]

    async def _failed_of(self, user_id: str) -> AsyncIterator[Sequence[Turn]]:
        failed: Document = {"user_id": user_id, "status": "failed"}
        place: Document = {}
        while True:
            async with self._connection.use() as database:
                found = database[CONVERSATIONS].find({**failed, **place})
                replies = await found.sort([*_COMMITS]).limit(_BATCH_TURNS).to_list()
                turns, _ = await turns_of(database, replies)
            if turns:
                yield turns
            if len(replies) < _BATCH_TURNS:
                return
            last = replies[-1]
            following = [
                {"committed": {"$gt": last["committed"]}},
                {"committed": last["committed"], "_id": {"$gt": last["_id"]}},
            ]
            place = {"$or": following}

    async def backlog(self, user_id: str) -> Backlog:
        """See the port."""
        waiting: Document = {"user_id": user_id, "status": "pending"}
        async with self._connection.use() as database:
            messages = database[CONVERSATIONS]
            pending, failed, oldest = await asyncio.gather(
                messages.count_documents(waiting),
                messages.count_documents({"user_id": user_id, "status": "failed"}),
                messages.find_one(waiting, {"timestamp": True}, sort=[*_COMMITS]),
            )
        return Backlog(pending, failed, None if oldest is None else oldest["timestamp"])

    async def waiting(self, *, at_most: int) -> Backlog:
        """See the port."""
        waiting: Document = {"status": "pending"}
        async with self._connection.use() as database:
            messages = database[CONVERSATIONS]
            pending, oldest = await asyncio.gather(
                messages.count_documents(waiting, limit=at_most),
                messages.find_one(waiting, {"timestamp": True}, sort=[*_COMMITS]),
            )
        return Backlog(pending, oldest=None if oldest is None else oldest["timestamp"])

    async def claim(self, user_id: str, *, owner: str, lease: timedelta, now: datetime) -> Claim | None:
        """See the port."""
        free = {"_id": key_of(user_id), "$or": [{"owner": owner}, {"expires_at": {"$lte": now}}]}
        async with self._connection.use() as database:
            try:
                held = await database[CLAIMS].find_one_and_update(
                    free,
                    {"$set": {"owner": owner, "expires_at": now + lease}, "$inc": {"generation": 1}},
                    upsert=True,
                    return_document=ReturnDocument.AFTER,
                )
            except DuplicateKeyError:
                return None  # There is a claim, and it is not free.
        return None if held is None else Claim(user_id, owner, held["generation"])

    async def renew(self, claim: Claim, *, lease: timedelta, now: datetime) -> bool:
        """See the port."""
        async with self._connection.use() as database:
            done = await database[CLAIMS].update_one(_held(claim), {"$set": {"expires_at": now + lease}})
        return done.matched_count == 1

    async def release(self, claim: Claim) -> None:
        """See the port."""
        async with self._connection.use() as database:
            await database[CLAIMS].update_one(_held(claim), {"$set": {"owner": "", "expires_at": _LONG_AGO}})


def _held(claim: Claim) -> Document:
    return {"_id": key_of(claim.user_id), "owner": claim.owner, "generation": claim.generation}
