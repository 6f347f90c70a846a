"""The oldest turns, whose time may have come."""

from pymongo import ASCENDING

from memory.stores.mongo.connection import CONVERSATIONS, Database, Document
from memory.stores.mongo.message_document import MESSAGE_ONLY, to_message
from memory.turn import Message, derived_id

_ORDER = (("timestamp", ASCENDING), ("_id", ASCENDING))


async def oldest_messages(database: Database, query: Document, *, limit: int) -> list[Message]:
    """The first `limit` of the users' messages that `query` finds, oldest first, none whose update is pending."""
    found: list[Message] = []
    place: Document = {}
    while len(found) < limit:
        size = limit - len(found)
        asked = database[CONVERSATIONS].find({"role": "user", **query, **place}, MESSAGE_ONLY)
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


async def _pending(database: Database, messages: list[Message]) -> set[str]:
    """The ids of those replies to these messages whose update is pending."""
    if not messages:
        return set()
    replies = {"_id": {"$in": [_reply_id(message) for message in messages]}, "status": "pending"}
    return {document["_id"] for document in await database[CONVERSATIONS].find(replies, {"_id": True}).to_list()}


def _reply_id(message: Message) -> str:
    return derived_id(message.user_id, message.turn_id, "assistant")
