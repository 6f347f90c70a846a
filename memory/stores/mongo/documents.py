"""Keeps users' documents and attachments in MongoDB: a header each, beside the passages of `passages.py`.

`_id` joins owner and id; an attachment's joins user, thread and document. Metadata is JSON text.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime

from pymongo import ASCENDING, DESCENDING
from pymongo.errors import DuplicateKeyError
from typing_extensions import override

from recollect.memory.ports.documents import Documents
from recollect.memory.stores.json_text import from_json
from recollect.memory.stores.mongo.connection import ATTACHMENTS, DOCUMENTS, MARK, PASSAGES, MongoConnection, Record
from recollect.memory.stores.mongo.filtering.metadata_fields import metadata_fields
from recollect.memory.stores.mongo.filtering.narrowed import narrowed
from recollect.memory.stores.mongo.passages import MongoPassages
from recollect.memory.values.document import Attached, Document, Holdings
from recollect.memory.values.filtering.keys import FilterKeys
from recollect.memory.values.filtering.narrow import ALL, Narrow
from recollect.memory.values.scope import GLOBAL_USER, Scope

_FIELDS = tuple(item.name for item in fields(Document))
_NEWEST = [("created_at", DESCENDING), ("id", DESCENDING)]


class MongoDocuments(Documents):
    """Implements Documents over the collections of headers, passages and attachments."""

    def __init__(self, connection: MongoConnection) -> None:
        self.passages = MongoPassages(connection)
        self._connection = connection

    @override
    async def put(self, document: Document, *, revision: int) -> bool:
        async with self._connection.use() as database:
            if revision:
                stored: Record = {**_one(document.user_id, document.id), "revision": revision}
                replaced = await database[DOCUMENTS].replace_one(
                    stored, _from_document(document, self._connection.keys)
                )
                return replaced.matched_count == 1
            try:
                await database[DOCUMENTS].insert_one(_from_document(document, self._connection.keys))
            except DuplicateKeyError:
                return False
        return True

    @override
    async def document(self, *, user_id: str, document_id: str) -> Document | None:
        found = await self.by_ids(user_id=user_id, document_ids=[document_id])
        return found[0] if found else None

    @override
    async def by_ids(self, *, user_id: str, document_ids: Sequence[str]) -> list[Document]:
        keys = [_key(user_id, document_id) for document_id in document_ids]
        return await self._found({"user_id": user_id, "_id": {"$in": keys}}, limit=len(keys))

    @override
    async def page(
        self,
        user_id: str,
        *,
        limit: int,
        domain: str | None = None,
        before: tuple[datetime, str] | None = None,
        where: Narrow = ALL,
    ) -> list[Document]:
        query: Record = {"user_id": user_id}
        if domain is not None:
            query["domain"] = domain
        if before is not None:
            time, last = before
            query["$or"] = [{"created_at": {"$lt": time}}, {"created_at": time, "id": {"$lt": last}}]
        return await self._found(narrowed(query, where, "document", self._connection.keys), limit=limit)

    @override
    async def in_domains(self, user_id: str, domains: Sequence[str], *, limit: int) -> list[str]:
        query: Record = {"user_id": user_id, "domain": {"$in": list(domains)}}
        async with self._connection.use() as database:
            found = database[DOCUMENTS].find(query, {"id": 1}).sort(_NEWEST).limit(limit)
            return [document["id"] for document in await found.to_list()]

    @override
    async def holdings(self, user_id: str) -> Holdings:
        own, shared = await asyncio.gather(self._has({"user_id": user_id}), self._has({"user_id": GLOBAL_USER}))
        return Holdings(own, shared)

    @override
    async def is_empty(self) -> bool:
        return not await self._has({})

    @override
    async def processing(self, *, limit: int) -> list[Document]:
        async with self._connection.use() as database:
            found = database[DOCUMENTS].find({"status": "processing"}).sort("updated_at", ASCENDING).limit(limit)
            return [_to_document(document) for document in await found.to_list()]

    @override
    async def attach(self, scope: Scope, document: Document, *, at: datetime) -> bool:
        attachment: Record = {
            **MARK,
            "_id": f"{scope.user_id}/{scope.thread}/{document.id}",
            "user_id": scope.user_id,
            "thread_id": scope.thread,
            "document_id": document.id,
            "owner": document.user_id,
            "attached_at": at,
        }
        async with self._connection.use() as database:
            try:
                await database[ATTACHMENTS].insert_one(attachment)
            except DuplicateKeyError:
                return False
        return True

    @override
    async def detach(self, scope: Scope, *, document_id: str) -> bool:
        key = f"{scope.user_id}/{scope.thread}/{document_id}"
        async with self._connection.use() as database:
            return (await database[ATTACHMENTS].delete_one({"user_id": scope.user_id, "_id": key})).deleted_count == 1

    @override
    async def attached(self, scope: Scope) -> list[Attached]:
        found = await self._attached({"user_id": scope.user_id, "thread_id": scope.thread})
        return [attached for _, attached in found]

    @override
    async def attachments(self, user_id: str) -> Mapping[str, Sequence[Attached]]:
        found: dict[str, list[Attached]] = {}
        for thread_id, attached in await self._attached({"user_id": user_id}):
            found.setdefault(thread_id, []).append(attached)
        return found

    @override
    async def remove(self, *, user_id: str, document_id: str) -> bool:
        # The header goes first: passages added after that are removed by whoever adds them.
        async with self._connection.use() as database:
            removed = await database[DOCUMENTS].delete_one(_one(user_id, document_id))
            await database[PASSAGES].delete_many({"user_id": user_id, "document_id": document_id})
            await database[ATTACHMENTS].delete_many({**_attaching(user_id), "document_id": document_id})
        return removed.deleted_count == 1

    @override
    async def delete(self, scope: Scope) -> int:
        owned: Record = {"user_id": scope.user_id}
        async with self._connection.use() as database:
            if scope.thread_id is not None:
                deleted = await database[ATTACHMENTS].delete_many({**owned, "thread_id": scope.thread_id})
                return deleted.deleted_count
            deleted = await database[DOCUMENTS].delete_many(owned)
            await database[PASSAGES].delete_many(owned)
            await database[ATTACHMENTS].delete_many(owned)
            if scope.user_id == GLOBAL_USER:
                await database[ATTACHMENTS].delete_many(_attaching(GLOBAL_USER))
        return deleted.deleted_count

    @override
    async def count(self, user_id: str | None = None) -> int:
        async with self._connection.use() as database:
            return await database[DOCUMENTS].count_documents({} if user_id is None else {"user_id": user_id})

    async def _found(self, query: Record, *, limit: int) -> list[Document]:
        if limit < 1:
            return []
        async with self._connection.use() as database:
            found = database[DOCUMENTS].find(query).sort(_NEWEST).limit(limit)
            return [_to_document(document) for document in await found.to_list()]

    async def _has(self, query: Record) -> bool:
        async with self._connection.use() as database:
            return await database[DOCUMENTS].find_one(query, {"_id": 1}) is not None

    async def _attached(self, query: Record) -> list[tuple[str, Attached]]:
        """Return the attachments that `query` finds with their threads, in the order of attaching."""
        async with self._connection.use() as database:
            order = [("attached_at", ASCENDING), ("_id", ASCENDING)]
            rows = await database[ATTACHMENTS].find(query).sort(order).to_list()
            keys = list({_key(row["owner"], row["document_id"]) for row in rows})
            theirs: Record = {"user_id": {"$in": list({row["owner"] for row in rows})}, "_id": {"$in": keys}}
            found = await database[DOCUMENTS].find(theirs).to_list() if keys else []
        documents = {document["_id"]: _to_document(document) for document in found}
        pairs = [(row, documents.get(_key(row["owner"], row["document_id"]))) for row in rows]
        return [(row["thread_id"], Attached(document, row["attached_at"])) for row, document in pairs if document]


def _one(user_id: str, document_id: str) -> Record:
    """Return the query for one header: the user leads, so that a sharded cluster asks one shard."""
    return {"user_id": user_id, "_id": _key(user_id, document_id)}


def _attaching(owner: str) -> Record:
    """Return the query for attachments of the owner's documents: others attach shared ones alone."""
    return {"owner": owner} if owner == GLOBAL_USER else {"user_id": owner, "owner": owner}


def _key(user_id: str, document_id: str) -> str:
    return f"{user_id}/{document_id}"


def _from_document(document: Document, keys: FilterKeys) -> Record:
    values: Record = {name: getattr(document, name) for name in _FIELDS}
    return {**MARK, **values, "_id": _key(document.user_id, document.id), **metadata_fields(document, keys)}


def _to_document(document: Record) -> Document:
    values = {name: document[name] for name in _FIELDS if name in document}
    values["metadata"] = from_json(document["metadata"])
    return Document(**values)
