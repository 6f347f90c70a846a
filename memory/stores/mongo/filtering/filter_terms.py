"""Keeps the terms of items in MongoDB: a list in each document, beside the digest of the keys that made them."""

from pymongo import UpdateOne
from typing_extensions import override

from recollect.memory.background.batches import batches
from recollect.memory.stores.json_text import from_json
from recollect.memory.stores.mongo.connection import CONVERSATIONS, MongoConnection, Record
from recollect.memory.stores.mongo.filtering.narrowed import ITEMS
from recollect.memory.stores.mongo.message_document import MESSAGE_ONLY, to_message
from recollect.memory.stores.mongo.records.schema_record import SchemaRecord
from recollect.memory.stores.stored_terms import StoredTerms, made_ends, terms_of
from recollect.memory.stores.text_record import RecordedTerms
from recollect.memory.values.filtering.terms import metadata_terms

_PORTION = 100
"""So many documents are written at a time: a call has five seconds."""


class MongoFilterTerms(RecordedTerms):
    """Implements FilterTerms over the items' documents, and a record of the whole database."""

    def __init__(self, connection: MongoConnection) -> None:
        super().__init__(SchemaRecord(connection, "filters"))
        self._connection = connection

    @override
    async def between(self, user_id: str, low: str, high: str, *, limit: int) -> list[str]:
        within = {"$gte": low, "$lt": high}
        groups = [
            {"$match": {"user_id": user_id, "terms": {"$elemMatch": within}}},
            {"$unwind": "$terms"},
            {"$match": {"terms": within}},
            {"$group": {"_id": "$terms"}},
            {"$limit": limit},
        ]
        found = dict[str, None]()
        async with self._connection.use() as database:
            for collection, _ in ITEMS.values():
                terms = await (await database[collection].aggregate(groups)).to_list()
                found |= dict.fromkeys(each["_id"] for each in terms)
        return list(found)[:limit]

    @override
    async def fill(self, user_id: str, *, limit: int) -> int:
        ends = made_ends(self._connection.keys)
        query: Record = {"user_id": user_id, "terms_by": {"$nin": list(ends)}}
        read = 0
        async with self._connection.use() as database:
            for collection, _ in ITEMS.values():
                shown = MESSAGE_ONLY if collection == CONVERSATIONS else {"metadata": True, "user_id": True}
                found = await database[collection].find(query, shown).limit(limit).to_list()
                read += len(found)
                changes = [UpdateOne(_as_read(each), {"$set": self._made(collection, each)}) for each in found]
                for batch in batches(changes, _PORTION):
                    await database[collection].bulk_write(batch, ordered=False)
        return read

    def _made(self, collection: str, document: Record) -> Record:
        keys = self._connection.keys
        if collection == CONVERSATIONS:
            made = terms_of(to_message(document), keys)
        else:
            # Facts of earlier versions have no metadata.
            made = StoredTerms(list(metadata_terms(from_json(document.get("metadata", "{}")), keys)), keys.digest)
        return {"terms": made.terms, "terms_by": made.made_by}


def _as_read(document: Record) -> Record:
    """Return the query for the document, if its metadata is still that which was read."""
    return {"user_id": document["user_id"], "_id": document["_id"], "metadata": document.get("metadata")}
