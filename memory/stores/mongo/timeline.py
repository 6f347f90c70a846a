"""Finds messages by time and by position in MongoDB.

Only a reply's document says whether its turn is indexed, so each page of messages takes a second query for them.
"""

import asyncio
from collections.abc import Mapping, Sequence

from pymongo import ASCENDING, DESCENDING
from typing_extensions import override

from recollect.memory.ports.timeline import Timeline
from recollect.memory.stores.mongo.connection import CONVERSATIONS, MongoConnection, MongoDatabase, Record
from recollect.memory.stores.mongo.filtering.narrowed import narrowed
from recollect.memory.stores.mongo.leaps import distinct_of
from recollect.memory.stores.mongo.message_document import DESCRIBED_ONLY, MESSAGE_ONLY, SAID, to_message
from recollect.memory.stores.mongo.turns import these
from recollect.memory.stores.period_bounds import bounds_ms
from recollect.memory.values.filtering.narrow import ALL, Narrow
from recollect.memory.values.period import Period
from recollect.memory.values.scope import Scope
from recollect.memory.values.times import from_ms
from recollect.memory.values.turn import Message, derived_id

_AT_ONCE = 20
_LEAST_PAGE = 8
_BY_TIME_IN_THREAD = ("timestamp", "position")
_BY_TIME = ("timestamp", "thread_id", "position")
_BY_PLACE = ("position",)
_BY_THREAD = ("thread_id", "position")

Place = tuple[str, str, int]
"""A user, a thread and a position."""


class MongoTimeline(Timeline):
    """Implements Timeline over the `conversations` collection."""

    def __init__(self, connection: MongoConnection) -> None:
        self._connection = connection

    @override
    async def names(self, user_id: str, *, limit: int) -> list[str]:
        async with self._connection.use() as database:
            return await distinct_of(database[CONVERSATIONS], "name", limit=limit, query={"user_id": user_id})

    @override
    async def during(self, scope: Scope, period: Period, *, limit: int, where: Narrow = ALL) -> list[Message]:
        begin, end = map(from_ms, bounds_ms(period))
        query = {**_of(scope), "timestamp": {"$gte": begin, "$lt": end}}
        query = narrowed(query, where, "episode", self._connection.keys)
        async with self._connection.use() as database:
            return await _first(database, query, _by_time(scope), limit=limit)

    @override
    async def latest(self, scope: Scope, *, limit: int, where: Narrow = ALL) -> list[Message]:
        query = narrowed(_of(scope), where, "episode", self._connection.keys)
        async with self._connection.use() as database:
            return await _first(database, query, _by_time(scope), limit=limit, direction=DESCENDING)

    @override
    async def described(
        self, scope: Scope, *, limit: int, before: Message | None = None, where: Narrow = ALL
    ) -> list[Message]:
        order, query = _by_time(scope), _of(scope)
        if before is not None:
            query = {**query, "$or": _older(before, order)}
        query = narrowed(query, where, "episode", self._connection.keys)
        async with self._connection.use() as database:
            return await _first(database, query, order, limit=limit, direction=DESCENDING, shown=DESCRIBED_ONLY)

    @override
    async def threads(self, user_id: str, *, where: Narrow) -> list[str]:
        """Seek from one thread's first message to the next one's."""
        query = narrowed({"user_id": user_id}, where, "episode", self._connection.keys)
        found: list[str] = []
        async with self._connection.use() as database:
            while first := await _first(database, query, _BY_THREAD, limit=1, shown=DESCRIBED_ONLY):
                found.append(first[0].thread_id)
                query["thread_id"] = {"$gt": found[-1]}
        return found

    @override
    async def preceding(self, messages: Sequence[Message], *, count: int) -> dict[str, list[str]]:
        """Read by one query, and one more for each message that has many unindexed or absent ones before it."""
        if count < 1 or not messages:
            return {}
        span = 2 * count + 1
        async with self._connection.use() as database:
            near = await _near(database, messages, span)
            several = asyncio.Semaphore(_AT_ONCE)

            async def before(message: Message) -> list[Message]:
                found = _before(near, message, span)
                if len(found) >= count or message.position - span <= 1:
                    return found
                own = [one for one in found if one.turn_id == message.turn_id]
                query = {**_of(message.scope), "position": {"$lt": _begin(message)}}
                async with several:
                    return own + await _first(database, query, _BY_PLACE, limit=count, direction=DESCENDING)

            said = await asyncio.gather(*map(before, messages))
        pairs = zip(messages, said, strict=True)
        return {message.id: [one.content for one in found[:count]] for message, found in pairs if found}

    @override
    async def around(self, scope: Scope, position: int, *, before: int, after: int) -> list[Message]:
        thread: Record = {"user_id": scope.user_id, "thread_id": scope.thread}
        below, above = {**thread, "position": {"$lt": position}}, {**thread, "position": {"$gt": position}}
        async with self._connection.use() as database:
            earlier, later = await asyncio.gather(
                _first(database, below, _BY_PLACE, limit=before, direction=DESCENDING),
                _first(database, above, _BY_PLACE, limit=after),
            )
        return [*reversed(earlier), *later]


def _of(scope: Scope) -> Record:
    user: Record = {"user_id": scope.user_id}
    return user if scope.thread_id is None else {**user, "thread_id": scope.thread_id}


def _older(message: Message, order: Sequence[str]) -> list[Record]:
    """Return what finds the messages that `order` puts before `message`."""
    place = {"timestamp": message.created_at, "thread_id": message.thread_id, "position": message.position}
    equal = [{field: place[field] for field in order[:depth]} for depth in range(len(order))]
    return [{**same, field: {"$lt": place[field]}} for same, field in zip(equal, order, strict=True)]


def _by_time(scope: Scope) -> Sequence[str]:
    return _BY_TIME if scope.thread_id is None else _BY_TIME_IN_THREAD


async def _first(
    database: MongoDatabase,
    query: Record,
    order: Sequence[str],
    *,
    limit: int,
    direction: int = ASCENDING,
    shown: Mapping[str, bool] = MESSAGE_ONLY,
) -> list[Message]:
    """Return the first `limit` messages of `query` in this order whose turn is indexed and which are not absent."""
    if limit < 1:
        return []
    size = max(limit, _LEAST_PAGE)
    found: list[Message] = []
    stored = database[CONVERSATIONS].find({**query, **SAID}, shown).batch_size(size)
    async with stored.sort([(field, direction) for field in order]) as cursor:
        while len(found) < limit and (page := await cursor.to_list(size)):
            found += await _searchable(database, page)
    return found[:limit]


async def _searchable(database: MongoDatabase, page: Sequence[Record]) -> list[Message]:
    """Return the messages of `page` whose turn is indexed."""
    replies = {each["_id"]: derived_id(each["user_id"], each["message_pair_id"], "assistant") for each in page}
    indexed = {each["_id"] for each in page if each.get("indexed")}
    asked = [reply for message, reply in replies.items() if message != reply]
    if asked:
        query = {**these(list({each["user_id"] for each in page}), asked), "indexed": True}
        found = await database[CONVERSATIONS].find(query, {"_id": True}).to_list()
        indexed |= {each["_id"] for each in found}
    return [to_message(each) for each in page if replies[each["_id"]] in indexed]


async def _near(database: MongoDatabase, messages: Sequence[Message], span: int) -> Mapping[Place, Record]:
    """Return all documents at the `span` positions before each message, by user, thread and position."""
    threads: dict[tuple[str, str], set[int]] = {}
    for message in messages:
        places = range(message.position - span, message.position)
        threads.setdefault((message.user_id, message.thread_id), set()).update(places)
    any_thread = [
        {"user_id": user_id, "thread_id": thread_id, "position": {"$in": sorted(positions)}}
        for (user_id, thread_id), positions in threads.items()
    ]
    users = list({user_id for user_id, _ in threads})
    near: Record = {"user_id": {"$in": users}, "$or": any_thread}
    found = await database[CONVERSATIONS].find(near, MESSAGE_ONLY).to_list()
    return {(each["user_id"], each["thread_id"], each["position"]): each for each in found}


def _before(near: Mapping[Place, Record], message: Message, span: int) -> list[Message]:
    """Return what search may find of the `span` positions before `message`, nearest first."""
    begin = _begin(message)
    found: list[Message] = []
    for position in range(message.position - 1, message.position - span - 1, -1):
        stored = near.get((message.user_id, message.thread_id, position))
        reply = near.get((message.user_id, message.thread_id, position + position % 2), {})
        if stored is not None and not stored.get("absent") and (position >= begin or reply.get("indexed")):
            found.append(to_message(stored))
    return found


def _begin(message: Message) -> int:
    """Return the position of the user's message in the turn of `message`."""
    return message.position - 1 + message.position % 2
