"""Places a new message behind all of its thread: the position behind the last, and a time later than the latest.

The last message by position need not be the latest: lines of the past are imported behind it, and clocks disagree. Both
take one query where this process has placed a message of the thread before, else two.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from pymongo import DESCENDING

from recollect.memory.stores.mongo.connection import CONVERSATIONS, MongoDatabase, Record
from recollect.memory.values.times import from_ms, to_ms
from recollect.memory.values.turn import Message

MOST_KEPT = 10_000
MOST_NEAR = 20
"""The most messages that are read behind a known one; where there are more, much was imported since."""
_MILLISECOND = timedelta(milliseconds=1)
_SHOWN = {"position": True, "timestamp": True}


class NewestPlaces:
    """Keeps the position that each thread's last message had when it was placed here, of the latest `MOST_KEPT`."""

    def __init__(self) -> None:
        self._positions: dict[tuple[str, str], int] = {}

    async def placed(self, database: MongoDatabase, message: Message) -> Message:
        """Return `message` with the position and time behind its thread's last, in the whole milliseconds of MongoDB.

        Another message may take the place meanwhile: then a repeated call finds the next one.
        """
        key = message.user_id, message.thread_id
        created_at = from_ms(to_ms(message.created_at))
        known = self._positions.pop(key, None)
        near = None if known is None else await _near(database, message, known, created_at)
        newest = near or await _newest(database, message)
        position = max((found["position"] for found in newest), default=0)
        latest = [found["timestamp"] + _MILLISECOND for found in newest]
        placed = replace(message, position=position + 1 + position % 2, created_at=max([created_at, *latest]))
        self._positions[key] = placed.position
        if len(self._positions) > MOST_KEPT:
            del self._positions[next(iter(self._positions))]
        return placed


async def _near(
    database: MongoDatabase, message: Message, position: int, created_at: datetime
) -> Sequence[Record] | None:
    """Return the messages at `position` or behind it, and those that are not older than `created_at`.

    None if they are too many, or none has this position any more.
    """
    thread: Record = {"user_id": message.user_id, "thread_id": message.thread_id}
    either = [{**thread, "position": {"$gte": position}}, {**thread, "timestamp": {"$gte": created_at}}]
    query: Record = {"user_id": message.user_id, "$or": either}
    found = await database[CONVERSATIONS].find(query, _SHOWN).limit(MOST_NEAR).to_list()
    is_whole = len(found) < MOST_NEAR and any(each["position"] == position for each in found)
    return found if is_whole else None


async def _newest(database: MongoDatabase, message: Message) -> Sequence[Record]:
    """Return the thread's last message by position, and the latest by time."""
    thread: Record = {"user_id": message.user_id, "thread_id": message.thread_id}
    last, latest = await asyncio.gather(
        database[CONVERSATIONS].find_one(thread, _SHOWN, sort=[("position", DESCENDING)]),
        database[CONVERSATIONS].find_one(thread, _SHOWN, sort=[("timestamp", DESCENDING)]),
    )
    # Another message can come in between the two queries, so both answers count.
    return [found for found in (last, latest) if found]
