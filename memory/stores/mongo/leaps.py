"""A field's texts, each once, by leaps from one to the next along an index that has the field.

`distinct` has no limit, and servers that imitate MongoDB give it none of time either.
"""

from pymongo import ASCENDING
from pymongo.asynchronous.collection import AsyncCollection

from memory.stores.mongo.connection import Document

_PAGE = 100


async def distinct_of(
    collection: AsyncCollection[Document], field: str, *, limit: int, query: Document, after: str = ""
) -> list[str]:
    """The first `limit` texts above `after` that the field has in documents that `query` finds, ascending."""
    texts: list[str] = []
    while len(texts) < limit:
        wanted: Document = {**query, field: {"$gt": texts[-1] if texts else after}}
        page = collection.find(wanted, {"_id": False, field: True}).sort(field, ASCENDING)
        found = await page.limit(_PAGE).to_list()
        texts += dict.fromkeys(document[field] for document in found)
        if len(found) < _PAGE:
            break
    return texts[: max(limit, 0)]
