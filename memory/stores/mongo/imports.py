"""Inserts imported turns into MongoDB: first the users' messages, then the replies, each of which commits its turn.

A kill in between leaves unfinished turns, which a repeated insert finishes.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from pymongo import UpdateMany
from pymongo.errors import BulkWriteError
from typing_extensions import override

from recollect.memory.background.batches import batches
from recollect.memory.ports.imports import Imports
from recollect.memory.stores.finished_turns import FinishedTurn, finished
from recollect.memory.stores.mongo.connection import CONVERSATIONS, MongoConnection, MongoDatabase, Record
from recollect.memory.stores.mongo.message_document import (
    MESSAGE_ONLY,
    from_message,
    from_reply,
    from_update,
    to_message,
)
from recollect.memory.stores.mongo.overviews import last_position_of
from recollect.memory.stores.mongo.turns import these, turns_from
from recollect.memory.stores.update_json import update_to_json
from recollect.memory.values.errors import StoreUnavailable
from recollect.memory.values.filtering.keys import FilterKeys
from recollect.memory.values.times import from_ms, to_ms
from recollect.memory.values.turn import Message, Turn, derived_id
from recollect.memory.values.update import Update

_TRIES = 200
_AT_ONCE = 20
_DUPLICATE = 11_000
_PORTION = 100
"""So many documents are written at a time: a call has five seconds, also on servers that write them one by one."""
_CHANGES = 20
"""So many updates of documents that differ are sent at a time."""

Thread = tuple[str, str]
"""A user and a thread."""


class MongoImports(Imports):
    """Implements Imports over the `conversations` collection."""

    def __init__(self, connection: MongoConnection) -> None:
        self._connection = connection

    @override
    async def known(self, user_id: str, imported_ids: Sequence[str]) -> dict[str, Message]:
        query = {"user_id": user_id, "imported_id": {"$in": list(imported_ids)}}
        async with self._connection.use() as database:
            messages = database[CONVERSATIONS]
            found = [to_message(each) for each in await messages.find(query, MESSAGE_ONLY).to_list()]
            replies = {derived_id(user_id, message.turn_id, "assistant"): message for message in found}
            there = await messages.find(these([user_id], list(replies)), {"_id": True}).to_list() if found else []
        committed = {replies[each["_id"]].turn_id for each in there}
        return {
            message.imported_id: message
            for message in found
            if message.imported_id is not None and message.turn_id in committed
        }

    @override
    async def stored(self, user_id: str, turn_ids: Sequence[str]) -> dict[str, Turn]:
        ids = [derived_id(user_id, turn_id, "user") for turn_id in turn_ids]
        async with self._connection.use() as database:
            turns = await turns_from(database, these([user_id], ids), limit=len(ids)) if ids else []
        return {turn.message.turn_id: turn for turn in turns}

    @override
    async def insert(self, turns: Sequence[Turn]) -> int:
        # The unique index over positions keeps live turns apart from these: the later writer retries.
        given = finished(turns)
        unanswered = {turn.message.id for turn in turns if turn.reply is None}
        async with self._connection.use() as database:
            new: set[str] = set()
            for _ in range(_TRIES):
                places = await _places(database, turns)
                begun = [turn.message for turn in turns if turn.message.id not in places.begun]
                open_turns = [turn for turn in given if _is_open(turn, places)]
                if begun:
                    # In order: a position that a live turn took meanwhile ends the insert, and the next try places the
                    # rest behind it.
                    placed = await _placed(database, begun, self._connection.keys)
                    refused = await _insert(database, placed, ordered=True)
                    inserted = placed[: placed.index(refused[0])] if refused else placed
                    new |= {message["_id"] for message in inserted} & unanswered
                elif open_turns:
                    new |= await _commit(database, open_turns, places.begun, self._connection.keys)
                else:
                    return len(new)
        raise StoreUnavailable("Too many messages came into these threads at once; send the import again.")

    @override
    async def settle(self, user_id: str, turn_ids: Sequence[str], *, owed: Update, done: Update) -> int:
        replies = [derived_id(user_id, turn_id, "assistant") for turn_id in turn_ids]
        stored, new = update_to_json(owed), {"$set": from_update(done)}
        settled = 0
        async with self._connection.use() as database:
            for batch in batches(replies, _PORTION):
                query = {**these([user_id], batch), "update": stored}
                settled += (await database[CONVERSATIONS].update_many(query, new)).matched_count
        return settled

    @override
    async def settle_each(self, turns: Sequence[Turn], *, done: Sequence[Update]) -> int:
        alike: dict[tuple[str, str, str], tuple[list[str], Update]] = {}
        for turn, new in zip(turns, done, strict=True):
            if turn.update is not None:
                user = turn.message.user_id
                ids, _ = alike.setdefault((user, update_to_json(turn.update), update_to_json(new)), ([], new))
                ids.append(derived_id(user, turn.message.turn_id, "assistant"))
        changes = [
            UpdateMany({**these([user], ids), "update": owed}, {"$set": from_update(new)})
            for (user, owed, _), (ids, new) in alike.items()
        ]
        settled = 0
        async with self._connection.use() as database:
            for batch in batches(changes, _CHANGES):
                written = await database[CONVERSATIONS].bulk_write(batch, ordered=False)
                settled += written.matched_count
        return settled


class _Places(NamedTuple):
    """Holds the stored messages of users by id, and the ids of stored replies."""

    begun: Mapping[str, Message]
    committed: set[str]


def _is_open(turn: FinishedTurn, places: _Places) -> bool:
    """Tell whether the turn's message is stored in its thread, and its reply is not."""
    stored = places.begun.get(turn.message.id)
    there = stored is not None and stored.thread_id == turn.message.thread_id
    return there and turn.reply.id not in places.committed


async def _places(database: MongoDatabase, turns: Sequence[Turn | FinishedTurn]) -> _Places:
    ids = [message.id for turn in turns for message in (turn.message, turn.reply) if message is not None]
    users = list({turn.message.user_id for turn in turns})
    found = await database[CONVERSATIONS].find(these(users, ids), MESSAGE_ONLY).to_list() if ids else []
    return _Places(
        {each["_id"]: to_message(each) for each in found if each["role"] == "user"},
        {each["_id"] for each in found if each["role"] == "assistant"},
    )


async def _placed(database: MongoDatabase, messages: Sequence[Message], keys: FilterKeys) -> list[Record]:
    """Return the documents of these users' messages, each placed behind its thread's last, or higher if it says so."""
    several = asyncio.Semaphore(_AT_ONCE)

    async def newest(thread: Thread) -> int:
        async with several:
            return await last_position_of(database, {"user_id": thread[0], "thread_id": thread[1]})

    threads = list(dict.fromkeys(_thread_of(message) for message in messages))
    last = dict(zip(threads, await asyncio.gather(*map(newest, threads)), strict=True))
    placed: list[Record] = []
    for message in messages:
        thread = _thread_of(message)
        last[thread] = max(last[thread] + 1 + last[thread] % 2, message.position)
        placed.append(from_message(_at(message, last[thread]), keys))
    return placed


def _thread_of(message: Message) -> Thread:
    return message.user_id, message.thread_id


def _at(message: Message, position: int) -> Message:
    """Return `message` at `position`, its time in the whole milliseconds of MongoDB."""
    return replace(message, position=position, created_at=from_ms(to_ms(message.created_at)))


async def _commit(
    database: MongoDatabase, turns: Sequence[FinishedTurn], begun: Mapping[str, Message], keys: FilterKeys
) -> set[str]:
    """Insert the replies to the messages in `begun`; return the ids of those that are new and stay."""
    first = time.time_ns() // 1000
    replies: list[Record] = []
    for turn in turns:
        reply = _at(turn.reply, begun[turn.message.id].position + 1)
        document = from_reply(reply, turn.result, turn.update, said=turn.said, further=turn.further, keys=keys)
        replies.append({**document, "committed": first + len(replies)})
    refused = await _insert(database, replies, ordered=False)
    for reply in refused:
        # The reply of a turn that was deleted while it ran may hold the position: remove it for the next try.
        place = {name: reply[name] for name in ("user_id", "thread_id", "position", "role")}
        await database[CONVERSATIONS].delete_one({**place, "_id": {"$ne": reply["_id"]}})
    new = {reply["_id"] for reply in replies} - {reply["_id"] for reply in refused}
    # A deletion may have run before the insert and missed these replies: look again, and remove orphans.
    left = (await _places(database, turns)).begun
    orphans = {turn.reply.id for turn in turns if turn.message.id not in left} & new
    if orphans:
        users = list({turn.message.user_id for turn in turns})
        await database[CONVERSATIONS].delete_many(these(users, list(orphans)))
    return new - orphans


async def _insert(database: MongoDatabase, documents: Sequence[Record], *, ordered: bool) -> list[Record]:
    """Insert the documents whose id and position are free; return the others. With `ordered`, stop at the first."""
    refused: list[Record] = []
    for portion in batches(documents, _PORTION):
        try:
            await database[CONVERSATIONS].insert_many(portion, ordered=ordered)
        except BulkWriteError as error:
            problems: list[Record] = error.details["writeErrors"]
            if not problems or any(problem["code"] != _DUPLICATE for problem in problems):
                raise
            refused += [portion[problem["index"]] for problem in problems]
            if ordered:
                break
    return refused
