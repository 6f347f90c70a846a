"""Lists a field's distinct texts, such as users, by one query each: it seeks the next text along an index on the field.

MongoDB's `distinct` cannot be limited in number, nor in time on servers that imitate MongoDB.
"""

import asyncio
from collections.abc import Sequence

from pymongo import ASCENDING
from pymongo.asynchronous.collection import AsyncCollection

from recollect.memory.stores.mongo.connection import MongoDatabase, Record

_PAGE = 100


async def distinct_of(
    collection: AsyncCollection[Record], field: str, *, limit: int, query: Record, after: str = ""
) -> list[str]:
    """Return the first `limit` texts above `after` of `field` in documents that `query` finds, ascending."""
    texts: list[str] = []
    while len(texts) < limit:
        wanted: Record = {**query, field: {"$gt": texts[-1] if texts else after}}
        page = collection.find(wanted, {"_id": False, field: True}).sort(field, ASCENDING)
        found = await page.limit(_PAGE).to_list()
        texts += dict.fromkeys(document[field] for document in found)
        if len(found) < _PAGE:
            break
    return texts[: max(limit, 0)]


async def users_of(
    database: MongoDatabase, collection: str, *, limit: int, after: str = "", query: Record | None = None
) -> list[str]:
    """Return the first `limit` users above `after` who have a document that `query` finds, ascending."""
    return await distinct_of(database[collection], "user_id", limit=limit, after=after, query=query or {})


async def users_of_any(database: MongoDatabase, collections: Sequence[str], *, limit: int, after: str) -> list[str]:
    """Return the first `limit` users above `after` who have a document in any of the collections, ascending."""
    found = await asyncio.gather(
        *(users_of(database, collection, limit=limit, after=after) for collection in collections)
    )
    return sorted({user for users in found for user in users})[:limit]
