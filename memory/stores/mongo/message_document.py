"""Converts a message to its MongoDB document and back, with the fields that chat histories usually have there.

`_id` is the message's id, `session_id` repeats the thread, `message_pair_id` is the turn. Metadata, result and update
are JSON texts, because their keys may hold dots and dollars. The reply's document carries the update, so that its
insert commits the turn.
"""

import time
from collections.abc import Mapping
from typing import Any

from recollect.memory.language.said_hash import said_hash
from recollect.memory.stores.json_text import from_json, result_to_json, to_json
from recollect.memory.stores.mongo.connection import MARK, Record
from recollect.memory.stores.mongo.filtering.metadata_fields import metadata_fields
from recollect.memory.stores.update_json import is_indexed, update_from_json, update_to_json
from recollect.memory.values.filtering.keys import NO_KEYS, FilterKeys
from recollect.memory.values.further_message import further_json, read_further
from recollect.memory.values.turn import Message, Turn
from recollect.memory.values.update import Update

MESSAGE_ONLY = {"result": False, "update": False}
"""The projection that `to_message` needs no more than."""
DESCRIBED_ONLY = {**MESSAGE_ONLY, "content": False}
"""The projection of a message without its text."""
SAID = {"absent": {"$ne": True}}
"""Finds the messages that were said; those of earlier versions all were."""


def from_message(message: Message, keys: FilterKeys = NO_KEYS) -> Record:
    """Return the document of a user's `message`, at its position and time."""
    return {
        **MARK,
        "_id": message.id,
        "user_id": message.user_id,
        "thread_id": message.thread_id,
        "session_id": message.thread_id,
        "message_pair_id": message.turn_id,
        "role": message.role,
        "name": message.name,
        "content": message.content,
        **metadata_fields(message, keys),
        "timestamp": message.created_at,
        "position": message.position,
        "imported_id": message.imported_id,
        "absent": message.absent,
        **({"further": to_json(further_json(message.further))} if message.further else {}),
        **({"said_hash": said_hash(message.content)} if message.role == "user" and not message.absent else {}),
        **({"agent_id": message.agent_id} if message.agent_id is not None else {}),
    }


def from_reply(
    reply: Message,
    result: Mapping[str, Any],
    update: Update,
    *,
    said: int = 2,
    further: int = 0,
    keys: FilterKeys = NO_KEYS,
) -> Record:
    """Return the document that commits a turn. `committed` (epoch microseconds) orders the commits.

    `said` is how many of the turn's two messages are not absent, `further` how many further ones search may find.
    """
    return {
        **from_message(reply, keys),
        "said": said,
        **({"further_said": further} if further else {}),
        "result": result_to_json(result),
        "committed": time.time_ns() // 1000,
        "generation": 0,
        **from_update(update),
    }


def from_update(update: Update) -> Record:
    """Return the fields of a reply that recording `update` replaces."""
    return {
        "status": update.status,
        "indexed": is_indexed(update),
        "update": update_to_json(update),
    }


def to_message(document: Record) -> Message:
    """Return the message of `document`, without a text where that was not read.

    Documents of earlier versions lack the last two fields.
    """
    return Message(
        user_id=document["user_id"],
        thread_id=document["thread_id"],
        turn_id=document["message_pair_id"],
        role=document["role"],
        content=document.get("content", ""),
        created_at=document["timestamp"],
        name=document["name"],
        metadata=from_json(document["metadata"]),
        position=document["position"],
        imported_id=document.get("imported_id"),
        absent=document.get("absent", False),
        further=read_further(from_json(document["further"])) if "further" in document else (),
        agent_id=document.get("agent_id"),
    )


def to_turn(message: Record, reply: Record | None) -> Turn:
    """Return the turn of both documents; an unfinished one where `reply` is None."""
    return Turn(to_message(message)) if reply is None else answered(to_message(message), reply)


def answered(message: Message, reply: Record) -> Turn:
    """Return the turn of `message` and its reply's document, which may have been read without its result."""
    return Turn(
        message,
        to_message(reply),
        result=from_json(reply["result"]) if "result" in reply else None,
        update=update_from_json(reply["update"]),
    )
