"""Conversations in MongoDB: one document per message, and no transaction over two of them."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from pymongo import ASCENDING, DESCENDING
from pymongo.errors import DuplicateKeyError

from memory.errors import StoreUnavailable
from memory.scope import Scope
from memory.stores.mongo.connection import CONVERSATIONS, Connection, Database, Document
from memory.stores.mongo.message_document import from_message, from_reply, to_message, to_turn
from memory.times import from_ms, to_ms
from memory.turn import Exchange, Message, Turn, derived_id
from memory.update import Update

_BATCH_TURNS = 100
_TRIES = 200
_MESSAGE_ONLY = {"result": False, "update": False}
_MILLISECOND = timedelta(milliseconds=1)


class MongoConversations:
    """The `conversations` collection as the port wants it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def accept(self, message: Message) -> Message:
        """See the port. The unique index over positions lets one of two rivals in; the other looks again."""
        async with self._connection.use() as database:
            for _ in range(_TRIES):
                placed = await _as_newest(database, message)
                try:
                    await database[CONVERSATIONS].insert_one(from_message(placed))
                except DuplicateKeyError:
                    # Not every server says which index was violated, so ask.
                    stored = await database[CONVERSATIONS].find_one({"_id": message.id})
                    if stored is not None:
                        return to_message(stored)
                else:
                    return placed
        raise StoreUnavailable("Too many messages came into this thread at once; send the request again.")

    async def commit(self, reply: Message, *, result: Mapping[str, Any], update: Update) -> bool:
        """See the port. Also False where the user's message is gone: a turn that was erased while it ran."""
        document = from_reply(reply, result, update)
        async with self._connection.use() as database:
            messages = database[CONVERSATIONS]
            try:
                await messages.insert_one(document)
            except DuplicateKeyError:
                if await _has(database, {"_id": reply.id}) or not await _is_accepted(database, reply):
                    return False
                # Its place is held by the reply of a turn that was deleted while it ran.
                place = {"user_id": reply.user_id, "thread_id": reply.thread_id, "position": reply.position}
                await messages.delete_one({**place, "role": reply.role, "_id": {"$ne": reply.id}})
                await messages.insert_one(document)
            # A deletion that came before the insert has not seen it: look, and take it back.
            if await _is_accepted(database, reply):
                return True
            await messages.delete_one({"_id": reply.id})
            return False

    async def turn(self, *, user_id: str, turn_id: str) -> Turn | None:
        """See the port."""
        ids = [derived_id(user_id, turn_id, role) for role in ("user", "assistant")]
        async with self._connection.use() as database:
            found = await database[CONVERSATIONS].find({"_id": {"$in": ids}}).to_list()
        by_role = {document["role"]: document for document in found}
        return to_turn(by_role["user"], by_role.get("assistant")) if "user" in by_role else None

    async def messages(self, scope: Scope, *, limit: int, after: int = 0) -> list[Message]:
        """See the port."""
        if limit < 1:
            return []
        query = {"user_id": scope.user_id, "thread_id": scope.thread, "position": {"$gt": after}}
        async with self._connection.use() as database:
            found = database[CONVERSATIONS].find(query, _MESSAGE_ONLY).sort("position", ASCENDING).limit(limit)
            return [to_message(document) for document in await found.to_list()]

    async def recent(self, scope: Scope, *, limit: int, before: int | None = None) -> list[Exchange]:
        """See the port. One query, unless unfinished turns lie in between."""
        query: Document = {"user_id": scope.user_id, "thread_id": scope.thread}
        found: list[Exchange] = []
        async with self._connection.use() as database:
            while len(found) < limit:
                if before is not None:
                    query["position"] = {"$lt": before}
                size = 2 * (limit - len(found)) + 2
                newest = database[CONVERSATIONS].find(query, _MESSAGE_ONLY).sort("position", DESCENDING).limit(size)
                batch = [to_message(document) for document in await newest.to_list()]
                found += _exchanges(batch)
                if len(batch) < size:
                    break
                last = batch[-1]
                before = last.position + (last.role == "assistant")  # A reply cut off from its message is read again.
        return found[:limit][::-1] if limit > 0 else []

    async def count_turns(self, scope: Scope, *, at_most: int) -> int:
        """See the port."""
        if at_most < 1:
            return 0
        query = {"user_id": scope.user_id, "role": "assistant"}
        if scope.thread_id is not None:
            query["thread_id"] = scope.thread_id
        async with self._connection.use() as database:
            return await database[CONVERSATIONS].count_documents(query, limit=at_most)

    async def indexed_messages(self, *, user_id: str | None = None) -> AsyncIterator[Sequence[Message]]:
        """See the port."""
        query: Document = {"indexed": True} if user_id is None else {"indexed": True, "user_id": user_id}
        while True:
            async with self._connection.use() as database:
                messages = database[CONVERSATIONS]
                page = messages.find(query, _MESSAGE_ONLY).sort("_id", ASCENDING).limit(_BATCH_TURNS)
                replies = await page.to_list()
                ids = [derived_id(reply["user_id"], reply["message_pair_id"], "user") for reply in replies]
                asked = await messages.find({"_id": {"$in": ids}}, _MESSAGE_ONLY).to_list() if ids else []
            if not replies:
                return
            yield [to_message(document) for document in (*asked, *replies)]
            query["_id"] = {"$gt": replies[-1]["_id"]}

    async def count_indexed_messages(self) -> int:
        """See the port."""
        async with self._connection.use() as database:
            return 2 * await database[CONVERSATIONS].count_documents({"indexed": True})

    async def delete(self, scope: Scope) -> int:
        """See the port."""
        query = {"user_id": scope.user_id}
        if scope.thread_id is not None:
            query["thread_id"] = scope.thread_id
        async with self._connection.use() as database:
            return (await database[CONVERSATIONS].delete_many(query)).deleted_count


async def _as_newest(database: Database, message: Message) -> Message:
    """The message behind all that its thread holds now, in whole milliseconds as MongoDB keeps them."""
    thread = {"user_id": message.user_id, "thread_id": message.thread_id}
    shown = {"position": True, "timestamp": True}
    last, latest = await asyncio.gather(
        database[CONVERSATIONS].find_one(thread, shown, sort=[("position", DESCENDING)]),
        database[CONVERSATIONS].find_one(thread, shown, sort=[("timestamp", DESCENDING)]),
    )
    position = last["position"] if last else 0
    # The two answers can be of different moments, so both count.
    earlier = [found["timestamp"] + _MILLISECOND for found in (last, latest) if found]
    created_at = max([from_ms(to_ms(message.created_at)), *earlier])
    return replace(message, position=position + 1 + position % 2, created_at=created_at)


async def _is_accepted(database: Database, reply: Message) -> bool:
    """Whether the message that `reply` answers is stored where the reply says."""
    message_id = derived_id(reply.user_id, reply.turn_id, "user")
    return await _has(database, {"_id": message_id, "thread_id": reply.thread_id, "position": reply.position - 1})


async def _has(database: Database, query: Document) -> bool:
    return await database[CONVERSATIONS].find_one(query, {"_id": True}) is not None


def _exchanges(newest_first: Sequence[Message]) -> list[Exchange]:
    pairs = zip(newest_first[1:], newest_first, strict=False)
    return [
        Exchange(message, reply)
        for message, reply in pairs
        if reply.role == "assistant" and message.role == "user" and message.turn_id == reply.turn_id
    ]
