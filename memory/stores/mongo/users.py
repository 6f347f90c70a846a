"""The users of a collection, by leaps from one to the next along an index that has `user_id`."""

import asyncio
from collections.abc import Sequence

from memory.stores.mongo.connection import Database, Document
from memory.stores.mongo.leaps import distinct_of


async def users_of(
    database: Database, collection: str, *, limit: int, after: str = "", query: Document | None = None
) -> list[str]:
    """The first `limit` users above `after` who have a document that `query` finds, ascending."""
    return await distinct_of(database[collection], "user_id", limit=limit, after=after, query=query or {})


async def users_of_any(database: Database, collections: Sequence[str], *, limit: int, after: str) -> list[str]:
    """The first `limit` users above `after` who have a document in one of the collections, ascending."""
    found = await asyncio.gather(
        *(users_of(database, collection, limit=limit, after=after) for collection in collections)
    )
    return sorted({user for users in found for user in users})[:limit]
