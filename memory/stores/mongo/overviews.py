"""Lists a user's threads from their messages, last written to first.

Servers that imitate MongoDB have no `$max` in `$group` and no time limit in `distinct`, so the latest message of each
thread is found by reading the messages newest first and excluding the threads that were found already.
"""

import asyncio
import re
from collections.abc import Sequence
from datetime import datetime

from pymongo import DESCENDING

from recollect.memory.stores.mongo.connection import CONVERSATIONS, THREADS, MongoDatabase, Record
from recollect.memory.values.thread_record import ThreadOverview

_PAGE = 100
_AT_ONCE = 20
_NEWEST = (("timestamp", DESCENDING), ("thread_id", DESCENDING))


async def overviews(
    database: MongoDatabase,
    user_id: str,
    *,
    limit: int,
    before: tuple[datetime, str] | None,
    text: str | None = None,
) -> list[ThreadOverview]:
    """Return overviews of the user's threads, as `Conversations.overviews` does."""
    wanted = None if text is None else await _saying(database, user_id, text)
    latest = await _latest(database, user_id, limit=limit, before=before, wanted=wanted)
    threads: Record = {"user_id": user_id, "thread_id": {"$in": list(latest)}}
    turns, messages, absent = await asyncio.gather(
        _counted(database, {**threads, "role": "assistant"}),
        _counted(database, threads),
        _counted(database, {**threads, "absent": True}),
    )
    several = asyncio.Semaphore(_AT_ONCE)

    async def last_position(thread_id: str) -> int:
        async with several:
            return await last_position_of(database, {"user_id": user_id, "thread_id": thread_id})

    positions = await asyncio.gather(*map(last_position, latest))
    return [
        ThreadOverview(
            thread_id, at, position, turns.get(thread_id, 0), messages.get(thread_id, 0) - absent.get(thread_id, 0)
        )
        for (thread_id, at), position in zip(latest.items(), positions, strict=True)
        if position  # else deleted between two of the queries
    ]


async def overview(database: MongoDatabase, thread: Record) -> ThreadOverview | None:
    """Return the overview of one thread, None where it has no message; `thread` selects its messages."""
    messages = database[CONVERSATIONS]
    newest, position, turns, stored, absent = await asyncio.gather(
        messages.find_one(thread, {"timestamp": True}, sort=[("timestamp", DESCENDING)]),
        last_position_of(database, thread),
        messages.count_documents({**thread, "role": "assistant"}),
        messages.count_documents(thread),
        messages.count_documents({**thread, "absent": True}),
    )
    if newest is None or not position:
        return None
    return ThreadOverview(thread["thread_id"], newest["timestamp"], position, turns, stored - absent)


async def openings(
    database: MongoDatabase, user_id: str, thread_ids: Sequence[str], *, characters: int
) -> dict[str, str]:
    """Return the first messages of threads, as `Conversations.openings` does."""
    messages, shown = database[CONVERSATIONS], {"_id": False, "thread_id": True, "content": True}
    said: Record = {"user_id": user_id, "thread_id": {"$in": [*thread_ids]}, "absent": {"$ne": True}}
    begun = messages.find({**said, "position": {"$lte": 2}}, shown).sort([("thread_id", 1), ("position", 1)])
    found: dict[str, str] = {}
    async for message in begun:
        found.setdefault(message["thread_id"], message["content"][:characters])
    # A thread whose first turn is gone begins further behind.
    for thread_id in [one for one in thread_ids if one not in found]:
        first = await messages.find_one({**said, "thread_id": thread_id}, shown, sort=[("position", 1)])
        if first is not None:
            found[thread_id] = first["content"][:characters]
    return found


async def last_position_of(database: MongoDatabase, thread: Record) -> int:
    """Return the greatest position in the thread; 0 where it has no message."""
    shown = {"position": True}
    last = await database[CONVERSATIONS].find_one(thread, shown, sort=[("position", DESCENDING)])
    return last["position"] if last else 0


async def _latest(
    database: MongoDatabase,
    user_id: str,
    *,
    limit: int,
    before: tuple[datetime, str] | None,
    wanted: Sequence[str] | None,
) -> dict[str, datetime]:
    """Return up to `limit` threads (of `wanted`, if given) with the time of their newest message, newest first."""
    found: dict[str, datetime] = {}
    query: Record = {"user_id": user_id}
    among: Record = {} if wanted is None else {"$in": [*wanted]}
    if among:
        query["thread_id"] = among
    earlier: set[str] = set()
    if before is not None:
        at, last = before
        later = {"user_id": user_id, "timestamp": {"$gt": at}}
        level = {"user_id": user_id, "timestamp": at, "thread_id": {"$gte": last}}
        newer = await asyncio.gather(_counted(database, later), _counted(database, level))
        earlier = {thread_id for threads in newer for thread_id in threads}
        query["timestamp"] = {"$lte": at}
    while len(found) < limit:
        passed = sorted({*earlier, *found})
        if passed:
            query["thread_id"] = {**among, "$nin": passed}
        newest = database[CONVERSATIONS].find(query, {"_id": False, "thread_id": True, "timestamp": True})
        page = await newest.sort([*_NEWEST]).limit(_PAGE).to_list()
        for document in page:
            found.setdefault(document["thread_id"], document["timestamp"])
        if len(page) < _PAGE:
            break
    return dict(list(found.items())[: max(limit, 0)])


async def _saying(database: MongoDatabase, user_id: str, text: str) -> list[str]:
    """Return the ids of the threads that have `text` in their id, their title or their first message."""
    says = {"$regex": re.escape(text), "$options": "i"}
    titled = database[THREADS].find({"user_id": user_id, "title": says}, {"_id": False, "thread_id": True})
    opening: Record = {"user_id": user_id, "position": {"$lte": 2}, "absent": {"$ne": True}}
    shown = {"_id": False, "thread_id": True}
    begun = database[CONVERSATIONS].find({**opening, "$or": [{"content": says}, {"thread_id": says}]}, shown)
    first = {document["thread_id"] for document in await begun.to_list()}
    return sorted(first | {document["thread_id"] for document in await titled.to_list()})


async def _counted(database: MongoDatabase, query: Record) -> dict[str, int]:
    """Return how many messages of each thread `query` finds."""
    groups = [{"$match": query}, {"$group": {"_id": "$thread_id", "count": {"$sum": 1}}}]
    counted = await (await database[CONVERSATIONS].aggregate(groups)).to_list()
    return {group["_id"]: group["count"] for group in counted}
