"""Reads rows of a unified `conversations` collection and of `user_facts`, of another agent or an earlier Recollect."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from recollect.memory.transfer.line_source import Unreadable
from recollect.memory.transfer.sources.files import Said
from recollect.memory.transfer.sources.records import (
    TIME,
    USER,
    Record,
    facts_of,
    first_text,
    note_fields,
    plain,
    plain_text,
)
from recollect.memory.values.fact import is_key

_PAIR, _SESSION = "message_pair_id", "session_id"
_UPDATED = ("last_update", "updated_at", *TIME)


def with_session(fields: dict[str, Any], document: Record) -> dict[str, Any]:
    """Return a message's fields with the pair that the row names, and with its session in the metadata."""
    metadata = {**_metadata(document.get("metadata"))}
    session, pair = first_text(document, (_SESSION,)), first_text(document, (_PAIR,))
    if session is not None and "position" not in document:  # our own rows only repeat the thread there
        metadata.setdefault(_SESSION, session)
    found = {**fields, "metadata": metadata}
    return found if pair is None else {**found, "pair_id": pair}


def is_absent(document: Record) -> bool:
    """Tell whether the row marks a message that does not exist, as our own rows may."""
    return document.get("absent") is True


def facts_in(document: Record, *, user_id: str | None) -> Iterator[Said]:
    """Yield the facts of one row of `user_facts`: a mapping of facts, or a single one that we wrote ourselves."""
    whose = first_text(document, USER) or user_id
    facts = document.get("facts")
    if isinstance(facts, Mapping):
        yield from facts_of(cast("Record", facts), user_id=whose, time=_time_of(document))
    elif "statement" in document and "state" in document:
        if document["state"] == "open":
            yield _own_fact(document, whose)
    elif facts is not None or "facts" not in document:
        yield Unreadable("A document of user_facts has no dict of facts.")


def _own_fact(document: Record, user_id: str | None) -> dict[str, Any]:
    key = document.get("key")
    if isinstance(key, str) and is_key(key):
        line = note_fields(plain_text(document.get("value")), user_id=user_id, time=document.get("valid_from"))
        return {**line, "key": key}
    return note_fields(plain_text(document["statement"]), user_id=user_id, time=document.get("valid_from"))


def _metadata(value: object) -> Mapping[str, Any]:
    """Return the metadata as plain JSON; our own rows keep it as a text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    made = plain(value)
    return cast("Mapping[str, Any]", made) if isinstance(made, Mapping) else {}


def _time_of(document: Record) -> object:
    return next((document[name] for name in _UPDATED if document.get(name) is not None), None)
