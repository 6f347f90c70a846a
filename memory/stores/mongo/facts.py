"""Facts in MongoDB: one document per version, fields as in `Fact`.

`_id` joins user and fact, so that an id is unique per user; `home` says where a fact lives: a thread's id for working
memory, "" for the user's own.
"""

from dataclasses import fields
from datetime import datetime

from pymongo import ASCENDING, DESCENDING
from pymongo.errors import DuplicateKeyError

from memory.fact import Fact
from memory.scope import Scope
from memory.stores.mongo.connection import FACTS, Connection, Document

_FIELDS = tuple(item.name for item in fields(Fact))


class MongoFacts:
    """The `user_facts` collection as the port wants it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def insert(self, fact: Fact) -> bool:
        """See the port."""
        async with self._connection.use() as database:
            try:
                await database[FACTS].insert_one(_from_fact(fact))
            except DuplicateKeyError:
                return False
        return True

    async def end(self, fact: Fact, *, at: datetime) -> bool:
        """See the port."""
        async with self._connection.use() as database:
            done = await database[FACTS].update_one(_living(fact), {"$set": {"valid_to": at, "updated_at": at}})
        return done.matched_count == 1

    async def confirm(self, fact: Fact, *, at: datetime) -> bool:
        """See the port."""
        async with self._connection.use() as database:
            done = await database[FACTS].update_one(_living(fact), {"$max": {"confirmed_at": at}})
        return done.matched_count == 1

    async def fact(self, *, user_id: str, fact_id: str) -> Fact | None:
        """See the port."""
        async with self._connection.use() as database:
            found = await database[FACTS].find_one({"_id": _key(user_id, fact_id)})
        return None if found is None else _to_fact(found)

    async def living(self, scope: Scope, *, limit: int) -> list[Fact]:
        """See the port."""
        return await self._ordered(_in_force(scope), DESCENDING, limit)

    async def page(self, scope: Scope, *, limit: int, after: str | None = None) -> list[Fact]:
        """See the port. `after` may have ended since; where it is gone altogether the page is empty."""
        query = _in_force(scope)
        if after is not None:
            last = await self.fact(user_id=scope.user_id, fact_id=after)
            if last is None:
                return []
            later = {"created_at": {"$gt": last.created_at}}
            query["$or"] = [later, {"created_at": last.created_at, "id": {"$gt": last.id}}]
        return await self._ordered(query, ASCENDING, limit)

    async def delete(self, scope: Scope) -> int:
        """See the port."""
        query = {"user_id": scope.user_id}
        if scope.thread_id is not None:
            query["home"] = scope.thread_id
        async with self._connection.use() as database:
            return (await database[FACTS].delete_many(query)).deleted_count

    async def _ordered(self, query: Document, direction: int, limit: int) -> list[Fact]:
        if limit < 1:
            return []
        async with self._connection.use() as database:
            found = database[FACTS].find(query).sort([("created_at", direction), ("id", direction)]).limit(limit)
            return [_to_fact(document) for document in await found.to_list()]


def _key(user_id: str, fact_id: str) -> str:
    return f"{user_id}/{fact_id}"


def _living(fact: Fact) -> Document:
    return {"_id": _key(fact.user_id, fact.id), "valid_to": None}


def _in_force(scope: Scope) -> Document:
    homes = [""] if scope.thread_id is None else ["", scope.thread_id]
    return {"user_id": scope.user_id, "home": {"$in": homes}, "valid_to": None}


def _from_fact(fact: Fact) -> Document:
    document: Document = {name: getattr(fact, name) for name in _FIELDS}
    home = (fact.thread_id or "") if fact.scope == "thread" else ""
    return {**document, "_id": _key(fact.user_id, fact.id), "tags": list(fact.tags), "home": home}


def _to_fact(document: Document) -> Fact:
    values = {name: document[name] for name in _FIELDS}
    values["tags"] = tuple(values["tags"])
    return Fact(**values)
