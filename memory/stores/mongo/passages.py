"""Keeps passages in MongoDB, one document each, so that no text exceeds the size limit of a document.

`_id` joins owner, document, version and place. There are no transactions: `add` writes first, then looks at the header
again, and removes what it wrote for a document that was deleted meanwhile.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import fields

from pymongo import ASCENDING
from pymongo.errors import BulkWriteError
from typing_extensions import override

from recollect.memory.background.batches import batches
from recollect.memory.ports.passages import Passages
from recollect.memory.stores.mongo.connection import DOCUMENTS, MARK, PASSAGES, MongoConnection, Record
from recollect.memory.values.document import Passage

_BATCH = 500
_PORTION = 64
"""So many are changed in one call: servers that write each by itself would take longer than a call may."""
_DUPLICATE = 11_000
_FIELDS = tuple(item.name for item in fields(Passage))


class MongoPassages(Passages):
    """Implements Passages over the `passages` collection."""

    def __init__(self, connection: MongoConnection) -> None:
        self._connection = connection

    @override
    async def add(self, passages: Sequence[Passage]) -> bool:
        if not passages:
            return True
        first = passages[0]
        async with self._connection.use() as database:
            try:
                await database[PASSAGES].insert_many([_from_passage(one) for one in passages], ordered=False)
            except BulkWriteError as error:
                if any(failed["code"] != _DUPLICATE for failed in error.details["writeErrors"]):
                    raise
        # Read after the insert: a deletion of the header that this read does not see finds the passages itself.
        header = await self._header(first.user_id, first.document_id)
        if header is not None and header["incoming"] == first.version:
            return True
        # A header that already names this version has it whole: these passages were repeats, and stay.
        if header is None or header["version"] != first.version:
            await self.remove(passages)
        return False

    @override
    async def passages(self, *, user_id: str, passage_ids: Sequence[str]) -> list[Passage]:
        if not passage_ids:
            return []
        found = await self._found({"user_id": user_id, "id": {"$in": list(passage_ids)}})
        keys = list({f"{user_id}/{passage.document_id}" for passage in found})
        async with self._connection.use() as database:
            named: Record = {"user_id": user_id, "_id": {"$in": keys}}
            headers = await database[DOCUMENTS].find(named, {"id": 1, "version": 1}).to_list()
        versions = {(header["id"], header["version"]) for header in headers}
        return [passage for passage in found if (passage.document_id, passage.version) in versions]

    @override
    async def of_document(self, *, user_id: str, document_id: str) -> AsyncIterator[Sequence[Passage]]:
        query = await self._named(user_id, document_id)
        while query is not None and (found := await self._found(query, limit=_BATCH)):
            yield found
            query["place"] = {"$gt": found[-1].place}

    @override
    async def owed(self, *, user_id: str, document_id: str, limit: int) -> list[Passage]:
        query = await self._named(user_id, document_id)
        return [] if query is None else await self._found({**query, "indexed": False}, limit=limit)

    @override
    async def count_owed(self, user_id: str, *, document_id: str | None = None) -> int:
        ids = [document_id] if document_id is not None else await self._unfinished(user_id)
        total = 0
        for one in ids:
            query = await self._named(user_id, one)
            if query is not None:
                async with self._connection.use() as database:
                    total += await database[PASSAGES].count_documents({**query, "indexed": False})
        return total

    @override
    async def mark_indexed(self, passages: Sequence[Passage]) -> int:
        marked = 0
        for batch in batches(passages, _PORTION):
            these = _these(batch)
            async with self._connection.use() as database:
                marked += (await database[PASSAGES].update_many(these, {"$set": {"indexed": True}})).matched_count
        return marked

    @override
    async def outdated(self, *, user_id: str, document_id: str, limit: int) -> list[Passage]:
        query: Record = {"user_id": user_id, "document_id": document_id}
        header = await self._header(user_id, document_id)
        if header is not None:
            query["version"] = {"$nin": [header["version"], header["incoming"]]}
        found = await self._found(query, limit=limit)
        return [passage for passage in found if passage.version == found[0].version]

    @override
    async def remove(self, passages: Sequence[Passage]) -> int:
        removed = 0
        for batch in batches(passages, _PORTION):
            these = _these(batch)
            async with self._connection.use() as database:
                removed += (await database[PASSAGES].delete_many(these)).deleted_count
        return removed

    @override
    async def indexed(self, *, user_id: str | None = None) -> AsyncIterator[Sequence[Passage]]:
        query: Record = {"indexed": True} if user_id is None else {"user_id": user_id, "indexed": True}
        while found := await self._found(query, limit=_BATCH, order=("_id",)):
            yield found
            query["_id"] = {"$gt": _key(found[-1])}

    @override
    async def count_indexed(self) -> int:
        async with self._connection.use() as database:
            return await database[PASSAGES].count_documents({"indexed": True})

    async def _header(self, user_id: str, document_id: str) -> Record | None:
        async with self._connection.use() as database:
            key: Record = {"user_id": user_id, "_id": f"{user_id}/{document_id}"}
            return await database[DOCUMENTS].find_one(key, {"version": 1, "incoming": 1})

    async def _named(self, user_id: str, document_id: str) -> Record | None:
        """Return the query for passages of the header's version; None where the document is gone."""
        header = await self._header(user_id, document_id)
        if header is None:
            return None
        return {"user_id": user_id, "document_id": document_id, "version": header["version"]}

    async def _unfinished(self, user_id: str) -> list[str]:
        query: Record = {"user_id": user_id, "status": {"$in": ["processing", "failed"]}}
        async with self._connection.use() as database:
            return [document["id"] for document in await database[DOCUMENTS].find(query, {"id": 1}).to_list()]

    async def _found(
        self, query: Record, *, limit: int = 0, order: Sequence[str] = ("version", "place")
    ) -> list[Passage]:
        async with self._connection.use() as database:
            found = database[PASSAGES].find(query).sort([(name, ASCENDING) for name in order]).limit(limit)
            return [_to_passage(document) for document in await found.to_list()]


def _key(passage: Passage) -> str:
    return f"{passage.user_id}/{passage.document_id}/{passage.version}/{passage.place}"


def _these(passages: Sequence[Passage]) -> Record:
    """Return the query for these passages: their owners lead, so that a sharded cluster asks their shards alone."""
    owners = list({passage.user_id for passage in passages})
    return {"user_id": {"$in": owners}, "_id": {"$in": [_key(passage) for passage in passages]}}


def _from_passage(passage: Passage) -> Record:
    return {**MARK, **{name: getattr(passage, name) for name in _FIELDS}, "_id": _key(passage)}


def _to_passage(document: Record) -> Passage:
    return Passage(**{name: document[name] for name in _FIELDS if name in document})
