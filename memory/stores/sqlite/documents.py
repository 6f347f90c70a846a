"""Keeps users' documents and attachments in SQLite."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from typing_extensions import override

from recollect.memory.ports.documents import Documents
from recollect.memory.stores.json_text import from_json, to_json
from recollect.memory.stores.sqlite.database import Row, SqliteDatabase
from recollect.memory.stores.sqlite.narrowed import narrowed, terms_json
from recollect.memory.stores.sqlite.passages import SqlitePassages
from recollect.memory.stores.stored_terms import terms_of
from recollect.memory.values.document import Attached, Document, Holdings
from recollect.memory.values.filtering.keys import FilterKeys
from recollect.memory.values.filtering.narrow import ALL, Narrow
from recollect.memory.values.scope import GLOBAL_USER, Scope
from recollect.memory.values.times import from_ms, to_ms

_DOCUMENT = (
    *("id", "user_id", "title", "kind", "content_hash", "created_at", "updated_at", "domain", "source", "metadata"),
    *("status", "error", "characters", "pages", "passages", "version", "incoming", "revision", "agent_id"),
)
_COLUMNS = ", ".join(_DOCUMENT)
_WRITTEN = f"{_COLUMNS}, terms, terms_by"
_PLACES = ", ".join("?" * (len(_DOCUMENT) + 2))
_OF_DOCUMENT = ", ".join(f"documents.{column}" for column in _DOCUMENT)

INSERT = f"INSERT INTO documents ({_WRITTEN}) VALUES ({_PLACES}) ON CONFLICT (user_id, id) DO NOTHING RETURNING 1"
REPLACE = f"UPDATE documents SET ({_WRITTEN}) = ({_PLACES}) WHERE user_id = ? AND id = ? AND revision = ? RETURNING 1"
PAGE = f"""
SELECT {_COLUMNS} FROM documents WHERE user_id = :user AND (created_at, id) < (:time, :id)
ORDER BY created_at DESC, id DESC LIMIT :limit
"""
PAGE_OF_DOMAIN = f"""
SELECT {_COLUMNS} FROM documents WHERE user_id = :user AND domain = :domain AND (created_at, id) < (:time, :id)
ORDER BY created_at DESC, id DESC LIMIT :limit
"""
HOLDINGS = """
SELECT EXISTS (SELECT 1 FROM documents WHERE user_id = ?), EXISTS (SELECT 1 FROM documents WHERE user_id = ?)
"""
PROCESSING = f"SELECT {_COLUMNS} FROM documents WHERE status = 'processing' ORDER BY updated_at LIMIT ?"
ATTACH = """
INSERT INTO attachments (user_id, thread_id, document_id, owner, attached_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (user_id, thread_id, document_id) DO NOTHING RETURNING 1
"""
DETACH = "DELETE FROM attachments WHERE user_id = ? AND thread_id = ? AND document_id = ? RETURNING 1"
_JOINED = "FROM attachments JOIN documents ON documents.user_id = attachments.owner AND documents.id = document_id"
_IN_ORDER = "ORDER BY attached_at, attachments.rowid"
ATTACHED = f"""
SELECT {_OF_DOCUMENT}, attached_at, thread_id {_JOINED}
WHERE attachments.user_id = ? AND thread_id = ? {_IN_ORDER}
"""
ATTACHMENTS = f"SELECT {_OF_DOCUMENT}, attached_at, thread_id {_JOINED} WHERE attachments.user_id = ? {_IN_ORDER}"
_LAST = 2**62
"""A time behind every other, in milliseconds."""


class SqliteDocuments(Documents):
    """Implements Documents over the tables of documents, passages and attachments."""

    def __init__(self, database: SqliteDatabase, keys: FilterKeys) -> None:
        self.passages = SqlitePassages(database)
        self._database = database
        self._keys = keys

    @override
    async def put(self, document: Document, *, revision: int) -> bool:
        if revision == 0:
            return bool(await self._database.write(INSERT, _from_document(document, self._keys)))
        key = (document.user_id, document.id, revision)
        return bool(await self._database.write(REPLACE, (*_from_document(document, self._keys), *key)))

    @override
    async def document(self, *, user_id: str, document_id: str) -> Document | None:
        found = await self.by_ids(user_id=user_id, document_ids=[document_id])
        return found[0] if found else None

    @override
    async def by_ids(self, *, user_id: str, document_ids: Sequence[str]) -> list[Document]:
        if not document_ids:
            return []
        sql = f"SELECT {_COLUMNS} FROM documents WHERE user_id = ? AND id IN ({', '.join('?' * len(document_ids))})"
        return [_to_document(row) for row in await self._database.read(sql, (user_id, *document_ids))]

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
        time, last = (to_ms(before[0]), before[1]) if before is not None else (_LAST, "")
        values = {"user": user_id, "domain": domain, "time": time, "id": last, "limit": limit}
        statement = PAGE if domain is None else PAGE_OF_DOMAIN
        rows = await self._database.read(narrowed(statement, where, "document", self._keys, values), values)
        return [_to_document(row) for row in rows]

    @override
    async def in_domains(self, user_id: str, domains: Sequence[str], *, limit: int) -> list[str]:
        sql = f"""
        SELECT id FROM documents WHERE user_id = ? AND domain IN ({", ".join("?" * len(domains))})
        ORDER BY created_at DESC, id DESC LIMIT ?
        """
        return [found for (found,) in await self._database.read(sql, (user_id, *domains, limit))]

    @override
    async def holdings(self, user_id: str) -> Holdings:
        own, shared = (await self._database.read(HOLDINGS, (user_id, GLOBAL_USER)))[0]
        return Holdings(bool(own), bool(shared))

    @override
    async def is_empty(self) -> bool:
        return not await self._database.read("SELECT 1 FROM documents LIMIT 1")

    @override
    async def processing(self, *, limit: int) -> list[Document]:
        return [_to_document(row) for row in await self._database.read(PROCESSING, (limit,))]

    @override
    async def attach(self, scope: Scope, document: Document, *, at: datetime) -> bool:
        values = (scope.user_id, scope.thread, document.id, document.user_id, to_ms(at))
        return bool(await self._database.write(ATTACH, values))

    @override
    async def detach(self, scope: Scope, *, document_id: str) -> bool:
        return bool(await self._database.write(DETACH, (scope.user_id, scope.thread, document_id)))

    @override
    async def attached(self, scope: Scope) -> list[Attached]:
        rows = await self._database.read(ATTACHED, (scope.user_id, scope.thread))
        return [Attached(_to_document(row[:-2]), from_ms(row[-2])) for row in rows]

    @override
    async def attachments(self, user_id: str) -> Mapping[str, Sequence[Attached]]:
        found: dict[str, list[Attached]] = {}
        for row in await self._database.read(ATTACHMENTS, (user_id,)):
            found.setdefault(row[-1], []).append(Attached(_to_document(row[:-2]), from_ms(row[-2])))
        return found

    @override
    async def remove(self, *, user_id: str, document_id: str) -> bool:
        # The header goes first: from then on `add` refuses passages of it.
        key = (user_id, document_id)
        removed = await self._database.write("DELETE FROM documents WHERE user_id = ? AND id = ? RETURNING 1", key)
        await self._database.write("DELETE FROM passages WHERE user_id = ? AND document_id = ?", key)
        await self._database.write("DELETE FROM attachments WHERE owner = ? AND document_id = ?", key)
        await self._database.cut_off_log()
        return bool(removed)

    @override
    async def delete(self, scope: Scope) -> int:
        if scope.thread_id is not None:
            sql = "DELETE FROM attachments WHERE user_id = ? AND thread_id = ? RETURNING 1"
            return await self._database.erase(sql, (scope.user_id, scope.thread_id))
        user = (scope.user_id,)
        removed = await self._database.write("DELETE FROM documents WHERE user_id = ? RETURNING 1", user)
        await self._database.write("DELETE FROM passages WHERE user_id = ?", user)
        await self._database.write("DELETE FROM attachments WHERE user_id = ?", user)
        await self._database.write("DELETE FROM attachments WHERE owner = ?", user)
        return len(removed)

    @override
    async def count(self, user_id: str | None = None) -> int:
        if user_id is None:
            return (await self._database.read("SELECT count(*) FROM documents"))[0][0]
        return (await self._database.read("SELECT count(*) FROM documents WHERE user_id = ?", (user_id,)))[0][0]


def _from_document(document: Document, keys: FilterKeys) -> Row:
    terms, made_by = terms_of(document, keys)
    return (
        *(document.id, document.user_id, document.title, document.kind, document.content_hash),
        *(to_ms(document.created_at), to_ms(document.updated_at), document.domain, document.source),
        *(to_json(document.metadata), document.status, document.error, document.characters, document.pages),
        *(document.passages, document.version, document.incoming, document.revision, document.agent_id),
        *(terms_json(terms), made_by),
    )


def _to_document(row: Row) -> Document:
    """Return the document of a row of `_COLUMNS`."""
    values: dict[str, Any] = dict(zip(_DOCUMENT, row, strict=True))
    for name in ("created_at", "updated_at"):
        values[name] = from_ms(values[name])
    values["metadata"] = from_json(values["metadata"])
    return Document(**values)
