"""Rows of the SQLite tables as values of the domain, and back."""

import json

from memory.fact import Fact
from memory.stores.json_text import from_json
from memory.stores.sqlite.database import Row
from memory.stores.update_json import update_from_json
from memory.times import from_ms, to_ms
from memory.turn import Exchange, Message, Turn

_MESSAGE = ("user_id", "thread_id", "turn_id", "role", "position", "created_at", "name", "content", "metadata")
_FACT = (
    *("id", "user_id", "key", "value", "statement", "created_at", "updated_at", "confirmed_at", "valid_from"),
    *("valid_to", "scope", "thread_id", "turn_id", "source", "tags", "importance", "pinned", "evidence", "replaces"),
)
_WIDTH = len(_MESSAGE)

FACT_COLUMNS = ", ".join(_FACT)


def message_columns(table: str = "messages") -> str:
    """The columns that `to_message` reads, of a table or its alias."""
    return ", ".join(f"{table}.{column}" for column in _MESSAGE)


def exchange_columns() -> str:
    """The columns that `to_exchange` reads, of the aliases `message` and `reply`."""
    return f"{message_columns('message')}, {message_columns('reply')}"


def turn_columns() -> str:
    """The columns that `to_turn` reads, of the aliases `message` and `reply`."""
    return f"{exchange_columns()}, reply.result, reply.update_json"


def to_message(row: Row) -> Message:
    """From `message_columns`; further columns are ignored."""
    user_id, thread_id, turn_id, role, position, created_at, name, content, metadata, *_ = row
    return Message(
        user_id=user_id,
        thread_id=thread_id,
        turn_id=turn_id,
        role=role,
        content=content,
        created_at=from_ms(created_at),
        name=name,
        metadata=from_json(metadata),
        position=position,
    )


def to_exchange(row: Row) -> Exchange:
    """From `exchange_columns`; further columns are ignored."""
    return Exchange(to_message(row), to_message(row[_WIDTH:]))


def to_turn(row: Row) -> Turn:
    """From `turn_columns`."""
    result, update = row[-2:]
    return Turn(to_message(row), to_message(row[_WIDTH:]), result=from_json(result), update=update_from_json(update))


def from_fact(fact: Fact) -> Row:
    """The values of FACT_COLUMNS, then `home`."""
    return (
        *(fact.id, fact.user_id, fact.key, fact.value, fact.statement),
        *(to_ms(fact.created_at), to_ms(fact.updated_at), to_ms(fact.confirmed_at), to_ms(fact.valid_from)),
        None if fact.valid_to is None else to_ms(fact.valid_to),
        *(fact.scope, fact.thread_id, fact.turn_id, fact.source, json.dumps(fact.tags, ensure_ascii=False)),
        *(fact.importance, int(fact.pinned), fact.evidence, fact.replaces, home(fact)),
    )


def to_fact(row: Row) -> Fact:
    """From FACT_COLUMNS."""
    (fact_id, user_id, key, value, statement, created_at, updated_at, confirmed_at, valid_from, *rest) = row
    valid_to, scope, thread_id, turn_id, source, tags, importance, pinned, evidence, replaces = rest
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
    )


def home(fact: Fact) -> str:
    """Where a fact lives: its thread for working memory, "" for what goes along everywhere."""
    return (fact.thread_id or "") if fact.scope == "thread" else ""
