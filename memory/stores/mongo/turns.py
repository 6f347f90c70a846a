"""Puts turns together from their replies' documents."""

from collections.abc import Collection, Sequence

from pymongo import ASCENDING

from recollect.memory.stores.mongo.connection import CONVERSATIONS, MongoDatabase, Record
from recollect.memory.stores.mongo.message_document import answered, to_message, to_turn
from recollect.memory.values.turn import Message, Turn, derived_id


def these(users: Sequence[str], ids: Sequence[str]) -> Record:
    """Return the query for messages of `users` with these ids: the users lead, so a cluster asks their shards alone."""
    return {"user_id": users[0] if len(users) == 1 else {"$in": list(users)}, "_id": {"$in": list(ids)}}


def reply_of(user_id: str, turn_id: str) -> Record:
    """Return the query for the reply of a turn."""
    return {"user_id": user_id, "_id": derived_id(user_id, turn_id, "assistant")}


async def turns_of(
    database: MongoDatabase, replies: Sequence[Record], known: Collection[Message] = ()
) -> tuple[list[Turn], list[str]]:
    """Return the turns of `replies`, in their order, and the ids of the replies whose message is gone.

    The messages that are `known` are not read.
    """
    if not replies:
        return [], []
    ids = [derived_id(reply["user_id"], reply["message_pair_id"], "user") for reply in replies]
    asked = {message.id: message for message in known}
    unknown = [key for key in ids if key not in asked]
    if unknown:
        users = list({reply["user_id"] for reply in replies})
        found = await database[CONVERSATIONS].find(these(users, unknown)).to_list()
        asked |= {document["_id"]: to_message(document) for document in found}
    pairs = list(zip(replies, ids, strict=True))
    turns = [answered(asked[key], reply) for reply, key in pairs if key in asked]
    return turns, [reply["_id"] for reply, key in pairs if key not in asked]


async def turns_from(database: MongoDatabase, query: Record, *, limit: int) -> list[Turn]:
    """Return the first `limit` turns, also unfinished, whose user's message `query` finds, by thread and position."""
    found = database[CONVERSATIONS].find({**query, "role": "user"})
    asked = await found.sort([("thread_id", ASCENDING), ("position", ASCENDING)]).limit(limit).to_list()
    ids = [derived_id(message["user_id"], message["message_pair_id"], "assistant") for message in asked]
    users = list({message["user_id"] for message in asked})
    replies = await database[CONVERSATIONS].find(these(users, ids)).to_list() if ids else []
    answered = {reply["_id"]: reply for reply in replies}
    return [to_turn(message, answered.get(key)) for message, key in zip(asked, ids, strict=True)]
