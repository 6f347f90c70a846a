"""Turns put together from their replies' documents."""

from collections.abc import Sequence

from memory.stores.mongo.connection import CONVERSATIONS, Database, Document
from memory.stores.mongo.message_document import to_turn
from memory.turn import Turn, derived_id


async def turns_of(database: Database, replies: Sequence[Document]) -> tuple[list[Turn], list[str]]:
    """The turns of these replies, in their order, and the ids of those replies whose message is gone."""
    if not replies:
        return [], []
    ids = [derived_id(reply["user_id"], reply["message_pair_id"], "user") for reply in replies]
    found = await database[CONVERSATIONS].find({"_id": {"$in": ids}}).to_list()
    asked = {document["_id"]: document for document in found}
    pairs = list(zip(replies, ids, strict=True))
    turns = [to_turn(asked[key], reply) for reply, key in pairs if key in asked]
    return turns, [reply["_id"] for reply, key in pairs if key not in asked]
