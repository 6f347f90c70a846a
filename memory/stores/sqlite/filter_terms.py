"""Keeps the terms of items in SQLite. Triggers keep the table of terms equal to the items' own lists."""

from collections.abc import Sequence
from typing import Any

from typing_extensions import override

from recollect.memory.stores.json_text import from_json
from recollect.memory.stores.sqlite.database import Row, SqliteDatabase
from recollect.memory.stores.sqlite.narrowed import ITEMS, terms_json
from recollect.memory.stores.sqlite.rows import message_columns, to_message
from recollect.memory.stores.sqlite.single_record import SingleRecord
from recollect.memory.stores.stored_terms import StoredTerms, made_ends, terms_of
from recollect.memory.stores.text_record import RecordedTerms
from recollect.memory.values.filtering.keys import FilterKeys
from recollect.memory.values.filtering.narrowing import ItemKind
from recollect.memory.values.filtering.terms import metadata_terms

BETWEEN = """
SELECT DISTINCT term FROM filter_terms
WHERE user_id = :user AND kind IN ('episode', 'fact', 'document') AND term >= :low AND term < :high LIMIT :limit
"""
_COLUMNS: dict[ItemKind, str] = {
    "episode": f"{message_columns()}, seq",
    "fact": "metadata, id",
    "document": "metadata, id",
}
_METADATA = message_columns().split(", ").index("messages.metadata")


def unfilled_statement(kind: ItemKind) -> str:
    """Return the statement that finds items whose terms were made by other keys, or by none."""
    table, _ = ITEMS[kind]
    of_user = f"SELECT {_COLUMNS[kind]} FROM {table} INDEXED BY {table}_by_terms WHERE user_id = :user"
    return f"{of_user} AND terms_by < :first UNION ALL {of_user} AND terms_by > :last LIMIT :limit"


def fill_statement(kind: ItemKind, count: int) -> str:
    """Return the statement that stores the terms of `count` items whose metadata is still that which was read."""
    table, item = ITEMS[kind]
    return f"""
WITH given (item, metadata, terms, terms_by) AS MATERIALIZED (VALUES {", ".join(["(?, ?, ?, ?)"] * count)})
UPDATE {table} SET terms = given.terms, terms_by = given.terms_by FROM given
WHERE {table}.user_id = ? AND {table}.{item} = given.item AND {table}.metadata = given.metadata RETURNING 1
"""


class SqliteFilterTerms(RecordedTerms):
    """Implements FilterTerms over the items' tables, the table of terms, and a record of the whole file."""

    def __init__(self, database: SqliteDatabase, keys: FilterKeys) -> None:
        super().__init__(SingleRecord(database, "filter_filling"))
        self._database = database
        self._keys = keys

    @override
    async def between(self, user_id: str, low: str, high: str, *, limit: int) -> list[str]:
        values = {"user": user_id, "low": low, "high": high, "limit": limit}
        return [term for (term,) in await self._database.read(BETWEEN, values)]

    @override
    async def fill(self, user_id: str, *, limit: int) -> int:
        first, last = made_ends(self._keys)
        values = {"user": user_id, "first": first, "last": last, "limit": limit}
        read = 0
        for kind in ITEMS:
            rows = await self._database.read(unfilled_statement(kind), values)
            if rows:
                read += len(rows)
                given = [value for row in rows for value in self._made(kind, row)]
                await self._database.write(fill_statement(kind, len(rows)), (*given, user_id))
        return read

    def _made(self, kind: ItemKind, row: Row) -> Sequence[Any]:
        """Return an item's name and metadata as they were read, its terms, and the keys that made them."""
        if kind == "episode":
            made, metadata = terms_of(to_message(row), self._keys), row[_METADATA]
        else:
            metadata = row[0]
            made = StoredTerms(list(metadata_terms(from_json(metadata), self._keys)), self._keys.digest)
        return row[-1], metadata, terms_json(made.terms), made.made_by
