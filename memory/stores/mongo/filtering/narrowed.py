"""Writes narrowing conditions as MongoDB queries. They name fields of our own alone; no caller's key is one."""

from collections.abc import Mapping

from recollect.memory.stores.mongo.connection import CONVERSATIONS, DOCUMENTS, FACTS, Record
from recollect.memory.values.filtering.keys import FilterKeys
from recollect.memory.values.filtering.narrow import (
    ALL,
    LEAST_MS,
    MADE,
    MOST_MS,
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
from recollect.memory.values.times import from_ms

ITEMS: Mapping[ItemKind, tuple[str, str]] = {
    "episode": (CONVERSATIONS, "timestamp"),
    "fact": (FACTS, "created_at"),
    "document": (DOCUMENTS, "created_at"),
}
"""The collection of each kind, and the field of an item's time."""
_NEVER: Record = {"_id": {"$in": []}}


def narrowed(query: Record, where: Narrow, kind: ItemKind, keys: FilterKeys) -> Record:
    """Return the query with the condition."""
    if where == ALL:
        return query
    # A comparison that an index serves; `$nor` is none.
    narrow: Record = {"terms_by": {"$ne": keys.digest}} if where == without(MADE) else _query(where, kind, keys)
    return {**query, "$and": [*query.get("$and", []), narrow]}


def _query(where: Narrow, kind: ItemKind, keys: FilterKeys) -> Record:
    match where:
        case Every(parts):
            return {"$and": [_query(part, kind, keys) for part in parts]} if parts else {}
        case Either(parts):
            return {"$or": [_query(part, kind, keys) for part in parts]} if parts else _NEVER
        case Without(part):
            return {"$nor": [_query(part, kind, keys)]}
        case _:
            return _plain(where, kind, keys)


def _plain(
    where: Made | HasTerm | TermBetween | TextIn | TextBetween | CreatedBetween, kind: ItemKind, keys: FilterKeys
) -> Record:
    """Return the query of a condition that joins no others."""
    match where:
        case Made():
            return {"terms_by": keys.digest}
        case HasTerm(terms):
            return {"terms": {"$in": list(terms)}}
        case TermBetween():
            raise TypeError("a range of terms is asked for as a list; see FilterTerms.between")
        case TextIn(field, texts):
            return {field: {"$in": list(texts)}}
        case TextBetween(field, low, high):
            return {field: {"$gte": low} if high is None else {"$gte": low, "$lt": high}}
        case CreatedBetween(begin, end):
            low = {} if begin <= LEAST_MS else {"$gte": from_ms(begin)}
            high = {} if end >= MOST_MS else {"$lt": from_ms(end)}
            return {ITEMS[kind][1]: {**low, **high}}
