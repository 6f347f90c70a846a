"""Lists a field's distinct texts by one query each: it seeks the next text along an index on the field.

MongoDB's `distinct` cannot be limited in number, nor in time on servers that imitate MongoDB.
"""

from pymongo import ASCENDING
from pymongo.asynchronous.collection import AsyncCollection

from recollect.memory.stores.mongo.connection import Record

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
