"""Lists the users of collections, by seeks along an index on `user_id`."""

import asyncio
from collections.abc import Sequence

from recollect.memory.stores.mongo.connection import MongoDatabase, Record
from recollect.memory.stores.mongo.leaps import distinct_of


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
