"""Writes narrowing conditions as SQL. Statements hold names of our own alone; all values are parameters."""

import json
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

from recollect.memory.values.filtering.keys import FilterKeys
from recollect.memory.values.filtering.narrow import (
    ALL,
    MADE,
    CreatedBetween,
    Either,
    Every,
    HasTerm,
    Made,
    Narrow,
    TermBetween,
    TextBetween,
    TextIn,
    Without,
    without,
)
from recollect.memory.values.filtering.narrowing import ItemKind

ITEMS: Mapping[ItemKind, tuple[str, str]] = {
    "episode": ("messages", "seq"),
    "fact": ("facts", "id"),
    "document": ("documents", "id"),
}
"""The table of each kind, and the column that names an item in the table of terms."""

Values = MutableMapping[str, Any]
# With a constant, SQLite finds no way to use the index that a statement names.
_TRUE, _FALSE = ":terms_by IS NOT NULL", ":terms_by IS NULL"


def terms_json(terms: Sequence[str]) -> str:
    """Return the text of an item's terms."""
    return json.dumps(terms, ensure_ascii=False, separators=(",", ":")) if terms else "[]"


def narrowed(statement: str, where: Narrow, kind: ItemKind, keys: FilterKeys, values: Values) -> str:
    """Return the statement with the condition in its last WHERE, and add the condition's parameters to `values`."""
    if where == ALL:
        return statement
    values["terms_by"] = keys.digest
    condition = _unmade(kind) if where == without(MADE) else _sql(where, kind, values)
    before, order, after = statement.rpartition("ORDER BY")
    return f"{before}AND {condition} {order}{after}"


def _unmade(kind: ItemKind) -> str:
    """Return the condition that terms were made by other keys, which holds for none as a rule: the index says so."""
    table, _ = ITEMS[kind]
    others = f"FROM {table} AS other INDEXED BY {table}_by_terms WHERE other.user_id = :user AND other.terms_by"
    some = f"EXISTS (SELECT 1 {others} < :terms_by) OR EXISTS (SELECT 1 {others} > :terms_by)"
    return f"({some}) AND {table}.terms_by <> :terms_by"


def _sql(where: Narrow, kind: ItemKind, values: Values) -> str:
    table, item = ITEMS[kind]
    match where:
        case Made():
            return f"{table}.terms_by = :terms_by"
        case HasTerm(terms):
            found = f"term IN (SELECT value FROM json_each({_add(values, json.dumps(terms))}))"
            return _among(table, item, kind, found)
        case TermBetween():
            raise TypeError("a range of terms is asked for as a list; see FilterTerms.between")
        case TextIn(field, texts):
            # A column may be NULL, and NOT NULL is neither true nor false.
            texts_of = f"(SELECT value FROM json_each({_add(values, json.dumps(texts))}))"
            return f"ifnull({table}.{field} IN {texts_of}, 0)"
        case TextBetween(field, low, high):
            bound = "" if high is None else f" AND {table}.{field} < {_add(values, high)}"
            return f"ifnull({table}.{field} >= {_add(values, low)}{bound}, 0)"
        case CreatedBetween(begin, end):
            return f"({table}.created_at >= {_add(values, begin)} AND {table}.created_at < {_add(values, end)})"
        case Every(parts):
            return f"({' AND '.join([_sql(part, kind, values) for part in parts] or [_TRUE])})"
        case Either(parts):
            return f"({' OR '.join([_sql(part, kind, values) for part in parts] or [_FALSE])})"
        case Without(part):
            return f"NOT {_sql(part, kind, values)}"


def _among(table: str, item: str, kind: ItemKind, found: str) -> str:
    """Return the condition that an item is among those with a term; SQLite reads these once for all rows."""
    return f"{table}.{item} IN (SELECT item FROM filter_terms WHERE user_id = :user AND kind = '{kind}' AND {found})"


def _add(values: Values, value: object) -> str:
    name = f"narrow{len(values)}"
    values[name] = value
    return f":{name}"
