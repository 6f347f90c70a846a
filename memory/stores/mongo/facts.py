"""Keeps facts in MongoDB, in the documents of `fact_document.py`."""

import asyncio
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Sequence
from datetime import datetime

from pymongo import ASCENDING, DESCENDING
from pymongo.errors import BulkWriteError, DuplicateKeyError
from typing_extensions import override

from recollect.memory.background.batches import batches
from recollect.memory.ports.facts import FactFilter, Facts
from recollect.memory.stores.mongo.connection import FACTS, MongoConnection, Record
from recollect.memory.stores.mongo.fact_document import from_fact, key, one, to_fact
from recollect.memory.stores.mongo.filtering.narrowed import narrowed
from recollect.memory.stores.mongo.leaps import users_of
from recollect.memory.values.fact import Fact
from recollect.memory.values.filtering.narrow import ALL, Narrow
from recollect.memory.values.scope import GLOBAL_USER, Scope

_BATCH = 500
_PORTION = 20
"""So many facts are written at a time: a call has five seconds, also on servers that look through all for each one."""
_DUPLICATE = 11_000
_NEWEST = (("created_at", DESCENDING), ("id", DESCENDING))
_OLDEST = (("created_at", ASCENDING), ("id", ASCENDING))
_WEAKEST = (("importance", ASCENDING), ("confirmed_at", ASCENDING))


class MongoFacts(Facts):
    """Implements Facts over the `user_facts` collection."""

    def __init__(self, connection: MongoConnection) -> None:
        self._connection = connection

    @override
    async def insert(self, fact: Fact) -> bool:
        async with self._connection.use() as database:
            try:
                await database[FACTS].insert_one(from_fact(fact, self._connection.keys))
            except DuplicateKeyError:
                return False
        return True

    @override
    async def insert_all(self, facts: Sequence[Fact]) -> set[str]:
        refused: set[str] = set()
        async with self._connection.use() as database:
            for some in batches(facts, _PORTION):
                documents = [from_fact(fact, self._connection.keys) for fact in some]
                try:
                    await database[FACTS].insert_many(documents, ordered=False)
                except BulkWriteError as error:
                    problems: list[Record] = error.details["writeErrors"]
                    if not problems or any(problem["code"] != _DUPLICATE for problem in problems):
                        raise
                    places: list[int] = [problem["index"] for problem in problems]
                    refused |= {some[place].id for place in places}
        return {fact.id for fact in facts} - refused

    @override
    async def replace(self, fact: Fact, *, revision: int) -> bool:
        stored: Record = {**one(fact.user_id, fact.id), "revision": revision}
        async with self._connection.use() as database:
            replaced = await database[FACTS].replace_one(stored, from_fact(fact, self._connection.keys))
            return replaced.matched_count == 1

    @override
    async def fact(self, *, user_id: str, fact_id: str) -> Fact | None:
        async with self._connection.use() as database:
            found = await database[FACTS].find_one(one(user_id, fact_id))
        return None if found is None else to_fact(found)

    @override
    async def facts(self, *, user_id: str, fact_ids: Sequence[str]) -> list[Fact]:
        keys = [key(user_id, fact_id) for fact_id in fact_ids]
        return await self._found({"user_id": user_id, "_id": {"$in": keys}}, limit=len(keys))

    @override
    async def living(
        self,
        scope: Scope,
        *,
        at: datetime,
        limit: int,
        with_global: bool = False,
        keys: Collection[str] | None = None,
    ) -> list[Fact]:
        wanted = _living(scope, at, with_global=with_global)
        if keys is not None:
            wanted["key"] = {"$in": [*keys]}
        return await self._found(wanted, limit=limit, order=_NEWEST)

    @override
    async def proposed(self, scope: Scope, *, limit: int) -> list[Fact]:
        return await self._found(_proposed(scope), limit=limit, order=_NEWEST)

    @override
    async def known(self, scope: Scope, *, at: datetime, living: int, proposed: int) -> tuple[list[Fact], list[Fact]]:
        """Read both by one query, unless there are more than were asked for."""
        either = _living(scope, at, with_global=True)
        if proposed:
            either = {"user_id": either["user_id"], "$or": [either, _proposed(scope)]}
        found = await self._found(either, limit=living + proposed, order=_NEWEST)
        waiting = [fact for fact in found if fact.status == "proposed"]
        if proposed and len(found) == living + proposed:
            found, waiting = await asyncio.gather(
                self.living(scope, at=at, limit=living, with_global=True), self.proposed(scope, limit=proposed)
            )
        return [fact for fact in found if fact.status != "proposed"][:living], waiting[:proposed]

    @override
    async def page(self, user_id: str, shown: FactFilter, *, limit: int, after: str | None = None) -> list[Fact]:
        order = _NEWEST if shown.newest_first else _OLDEST
        return await self._page({"user_id": user_id, **_shown(shown)}, limit=limit, after=after, order=order)

    @override
    async def notes(
        self, user_id: str, *, at: datetime, tag: str | None = None, limit: int, after: str | None = None
    ) -> list[Fact]:
        query = {"user_id": user_id, "key": None, **_shown(FactFilter(at, tag=tag))}
        return await self._page(query, limit=limit, after=after, order=_NEWEST)

    @override
    async def successors(self, *, user_id: str, fact_id: str) -> list[Fact]:
        return await self._found({"user_id": user_id, "replaces": fact_id}, order=_OLDEST)

    @override
    async def owed(self, *, user_id: str, limit: int) -> list[Fact]:
        return await self._found({"user_id": user_id, "indexed": False}, limit=limit)

    @override
    async def owed_users(self, *, limit: int) -> list[str]:
        async with self._connection.use() as database:
            return await users_of(database, FACTS, limit=limit, query={"indexed": False})

    @override
    async def mark_indexed(self, facts: Sequence[Fact]) -> set[str]:
        by_revision: dict[int, list[Fact]] = defaultdict(list)
        for fact in facts:
            by_revision[fact.revision].append(fact)
        marked: set[str] = set()
        for revision, alike in by_revision.items():
            for some in batches(alike, _PORTION):
                marked |= await self._marked(some, revision)
        return marked

    @override
    async def indexed(self, *, user_id: str | None = None, where: Narrow = ALL) -> AsyncIterator[Sequence[Fact]]:
        query: Record = {} if user_id is None else {"user_id": user_id}
        query = narrowed({**query, "indexed": True, "state": "open"}, where, "fact", self._connection.keys)
        while facts := await self._found(query, limit=_BATCH, order=(("_id", ASCENDING),)):
            yield facts
            query["_id"] = {"$gt": key(facts[-1].user_id, facts[-1].id)}

    @override
    async def count_indexed(self) -> int:
        return await self._count({"indexed": True, "state": "open"})

    @override
    async def every(self, user_id: str) -> AsyncIterator[Sequence[Fact]]:
        # `_id` joins the user's id and the fact's, so it sorts a user's facts by their ids.
        query: Record = {"user_id": user_id, "_id": {"$gt": key(user_id, "")}}
        while facts := await self._found(query, limit=_BATCH, order=(("_id", ASCENDING),)):
            yield facts
            query["_id"] = {"$gt": key(user_id, facts[-1].id)}

    @override
    async def aged(self, *, before: datetime, limit: int) -> list[Fact]:
        query: Record = {"pinned": False, "confirmed_at": {"$lt": before}, "state": {"$ne": "forgotten"}}
        return await self._found(query, limit=limit, order=(("confirmed_at", ASCENDING),))

    @override
    async def count_open(self, scope: Scope) -> int:
        return await self._count({**_owned(scope), "state": "open"})

    @override
    async def has_notes(self, scope: Scope, *, besides: Sequence[str] = ()) -> bool:
        query: Record = {"user_id": scope.user_id, "state": "open", "key": None, "turn_id": {"$nin": list(besides)}}
        return bool(await self._found(query, limit=1, order=()))

    @override
    async def weakest(self, scope: Scope, *, limit: int) -> list[Fact]:
        query: Record = {**_owned(scope), "state": "open", "pinned": False}
        return await self._found(query, limit=limit, order=_WEAKEST)

    @override
    async def remove(self, *, user_id: str, fact_ids: Sequence[str]) -> int:
        keys = [key(user_id, fact_id) for fact_id in fact_ids]
        return await self._delete({"user_id": user_id, "_id": {"$in": keys}})

    @override
    async def delete(self, scope: Scope) -> int:
        return await self._delete(_owned(scope))

    async def _marked(self, facts: Sequence[Fact], revision: int) -> set[str]:
        """Mark those of these facts of a user as indexed that are stored at `revision`, and return their ids."""
        keys = [key(fact.user_id, fact.id) for fact in facts]
        stored: Record = {"user_id": facts[0].user_id, "_id": {"$in": keys}, "revision": revision}
        async with self._connection.use() as database:
            written = await database[FACTS].update_many(stored, {"$set": {"indexed": True}})
            if written.matched_count == len(facts):
                return {fact.id for fact in facts}
            found = await database[FACTS].find({**stored, "indexed": True}, {"id": True}).to_list()
        return {document["id"] for document in found}

    async def _found(
        self, query: Record, *, limit: int | None = None, order: Sequence[tuple[str, int]] = ()
    ) -> list[Fact]:
        if limit is not None and limit < 1:
            return []
        async with self._connection.use() as database:
            found = database[FACTS].find(query).limit(limit or 0)
            return [to_fact(document) for document in await (found.sort([*order]) if order else found).to_list()]

    async def _page(
        self, query: Record, *, limit: int, after: str | None, order: Sequence[tuple[str, int]]
    ) -> list[Fact]:
        """Return one page of the facts that `query` finds, in `order`, after the fact with id `after`."""
        if after is not None:
            last = await self.fact(user_id=query["user_id"], fact_id=after)
            if last is None:
                return []
            beyond = "$gt" if order is _OLDEST else "$lt"
            farther = {"created_at": {beyond: last.created_at}}
            query = {**query, "$or": [farther, {"created_at": last.created_at, "id": {beyond: last.id}}]}
        return await self._found(query, limit=limit, order=order)

    async def _count(self, query: Record) -> int:
        async with self._connection.use() as database:
            return await database[FACTS].count_documents(query)

    async def _delete(self, query: Record) -> int:
        async with self._connection.use() as database:
            return (await database[FACTS].delete_many(query)).deleted_count


def _homes(thread_id: str | None) -> list[str]:
    return [""] if thread_id is None else ["", thread_id]


def _owned(scope: Scope) -> Record:
    owned = {"user_id": scope.user_id}
    return owned if scope.thread_id is None else {**owned, "home": scope.thread_id}


def _living(scope: Scope, at: datetime, *, with_global: bool) -> Record:
    """Return the query for facts that hold: an index over `until` finds them, and none of the history."""
    users = [scope.user_id, GLOBAL_USER] if with_global else [scope.user_id]
    holding: Record = {"state": {"$in": ["open", "ended"]}, "until": {"$gt": at}}
    return {"user_id": {"$in": users}, "home": {"$in": _homes(scope.thread_id)}, **holding}


def _proposed(scope: Scope) -> Record:
    return {"user_id": scope.user_id, "home": {"$in": _homes(scope.thread_id)}, "state": "proposed"}


def _shown(shown: FactFilter) -> Record:
    at = shown.as_of or shown.now
    query: Record = {"state": shown.status}
    if shown.status in {None, "active"}:
        query = {"state": {"$in": ["open", "ended"]}, "valid_from": {"$lte": at}, "until": {"$gt": at}}
    if shown.scope is not None:
        query["scope"] = shown.scope
    if shown.tag is not None:
        query["tags"] = shown.tag
    if shown.text is not None:
        says = {"$regex": re.escape(shown.text), "$options": "i"}
        query["$and"] = [{"$or": [{"key": says}, {"value": says}, {"statement": says}]}]
    if shown.source is not None:
        query["source"] = shown.source
    if shown.keyed is not None:
        query["key"] = {"$ne": None} if shown.keyed else None
    if shown.scope == "thread":
        query["home"] = {"$gt": ""} if shown.thread_id is None else shown.thread_id
    else:
        query["home"] = {"$in": _homes(shown.thread_id if shown.scope is None else None)}
    return query
