"""Finds the oldest messages, for retention."""

from pymongo import ASCENDING

from recollect.memory.stores.mongo.connection import CONVERSATIONS, MongoDatabase, Record
from recollect.memory.stores.mongo.message_document import MESSAGE_ONLY, to_message
from recollect.memory.stores.mongo.turns import these
from recollect.memory.values.turn import Message, derived_id

_ORDER = (("timestamp", ASCENDING), ("_id", ASCENDING))


async def oldest_messages(database: MongoDatabase, query: Record, *, limit: int) -> list[Message]:
    """Return the oldest `limit` users' messages that `query` finds, except those whose turn's update is pending."""
    found: list[Message] = []
    place: Record = {}
    while len(found) < limit:
        size = limit - len(found)
        asked = database[CONVERSATIONS].find({**query, "role": "user", **place}, MESSAGE_ONLY)
        page = await asked.sort([*_ORDER]).limit(size).to_list()
        messages = [to_message(document) for document in page]
        pending = await _pending(database, messages)
        found += [message for message in messages if _reply_id(message) not in pending]
        if len(page) < size:
            break
        last = page[-1]
        following = [
            {"timestamp": {"$gt": last["timestamp"]}},
            {"timestamp": last["timestamp"], "_id": {"$gt": last["_id"]}},
        ]
        place = {"$or": following}
    return found


async def _pending(database: MongoDatabase, messages: list[Message]) -> set[str]:
    """Return the ids of the replies to `messages` whose update is pending."""
    if not messages:
        return set()
    users, ids = {message.user_id for message in messages}, [_reply_id(message) for message in messages]
    replies = {**these(list(users), ids), "status": "pending"}
    return {document["_id"] for document in await database[CONVERSATIONS].find(replies, {"_id": True}).to_list()}


def _reply_id(message: Message) -> str:
    return derived_id(message.user_id, message.turn_id, "assistant")
