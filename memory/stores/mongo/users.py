"""The users of a collection, by leaps from one to the next along an index that has `user_id`."""

import asyncio
from collections.abc import Sequence

from pymongo import ASCENDING

from memory.stores.mongo.connection import Database, Document

_PAGE = 100


async def users_of(
    database: Database, collection: str, *, limit: int, after: str = "", query: Document | None = None
) -> list[str]:
    """The first `limit` users above `after` who have a document that `query` finds, ascending."""
    users: list[str] = []
    while len(users) < limit:
        wanted: Document = {**(query or {}), "user_id": {"$gt": users[-1] if users else after}}
        page = database[collection].find(wanted, {"_id": False, "user_id": True}).sort("user_id", ASCENDING)
        found = await page.limit(_PAGE).to_list()
        users += dict.fromkeys(document["user_id"] for document in found)
        if len(found) < _PAGE:
            break
    return users[:limit]


async def users_of_any(database: Database, collections: Sequence[str], *, limit: int, after: str) -> list[str]:
    """The first `limit` users above `after` who have a document in one of the collections, ascending."""
    found = await asyncio.gather(
        *(users_of(database, collection, limit=limit, after=after) for collection in collections)
    )
    return sorted({user for users in found for user in users})[:limit]
