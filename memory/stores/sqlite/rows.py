"""Converts rows of the SQLite table of messages to messages and turns."""

from recollect.memory.language.said_hash import said_hash
from recollect.memory.stores.json_text import from_json
from recollect.memory.stores.sqlite.database import Row
from recollect.memory.stores.update_json import update_from_json
from recollect.memory.values.further_message import read_further
from recollect.memory.values.times import from_ms
from recollect.memory.values.turn import Exchange, Message, Turn

_MESSAGE = (
    *("user_id", "thread_id", "turn_id", "role", "position", "created_at", "name", "content", "metadata"),
    *("imported_id", "absent", "further", "agent_id"),
)
_WIDTH = len(_MESSAGE)


def message_columns(table: str = "messages") -> str:
    """Return the columns that `to_message` reads, of a table or its alias."""
    return ", ".join(f"{table}.{column}" for column in _MESSAGE)


def exchange_columns() -> str:
    """Return the columns that `to_exchange` reads, of the aliases `message` and `reply`."""
    return f"{message_columns('message')}, {message_columns('reply')}"


def turn_columns() -> str:
    """Return the columns that `to_turn` reads, of the aliases `message` and `reply`."""
    return f"{exchange_columns()}, reply.result, reply.update_json"


def to_message(row: Row) -> Message:
    """Return the message of a row of `message_columns`; ignore further columns."""
    (
        user_id,
        thread_id,
        turn_id,
        role,
        position,
        created_at,
        name,
        content,
        metadata,
        imported_id,
        absent,
        further,
        agent_id,
        *_,
    ) = row
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
        imported_id=imported_id,
        absent=bool(absent),
        further=read_further(from_json(further)) if further is not None else (),
        agent_id=agent_id,
    )


def text_hash(message: Message) -> str | None:
    """Return the hash that is stored beside what a user said; None for other messages."""
    return said_hash(message.content) if message.role == "user" and not message.absent else None


def to_exchange(row: Row) -> Exchange:
    """Return the exchange of a row of `exchange_columns`; ignore further columns."""
    return Exchange(to_message(row), to_message(row[_WIDTH:]))


def to_turn(row: Row) -> Turn:
    """Return the turn of a row of `turn_columns`; the reply's are NULL in an unfinished turn.

    The result is NULL too where a query leaves it out, because it is long and nobody looks at it.
    """
    result, update = row[-2:]
    if update is None:
        return Turn(to_message(row))
    message, reply, read = to_message(row), to_message(row[_WIDTH:]), update_from_json(update)
    return Turn(message, reply, result=None if result is None else from_json(result), update=read)
