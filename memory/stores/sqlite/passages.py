"""Keeps passages in SQLite. A statement checks the document's header as it writes: no passage outlives it."""

from collections.abc import AsyncIterator, Sequence

from typing_extensions import override

from recollect.memory.ports.passages import Passages
from recollect.memory.stores.sqlite.database import Row, SqliteDatabase
from recollect.memory.values.document import Passage
from recollect.memory.values.times import from_ms, to_ms

_BATCH = 500
_PASSAGE = ("id", "user_id", "document_id", "version", "place", "text", "created_at", "page", "indexed")
_COLUMNS = ", ".join(f"passages.{column}" for column in _PASSAGE)
_PLACES = ", ".join("?" * len(_PASSAGE))
_NAMED = """
JOIN documents ON documents.user_id = passages.user_id AND documents.id = passages.document_id
AND documents.version = passages.version
"""

OF_DOCUMENT = f"""
SELECT {_COLUMNS} FROM documents JOIN passages ON passages.user_id = documents.user_id
AND passages.document_id = documents.id AND passages.version = documents.version
WHERE documents.user_id = ? AND documents.id = ? AND passages.place > ? ORDER BY passages.place LIMIT {_BATCH}
"""
OWED = f"""
SELECT {_COLUMNS} FROM documents JOIN passages INDEXED BY passages_owed ON passages.user_id = documents.user_id
AND passages.document_id = documents.id AND passages.version = documents.version AND passages.indexed = 0
WHERE documents.user_id = ? AND documents.id = ? ORDER BY passages.place LIMIT ?
"""
_COUNT_OWED = """
SELECT count(*) FROM documents JOIN passages INDEXED BY passages_owed ON passages.user_id = documents.user_id
AND passages.document_id = documents.id AND passages.version = documents.version AND passages.indexed = 0
WHERE documents.user_id = ?
"""
OUTDATED = f"""
SELECT {_COLUMNS} FROM passages
LEFT JOIN documents ON documents.user_id = passages.user_id AND documents.id = passages.document_id
WHERE passages.user_id = ? AND passages.document_id = ? AND (
    documents.id IS NULL OR passages.version NOT IN (documents.version, documents.incoming)
)
AND passages.version = (
    SELECT min(other.version) FROM passages AS other WHERE other.user_id = passages.user_id
    AND other.document_id = passages.document_id
    AND (documents.id IS NULL OR other.version NOT IN (documents.version, documents.incoming))
)
ORDER BY passages.place LIMIT ?
"""
_INDEXED = f"""
SELECT {_COLUMNS}, passages.rowid FROM passages %s
WHERE indexed = 1 AND passages.rowid > :after %s ORDER BY passages.rowid LIMIT {_BATCH}
"""
INDEXED = _INDEXED % ("NOT INDEXED", "")
INDEXED_OF_USER = _INDEXED % ("INDEXED BY passages_indexed", "AND user_id = :user")
COUNT_INDEXED = "SELECT count(*) FROM passages INDEXED BY passages_indexed WHERE indexed = 1"


def add_statement(passages: int) -> str:
    """Return the statement that inserts so many passages if their document's header has their version incoming."""
    return f"""
WITH given ({", ".join(_PASSAGE)}) AS (VALUES {", ".join([f"({_PLACES})"] * passages)})
INSERT INTO passages ({", ".join(_PASSAGE)})
SELECT given.* FROM given JOIN documents
ON documents.user_id = given.user_id AND documents.id = given.document_id AND documents.incoming = given.version
WHERE true ON CONFLICT (user_id, document_id, version, place) DO UPDATE SET indexed = indexed RETURNING 1
"""


class SqlitePassages(Passages):
    """Implements Passages over the table of passages."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    @override
    async def add(self, passages: Sequence[Passage]) -> bool:
        values = [value for passage in passages for value in _from_passage(passage)]
        return not passages or bool(await self._database.write(add_statement(len(passages)), values))

    @override
    async def passages(self, *, user_id: str, passage_ids: Sequence[str]) -> list[Passage]:
        if not passage_ids:
            return []
        ids = ", ".join("?" * len(passage_ids))
        sql = f"SELECT {_COLUMNS} FROM passages {_NAMED} WHERE passages.user_id = ? AND passages.id IN ({ids})"
        return [_to_passage(row) for row in await self._database.read(sql, (user_id, *passage_ids))]

    @override
    async def of_document(self, *, user_id: str, document_id: str) -> AsyncIterator[Sequence[Passage]]:
        last = -1
        while rows := await self._database.read(OF_DOCUMENT, (user_id, document_id, last)):
            found = [_to_passage(row) for row in rows]
            yield found
            last = found[-1].place

    @override
    async def owed(self, *, user_id: str, document_id: str, limit: int) -> list[Passage]:
        return [_to_passage(row) for row in await self._database.read(OWED, (user_id, document_id, limit))]

    @override
    async def count_owed(self, user_id: str, *, document_id: str | None = None) -> int:
        if document_id is None:
            return (await self._database.read(_COUNT_OWED, (user_id,)))[0][0]
        return (await self._database.read(f"{_COUNT_OWED} AND documents.id = ?", (user_id, document_id)))[0][0]

    @override
    async def mark_indexed(self, passages: Sequence[Passage]) -> int:
        sql = "UPDATE passages SET indexed = 1 WHERE %s RETURNING 1"
        return len(await self._database.write(*_these(sql, passages))) if passages else 0

    @override
    async def outdated(self, *, user_id: str, document_id: str, limit: int) -> list[Passage]:
        return [_to_passage(row) for row in await self._database.read(OUTDATED, (user_id, document_id, limit))]

    @override
    async def remove(self, passages: Sequence[Passage]) -> int:
        if not passages:
            return 0
        return await self._database.erase(*_these("DELETE FROM passages WHERE %s RETURNING 1", passages))

    @override
    async def indexed(self, *, user_id: str | None = None) -> AsyncIterator[Sequence[Passage]]:
        statement = INDEXED if user_id is None else INDEXED_OF_USER
        values = {"after": 0} if user_id is None else {"after": 0, "user": user_id}
        while rows := await self._database.read(statement, values):
            yield [_to_passage(row[:-1]) for row in rows]
            values["after"] = rows[-1][-1]

    @override
    async def count_indexed(self) -> int:
        return (await self._database.read(COUNT_INDEXED))[0][0]


def _these(sql: str, passages: Sequence[Passage]) -> tuple[str, tuple[object, ...]]:
    """Return the statement about these passages of one document and version, and its values."""
    first = passages[0]
    places = ", ".join("?" * len(passages))
    where = f"user_id = ? AND document_id = ? AND version = ? AND place IN ({places})"
    return sql % where, (first.user_id, first.document_id, first.version, *(passage.place for passage in passages))


def _from_passage(passage: Passage) -> Row:
    return (
        *(passage.id, passage.user_id, passage.document_id, passage.version, passage.place, passage.text),
        *(to_ms(passage.created_at), passage.page, int(passage.indexed)),
    )


def _to_passage(row: Row) -> Passage:
    """Return the passage of a row of `_COLUMNS`."""
    passage_id, user_id, document_id, version, place, text, created_at, page, indexed = row
    return Passage(
        id=passage_id,
        user_id=user_id,
        document_id=document_id,
        version=version,
        place=place,
        text=text,
        created_at=from_ms(created_at),
        page=page,
        indexed=bool(indexed),
    )
