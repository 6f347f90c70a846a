"""Converts rows of the SQLite table of facts to facts and back."""

import json

from recollect.memory.stores.fact_json import ended_from_json, ended_to_json, history_from_json, history_to_json
from recollect.memory.stores.json_text import from_json, to_json
from recollect.memory.stores.sqlite.database import Row
from recollect.memory.stores.sqlite.narrowed import terms_json
from recollect.memory.stores.stored_terms import terms_of
from recollect.memory.values.fact import Fact
from recollect.memory.values.filtering.keys import FilterKeys
from recollect.memory.values.times import from_ms, to_ms

_FACT = (
    *("id", "user_id", "key", "value", "statement", "created_at", "updated_at", "confirmed_at", "valid_from"),
    *("valid_to", "scope", "thread_id", "turn_id", "source", "tags", "importance", "pinned", "evidence", "replaces"),
    *("status", "proposes", "ended", "revision", "indexed", "history", "metadata", "agent_id"),
)
CREATED_AT = _FACT.index("created_at")
"""Where `created_at` stands in a row; the id stands first."""
STATUS = _FACT.index("status")
"""Where the status stands in a row."""

FACT_COLUMNS = ", ".join(_FACT)


def from_fact(fact: Fact, keys: FilterKeys) -> Row:
    """Return the values of FACT_COLUMNS, then `home` and the terms with the keys that made them."""
    terms, made_by = terms_of(fact, keys)
    return (
        *(fact.id, fact.user_id, fact.key, fact.value, fact.statement),
        *(to_ms(fact.created_at), to_ms(fact.updated_at), to_ms(fact.confirmed_at), to_ms(fact.valid_from)),
        None if fact.valid_to is None else to_ms(fact.valid_to),
        *(fact.scope, fact.thread_id, fact.turn_id, fact.source, json.dumps(fact.tags, ensure_ascii=False)),
        *(fact.importance, int(fact.pinned), fact.evidence, fact.replaces, fact.status, fact.proposes),
        *(ended_to_json(fact.ended), fact.revision, int(fact.indexed), history_to_json(fact.history)),
        *(to_json(fact.metadata), fact.agent_id, fact.home or "", terms_json(terms), made_by),
    )


def to_fact(row: Row) -> Fact:
    """Return the fact of a row of FACT_COLUMNS."""
    (fact_id, user_id, key, value, statement, created_at, updated_at, confirmed_at, valid_from, *rest) = row
    valid_to, scope, thread_id, turn_id, source, tags, importance, pinned, evidence, replaces, *state = rest
    status, proposes, ended, revision, indexed, history, metadata, agent_id = state
    return Fact(
        id=fact_id,
        user_id=user_id,
        key=key,
        value=value,
        statement=statement,
        created_at=from_ms(created_at),
        updated_at=from_ms(updated_at),
        confirmed_at=from_ms(confirmed_at),
        valid_from=from_ms(valid_from),
        valid_to=None if valid_to is None else from_ms(valid_to),
        scope=scope,
        thread_id=thread_id,
        turn_id=turn_id,
        source=source,
        tags=() if tags == "[]" else tuple(json.loads(tags)),
        importance=importance,
        pinned=bool(pinned),
        evidence=evidence,
        replaces=replaces,
        status=status,
        proposes=proposes,
        ended=ended_from_json(ended),
        revision=revision,
        indexed=bool(indexed),
        history=history_from_json(history),
        metadata=from_json(metadata),
        agent_id=agent_id,
    )
