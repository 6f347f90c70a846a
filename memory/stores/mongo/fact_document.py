"""Converts a fact to its MongoDB document and back: the fields of `Fact`, and four that queries need.

`_id` joins user and fact, so that an id is unique per user. `home` is the id of the thread in which
the fact holds (working memory), or "" for all threads. `state` is "open", "ended", or the status of an inactive fact.
`until` is the end of its validity, far in the future where it has none. `ended`, `history` and `metadata` are JSON
texts.
"""

from dataclasses import fields
from datetime import UTC, datetime

from recollect.memory.stores.fact_json import ended_from_json, ended_to_json, history_from_json, history_to_json
from recollect.memory.stores.json_text import from_json
from recollect.memory.stores.mongo.connection import MARK, Record
from recollect.memory.stores.mongo.filtering.metadata_fields import metadata_fields
from recollect.memory.values.fact import Fact
from recollect.memory.values.filtering.keys import NO_KEYS, FilterKeys

_FIELDS = tuple(item.name for item in fields(Fact))
_ENDLESS = datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)


def key(user_id: str, fact_id: str) -> str:
    """Return the `_id` of the fact's document."""
    return f"{user_id}/{fact_id}"


def one(user_id: str, fact_id: str) -> Record:
    """Return the query for the fact's document: the user leads, so that a sharded cluster asks one shard."""
    return {"user_id": user_id, "_id": key(user_id, fact_id)}


def from_fact(fact: Fact, keys: FilterKeys = NO_KEYS) -> Record:
    """Return the whole document of `fact`."""
    return {
        **MARK,
        **{name: getattr(fact, name) for name in _FIELDS},
        "_id": key(fact.user_id, fact.id),
        "tags": list(fact.tags),
        "ended": ended_to_json(fact.ended),
        "history": history_to_json(fact.history),
        **metadata_fields(fact, keys),
        "home": fact.home or "",
        "state": _state(fact),
        "until": fact.valid_to or _ENDLESS,
    }


def to_fact(document: Record) -> Fact:
    """Return the fact of `document`; fields that an earlier version did not write get their defaults."""
    values = {name: document[name] for name in _FIELDS if name in document}
    values["tags"] = tuple(document["tags"])
    values["ended"] = ended_from_json(document.get("ended"))
    values["history"] = history_from_json(document.get("history", "[]"))
    values["metadata"] = from_json(document.get("metadata", "{}"))
    return Fact(**values)


def _state(fact: Fact) -> str:
    if fact.is_open:
        return "open"
    return "ended" if fact.status == "active" else fact.status
