"""Keeps pending updates in MongoDB, in the replies' documents, and claims on users, one document each."""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from datetime import UTC, datetime, timedelta

from pymongo import ASCENDING, ReturnDocument
from pymongo.errors import DuplicateKeyError
from typing_extensions import override

from recollect.memory.ports.updates import Backlog, Claim, Updates
from recollect.memory.stores.mongo.connection import (
    CLAIMS,
    CONVERSATIONS,
    MARK,
    MongoConnection,
    MongoDatabase,
    Record,
    hidden_key,
)
from recollect.memory.stores.mongo.leaps import users_of
from recollect.memory.stores.mongo.message_document import from_update
from recollect.memory.stores.mongo.turns import reply_of, turns_of
from recollect.memory.values.turn import Message, Turn, derived_id
from recollect.memory.values.update import Update

_PAGE = 100
_BATCH_TURNS = 100
_COMMITS = (("committed", ASCENDING), ("_id", ASCENDING))
_TIMES = (("timestamp", ASCENDING), *_COMMITS)
_LONG_AGO = datetime.fromtimestamp(0, UTC)


class MongoUpdates(Updates):
    """Implements Updates: an update is part of its reply's document."""

    def __init__(self, connection: MongoConnection) -> None:
        self._connection = connection

    @override
    async def pending_users(self, *, limit: int) -> list[str]:
        """Read mostly by one query; each further one excludes the users found so far."""
        users: dict[str, None] = {}
        async with self._connection.use() as database:
            while len(users) < limit:
                query: Record = {"status": "pending"}
                if users:
                    query["user_id"] = {"$nin": list(users)}
                found = database[CONVERSATIONS].find(query, {"_id": False, "user_id": True})
                page = await found.sort("committed", ASCENDING).limit(_PAGE).to_list()
                users |= dict.fromkeys(document["user_id"] for document in page)
                if len(page) < _PAGE:
                    break
        return list(users)[:limit]

    @override
    async def pending(
        self, user_id: str, *, limit: int, by_time: bool = False, known: Collection[Message] = ()
    ) -> list[Turn]:
        """Return pending turns, and delete replies whose message was deleted while they were being committed."""
        if limit < 1:
            return []
        async with self._connection.use() as database:
            messages = database[CONVERSATIONS]
            found = messages.find({"user_id": user_id, "status": "pending"}, {"result": False})
            replies = await found.sort([*(_TIMES if by_time else _COMMITS)]).limit(limit).to_list()
            turns, orphans = await turns_of(database, replies, known)
            if orphans:
                await messages.delete_many({"user_id": user_id, "_id": {"$in": orphans}})
        return turns

    @override
    async def record(self, turn: Turn, update: Update, *, generation: int) -> bool:
        reply = reply_of(turn.message.user_id, turn.message.turn_id)
        ended = {"ended_in": generation} if update.status != "pending" else {}
        async with self._connection.use() as database:
            # Compared and written in one step: a process that lost its claim cannot overwrite a newer one's update.
            done = await database[CONVERSATIONS].update_one(
                {**reply, "generation": {"$lte": generation}},
                {"$set": {**from_update(update), "generation": generation, **ended}},
            )
        return done.matched_count == 1

    @override
    async def failed(self, *, user_id: str | None = None) -> AsyncIterator[Sequence[Turn]]:
        if user_id is not None:
            async for batch in self._failed_of(user_id):
                yield batch
            return
        after = ""
        while True:
            async with self._connection.use() as database:
                query: Record = {"status": "failed"}
                users = await users_of(database, CONVERSATIONS, limit=_PAGE, after=after, query=query)
            if not users:
                return
            for user in users:
                async for batch in self._failed_of(user):
                    yield batch
            after = users[-1]

    async def _failed_of(self, user_id: str) -> AsyncIterator[Sequence[Turn]]:
        failed: Record = {"user_id": user_id, "status": "failed"}
        place: Record = {}
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

    @override
    async def backlog(self, user_id: str) -> Backlog:
        waiting: Record = {"user_id": user_id, "status": "pending"}
        async with self._connection.use() as database:
            messages = database[CONVERSATIONS]
            pending, failed, oldest = await asyncio.gather(
                messages.count_documents(waiting),
                messages.count_documents({"user_id": user_id, "status": "failed"}),
                messages.find_one(waiting, {"timestamp": True}, sort=[*_COMMITS]),
            )
        return Backlog(pending, failed, None if oldest is None else oldest["timestamp"])

    @override
    async def waiting(self, *, at_most: int) -> Backlog:
        waiting: Record = {"status": "pending"}
        async with self._connection.use() as database:
            messages = database[CONVERSATIONS]
            pending, oldest = await asyncio.gather(
                messages.count_documents(waiting, limit=at_most),
                messages.find_one(waiting, {"timestamp": True}, sort=[*_COMMITS]),
            )
        return Backlog(pending, oldest=None if oldest is None else oldest["timestamp"])

    @override
    async def claim(
        self, user_id: str, *, owner: str, lease: timedelta, now: datetime, turns: Sequence[str] = ()
    ) -> Claim | None:
        mine: Record = {**MARK, "owner": owner, "expires_at": now + lease, "turns": _replies(user_id, turns)}
        free = {"_id": hidden_key(user_id), "$or": [{"owner": owner}, {"expires_at": {"$lte": now}}]}
        async with self._connection.use() as database:
            try:
                held = await database[CLAIMS].find_one_and_update(
                    free, _taken(mine), upsert=True, return_document=ReturnDocument.AFTER
                )
            except DuplicateKeyError:
                # Another owner holds the claim: the filter missed it, and its id stopped the upsert.
                held = await _take_over(database, user_id, mine)
        return None if held is None else Claim(user_id, owner, held["generation"])

    @override
    async def renew(self, claim: Claim, *, lease: timedelta, now: datetime, turns: Sequence[str] | None = None) -> bool:
        named = {} if turns is None else {"turns": _replies(claim.user_id, turns)}
        async with self._connection.use() as database:
            done = await database[CLAIMS].update_one(_held(claim), {"$set": {"expires_at": now + lease, **named}})
        return done.matched_count == 1

    @override
    async def release(self, claim: Claim, *, is_over: bool = False) -> None:
        if is_over:
            return  # `_take_over` sees it
        async with self._connection.use() as database:
            # The document stays, so that the next claim's generation is higher and fences out late writes.
            await database[CLAIMS].update_one(_held(claim), {"$set": {"owner": "", "expires_at": _LONG_AGO}})


async def _take_over(database: MongoDatabase, user_id: str, mine: Record) -> Record | None:
    """Take a claim whose owner has recorded the end of all the turns that it names; None if nobody's is over so."""
    claims = database[CLAIMS]
    held = await claims.find_one({"_id": hidden_key(user_id)})
    if held is None or not held.get("turns"):
        return None
    # A turn that its owner has ended may be pending anew, undone by a person say: that is not the owner's work yet.
    unended: Record = {"status": "pending", "ended_in": {"$ne": held["generation"]}}
    named: Record = {"user_id": user_id, "_id": {"$in": held["turns"]}}
    if await database[CONVERSATIONS].find_one({**named, **unended}, {"_id": True}) is not None:
        return None
    # Compared with what was read: the owner may have claimed again, or named further turns.
    as_read = {name: held[name] for name in ("_id", "owner", "generation", "turns")}
    return await claims.find_one_and_update(as_read, _taken(mine), return_document=ReturnDocument.AFTER)


def _taken(mine: Record) -> Record:
    return {"$set": mine, "$inc": {"generation": 1}}


def _replies(user_id: str, turns: Sequence[str]) -> list[str]:
    return [derived_id(user_id, turn_id, "assistant") for turn_id in turns]


def _held(claim: Claim) -> Record:
    return {"_id": hidden_key(claim.user_id), "owner": claim.owner, "generation": claim.generation}
