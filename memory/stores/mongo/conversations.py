"""Keeps conversations in MongoDB: one document per message, and no transaction over two of them."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from pymongo import ASCENDING, DESCENDING
from pymongo.errors import DuplicateKeyError
from typing_extensions import override

from recollect.memory.background.batches import batches
from recollect.memory.ports.conversations import Conversations
from recollect.memory.stores.json_text import result_to_json
from recollect.memory.stores.mongo.connection import CONVERSATIONS, MongoConnection, MongoDatabase, Record
from recollect.memory.stores.mongo.filtering.metadata_fields import metadata_fields
from recollect.memory.stores.mongo.filtering.narrowed import narrowed
from recollect.memory.stores.mongo.message_document import (
    MESSAGE_ONLY,
    SAID,
    from_message,
    from_reply,
    from_update,
    to_message,
    to_turn,
)
from recollect.memory.stores.mongo.old_messages import oldest_messages
from recollect.memory.stores.mongo.overviews import last_position_of, openings, overview, overviews
from recollect.memory.stores.mongo.places.newest_place import NewestPlaces
from recollect.memory.stores.mongo.turns import reply_of, these, turns_from, turns_of
from recollect.memory.stores.update_json import update_from_json, update_to_json
from recollect.memory.values.errors import StoreUnavailable
from recollect.memory.values.filtering.narrow import ALL, Narrow
from recollect.memory.values.scope import Scope
from recollect.memory.values.thread_record import ThreadOverview
from recollect.memory.values.times import from_ms, to_ms
from recollect.memory.values.turn import Exchange, Message, Turn, derived_id
from recollect.memory.values.update import Update

_BATCH_TURNS = 100
_BATCH_MESSAGES = 500
_TRIES = 200


class MongoConversations(Conversations):
    """Implements Conversations over the `conversations` collection."""

    def __init__(self, connection: MongoConnection) -> None:
        self._connection = connection
        self._places = NewestPlaces()

    @override
    async def accept(self, message: Message) -> Message:
        # The unique index over positions lets one of two concurrent writers in; the other retries.
        async with self._connection.use() as database:
            for _ in range(_TRIES):
                placed = await self._places.placed(database, message)
                try:
                    await database[CONVERSATIONS].insert_one(from_message(placed, self._connection.keys))
                except DuplicateKeyError:
                    # Not every server says which index was violated: look whether it was the id's.
                    stored = await database[CONVERSATIONS].find_one(_one(message))
                    if stored is not None:
                        return to_message(stored)
                else:
                    return placed
        raise StoreUnavailable("Too many messages came into this thread at once; send the request again.")

    @override
    async def commit(self, reply: Message, *, result: Mapping[str, Any], update: Update) -> bool:
        document = from_reply(reply, result, update, keys=self._connection.keys)
        async with self._connection.use() as database:
            messages = database[CONVERSATIONS]
            try:
                await messages.insert_one(document)
            except DuplicateKeyError:
                if await _has(database, _one(reply)) or not await _is_accepted(database, reply):
                    return False
                # The reply of a turn that was deleted while it ran still holds this position: remove it.
                place = {"user_id": reply.user_id, "thread_id": reply.thread_id, "position": reply.position}
                await messages.delete_one({**place, "role": reply.role, "_id": {"$ne": reply.id}})
                await messages.insert_one(document)
            # Without a transaction, a deletion may have run between the check and the insert, and missed
            # this reply: look again, and remove it where its message is gone.
            if await _is_accepted(database, reply):
                return True
            await messages.delete_one(_one(reply))
            return False

    @override
    async def turn(self, *, user_id: str, turn_id: str) -> Turn | None:
        ids = [derived_id(user_id, turn_id, role) for role in ("user", "assistant")]
        async with self._connection.use() as database:
            found = await database[CONVERSATIONS].find(these([user_id], ids)).to_list()
        by_role = {document["role"]: document for document in found}
        return to_turn(by_role["user"], by_role.get("assistant")) if "user" in by_role else None

    @override
    async def messages(self, scope: Scope, *, limit: int, after: int = 0, where: Narrow = ALL) -> list[Message]:
        if limit < 1:
            return []
        query = {"user_id": scope.user_id, "thread_id": scope.thread, "position": {"$gt": after}, **SAID}
        query = narrowed(query, where, "episode", self._connection.keys)
        async with self._connection.use() as database:
            found = database[CONVERSATIONS].find(query, MESSAGE_ONLY).sort("position", ASCENDING).limit(limit)
            return [to_message(document) for document in await found.to_list()]

    @override
    async def recent(self, scope: Scope, *, limit: int, before: int | None = None) -> list[Exchange]:
        """Read by one query, unless unfinished turns lie in between."""
        query: Record = {"user_id": scope.user_id, "thread_id": scope.thread}
        found: list[Exchange] = []
        async with self._connection.use() as database:
            while len(found) < limit:
                if before is not None:
                    query["position"] = {"$lt": before}
                size = 2 * (limit - len(found)) + 2
                newest = database[CONVERSATIONS].find(query, MESSAGE_ONLY).sort("position", DESCENDING).limit(size)
                batch = [to_message(document) for document in await newest.to_list()]
                found += _exchanges(batch)
                if len(batch) < size:
                    break
                last = batch[-1]
                before = last.position + (last.role == "assistant")  # The page ended inside a turn: read it again.
        return found[:limit][::-1] if limit > 0 else []

    @override
    async def count_turns(self, scope: Scope, *, at_most: int) -> int:
        if at_most < 1:
            return 0
        query = {"user_id": scope.user_id, "role": "assistant"}
        if scope.thread_id is not None:
            query["thread_id"] = scope.thread_id
        async with self._connection.use() as database:
            return await database[CONVERSATIONS].count_documents(query, limit=at_most)

    @override
    async def indexed_messages(self, *, user_id: str | None = None) -> AsyncIterator[Sequence[Message]]:
        query: Record = {"indexed": True} if user_id is None else {"user_id": user_id, "indexed": True}
        while True:
            async with self._connection.use() as database:
                messages = database[CONVERSATIONS]
                page = messages.find(query, MESSAGE_ONLY).sort("_id", ASCENDING).limit(_BATCH_TURNS)
                replies = await page.to_list()
                ids = [derived_id(reply["user_id"], reply["message_pair_id"], "user") for reply in replies]
                users = list({reply["user_id"] for reply in replies})
                asked = await messages.find(these(users, ids), MESSAGE_ONLY).to_list() if ids else []
            if not replies:
                return
            found = [message for message in map(to_message, (*asked, *replies)) if not message.absent]
            for batch in batches([said for message in found for said in message.spoken], _BATCH_MESSAGES):
                yield batch
            query["_id"] = {"$gt": replies[-1]["_id"]}

    @override
    async def count_indexed_messages(self) -> int:
        async with self._connection.use() as database:
            turns, halves, further = await asyncio.gather(
                database[CONVERSATIONS].count_documents({"indexed": True}),
                database[CONVERSATIONS].count_documents({"indexed": True, "said": 1}),
                _count_further(database),
            )
        return 2 * turns - halves + further

    @override
    async def exchanges(self, scope: Scope, *, after: int, limit: int) -> list[Exchange]:
        """Read by one query, unless unfinished turns lie in between."""
        thread: Record = {"user_id": scope.user_id, "thread_id": scope.thread}
        found: list[Exchange] = []
        async with self._connection.use() as database:
            while len(found) < limit:
                size = 2 * (limit - len(found)) + 2
                following = database[CONVERSATIONS].find({**thread, "position": {"$gt": after}}, MESSAGE_ONLY)
                page = await following.sort("position", ASCENDING).limit(size).to_list()
                batch = [to_message(document) for document in page]
                found += _exchanges(batch[::-1])[::-1]
                if len(batch) < size:
                    break
                last = batch[-1]
                after = last.position - (last.role == "user")  # The page ended inside a turn: read all of it again.
        return found[: max(limit, 0)]

    @override
    async def overviews(
        self, user_id: str, *, limit: int, before: tuple[datetime, str] | None = None, text: str | None = None
    ) -> list[ThreadOverview]:
        async with self._connection.use() as database:
            return await overviews(database, user_id, limit=limit, before=before, text=text)

    @override
    async def overview(self, scope: Scope, *, agent_id: str | None = None) -> ThreadOverview | None:
        labelled = {} if agent_id is None else {"agent_id": agent_id}
        async with self._connection.use() as database:
            return await overview(database, {"user_id": scope.user_id, "thread_id": scope.thread, **labelled})

    @override
    async def openings(self, user_id: str, thread_ids: Sequence[str], *, characters: int) -> dict[str, str]:
        async with self._connection.use() as database:
            return await openings(database, user_id, thread_ids, characters=characters)

    @override
    async def threads_saying(self, user_id: str, said_hash: str, *, limit: int) -> list[str]:
        if limit < 1:
            return []
        query = {"user_id": user_id, "said_hash": said_hash}
        async with self._connection.use() as database:
            said = database[CONVERSATIONS].find(query, {"thread_id": True}).sort("timestamp", DESCENDING).limit(limit)
            return list(dict.fromkeys(document["thread_id"] for document in await said.to_list()))

    @override
    async def last_position(self, scope: Scope) -> int:
        async with self._connection.use() as database:
            return await last_position_of(database, {"user_id": scope.user_id, "thread_id": scope.thread})

    @override
    async def turns(self, user_id: str) -> AsyncIterator[Sequence[Turn]]:
        query: Record = {"user_id": user_id, "role": "assistant"}
        while True:
            async with self._connection.use() as database:
                messages = database[CONVERSATIONS]
                replies = await messages.find(query).sort("_id", ASCENDING).limit(_BATCH_TURNS).to_list()
                turns, _ = await turns_of(database, replies)
            if not replies:
                return
            if turns:
                yield turns
            query["_id"] = {"$gt": replies[-1]["_id"]}

    @override
    async def every(self, scope: Scope) -> AsyncIterator[Sequence[Turn]]:
        user: Record = {"user_id": scope.user_id}
        thread, after = scope.thread_id or "", 0
        while True:
            async with self._connection.use() as database:
                here: Record = {"thread_id": thread, "position": {"$gt": after}}
                turns = await turns_from(database, {**user, **here}, limit=_BATCH_TURNS)
                if not turns and scope.thread_id is None:
                    turns = await turns_from(database, {**user, "thread_id": {"$gt": thread}}, limit=_BATCH_TURNS)
            if not turns:
                return
            yield turns
            thread, after = turns[-1].message.thread_id, turns[-1].message.position

    @override
    async def rewrite(self, turn: Turn, *, result: Mapping[str, Any], update: Update) -> bool:
        return await self._swap(turn, {"result": result_to_json(result), **from_update(update)})

    @override
    async def recommit(
        self,
        turn: Turn,
        reply: Message,
        *,
        result: Mapping[str, Any],
        update: Update,
        generation: int | None = None,
    ) -> bool:
        new: Record = {
            "content": reply.content,
            "name": reply.name,
            **metadata_fields(reply, self._connection.keys),
            "timestamp": from_ms(to_ms(reply.created_at)),
            "absent": False,
            "said": 1 if turn.message.absent else 2,
            "result": result_to_json(result),
            **from_update(update),
        }
        if generation is None:
            return await self._swap(turn, new)
        return await self._swap(turn, {**new, "generation": generation}, {"generation": {"$lte": generation}})

    @override
    async def retract(self, turn: Turn) -> bool:
        if turn.update is None:
            return False
        reply = reply_of(turn.message.user_id, turn.message.turn_id)
        async with self._connection.use() as database:
            messages = database[CONVERSATIONS]
            if (await messages.delete_one({**reply, "update": update_to_json(turn.update)})).deleted_count:
                return True
            other = await _other_text(database, reply, turn.update)
            return other is not None and (await messages.delete_one({**reply, "update": other})).deleted_count == 1

    async def _swap(self, turn: Turn, new: Record, condition: Record | None = None) -> bool:
        """Replace the fields `new` of the turn's reply if its update is still that of `turn`; tell whether it was."""
        if turn.update is None:
            return False
        reply = reply_of(turn.message.user_id, turn.message.turn_id)
        stored = update_to_json(turn.update)
        async with self._connection.use() as database:
            messages = database[CONVERSATIONS]
            as_known: Record = {**reply, **(condition or {})}
            if (await messages.update_one({**as_known, "update": stored}, {"$set": new})).matched_count:
                return True
            other = await _other_text(database, reply, turn.update)
            if other is None:
                return False
            return (await messages.update_one({**as_known, "update": other}, {"$set": new})).matched_count == 1

    @override
    async def aged(self, *, before: datetime, limit: int) -> list[Message]:
        async with self._connection.use() as database:
            return await oldest_messages(database, {"timestamp": {"$lt": before}}, limit=limit)

    @override
    async def count_messages(self, user_id: str) -> int:
        async with self._connection.use() as database:
            stored, absent = await asyncio.gather(
                database[CONVERSATIONS].count_documents({"user_id": user_id}),
                database[CONVERSATIONS].count_documents({"user_id": user_id, "absent": True}),
            )
        return stored - absent

    @override
    async def oldest(self, user_id: str, *, limit: int) -> list[Message]:
        async with self._connection.use() as database:
            return await oldest_messages(database, {"user_id": user_id}, limit=limit)

    @override
    async def remove(self, *, user_id: str, turn_ids: Sequence[str]) -> int:
        ids = [derived_id(user_id, turn_id, role) for turn_id in turn_ids for role in ("user", "assistant")]
        async with self._connection.use() as database:
            return await _delete(database, these([user_id], ids))

    @override
    async def delete(self, scope: Scope) -> int:
        query: Record = {"user_id": scope.user_id}
        if scope.thread_id is not None:
            query["thread_id"] = scope.thread_id
        async with self._connection.use() as database:
            return await _delete(database, query)


def _one(message: Message) -> Record:
    """Return the query for this message: the user leads, so that a sharded cluster asks one shard."""
    return {"user_id": message.user_id, "_id": message.id}


async def _is_accepted(database: MongoDatabase, reply: Message) -> bool:
    """Tell whether the message that `reply` answers is stored in its thread, one position before it."""
    message: Record = {"user_id": reply.user_id, "_id": derived_id(reply.user_id, reply.turn_id, "user")}
    return await _has(database, {**message, "thread_id": reply.thread_id, "position": reply.position - 1})


async def _other_text(database: MongoDatabase, reply: Record, update: Update) -> str | None:
    """Return the stored text of `update` where an earlier version of this code has written the same as another text."""
    found = await database[CONVERSATIONS].find_one(reply, {"update": True})
    if found is None or found["update"] == update_to_json(update) or update_from_json(found["update"]) != update:
        return None
    return found["update"]


async def _delete(database: MongoDatabase, query: Record) -> int:
    """Delete what `query` finds; return how many messages that were, without absent ones."""
    await database[CONVERSATIONS].delete_many({**query, "absent": True})
    return (await database[CONVERSATIONS].delete_many(query)).deleted_count


async def _has(database: MongoDatabase, query: Record) -> bool:
    return await database[CONVERSATIONS].find_one(query, {"_id": True}) is not None


def _exchanges(newest_first: Sequence[Message]) -> list[Exchange]:
    pairs = zip(newest_first[1:], newest_first, strict=False)
    return [
        Exchange(message, reply)
        for message, reply in pairs
        if reply.role == "assistant" and message.role == "user" and message.turn_id == reply.turn_id
    ]


async def _count_further(database: MongoDatabase) -> int:
    """Count the further messages that search may find, of all turns."""
    groups: list[Record] = [
        {"$match": {"further_said": {"$gt": 0}, "indexed": True}},
        {"$group": {"_id": None, "messages": {"$sum": "$further_said"}}},
    ]
    counted = await (await database[CONVERSATIONS].aggregate(groups)).to_list()
    return counted[0]["messages"] if counted else 0
