"""Keeps pending updates in SQLite, and claims in memory: DATA_DIR has one owner, so no claim outlives its process.

Generations must rise across restarts, because `record` compares them with stored ones: the opening's number is their
higher 32 bits, and each claim counts up the lower ones.
"""

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count

from typing_extensions import override

from recollect.memory.ports.updates import Backlog, Claim, Updates
from recollect.memory.stores.sqlite.database import SqliteDatabase
from recollect.memory.stores.sqlite.rows import exchange_columns, to_turn, turn_columns
from recollect.memory.stores.update_json import is_indexed, update_to_json
from recollect.memory.values.times import from_ms
from recollect.memory.values.turn import Message, Turn
from recollect.memory.values.update import Update

_BATCH_TURNS = 250

PENDING_USERS = """
SELECT user_id FROM messages INDEXED BY messages_pending
WHERE status = 'pending' GROUP BY user_id ORDER BY min(seq) LIMIT ?
"""
PENDING = f"""
SELECT {exchange_columns()}, NULL, reply.update_json
FROM messages AS reply INDEXED BY messages_pending CROSS JOIN messages AS message
ON message.user_id = reply.user_id AND message.turn_id = reply.turn_id AND message.role = 'user'
WHERE reply.user_id = ? AND reply.status = 'pending' ORDER BY reply.seq LIMIT ?
"""
PENDING_BY_TIME = PENDING.replace("INDEXED BY messages_pending", "INDEXED BY messages_pending_by_time").replace(
    "ORDER BY reply.seq", "ORDER BY reply.created_at, reply.seq"
)
FAILED = f"""
SELECT {turn_columns()}, reply.user_id, reply.seq
FROM messages AS reply INDEXED BY messages_failed CROSS JOIN messages AS message
ON message.user_id = reply.user_id AND message.turn_id = reply.turn_id AND message.role = 'user'
WHERE reply.status = 'failed' AND (reply.user_id, reply.seq) > (:user, :after)
ORDER BY reply.user_id, reply.seq LIMIT :limit
"""
FAILED_OF_USER = FAILED.replace(
    "(reply.user_id, reply.seq) > (:user, :after)", "reply.user_id = :user AND reply.seq > :after"
)
BACKLOG = """
SELECT
    (SELECT count(*) FROM messages INDEXED BY messages_pending WHERE user_id = :user AND status = 'pending'),
    (SELECT count(*) FROM messages INDEXED BY messages_failed WHERE user_id = :user AND status = 'failed'),
    (SELECT created_at FROM messages INDEXED BY messages_pending WHERE user_id = :user AND status = 'pending'
    ORDER BY seq LIMIT 1)
"""
WAITING = """
SELECT
    (SELECT count(*) FROM (
        SELECT 1 FROM messages INDEXED BY messages_pending WHERE status = 'pending' LIMIT :at_most
    )),
    (SELECT created_at FROM messages WHERE seq = (
        SELECT min(seq) FROM messages INDEXED BY messages_pending WHERE status = 'pending'
    ))
"""
RECORD = """
UPDATE messages SET update_json = ?, status = ?, indexed = ?, generation = ?
WHERE user_id = ? AND turn_id = ? AND role = 'assistant' AND generation <= ? RETURNING 1
"""


@dataclass(slots=True)
class _Held:
    claim: Claim
    expires_at: datetime


class SqliteUpdates(Updates):
    """Implements Updates: an update is part of its reply's row."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database
        self._held: dict[str, _Held] = {}
        self._generations = count(database.opening << 32)

    @override
    async def pending_users(self, *, limit: int) -> list[str]:
        return [user_id for (user_id,) in await self._database.read(PENDING_USERS, (limit,))]

    @override
    async def pending(
        self, user_id: str, *, limit: int, by_time: bool = False, known: Collection[Message] = ()
    ) -> list[Turn]:
        """Read all by one query, the known messages too."""
        statement = PENDING_BY_TIME if by_time else PENDING
        return [to_turn(row) for row in await self._database.read(statement, (user_id, limit))]

    @override
    async def record(self, turn: Turn, update: Update, *, generation: int) -> bool:
        values = (update_to_json(update), update.status, int(is_indexed(update)), generation)
        key = (turn.message.user_id, turn.message.turn_id, generation)
        return bool(await self._database.write(RECORD, (*values, *key)))

    @override
    async def failed(self, *, user_id: str | None = None) -> AsyncIterator[Sequence[Turn]]:
        sql = FAILED if user_id is None else FAILED_OF_USER
        user, after = user_id or "", 0
        while rows := await self._database.read(sql, {"user": user, "after": after, "limit": _BATCH_TURNS}):
            yield [to_turn(row[:-2]) for row in rows]
            *_, user, after = rows[-1]

    @override
    async def backlog(self, user_id: str) -> Backlog:
        pending, failed, oldest = (await self._database.read(BACKLOG, {"user": user_id}))[0]
        return Backlog(pending, failed, None if oldest is None else from_ms(oldest))

    @override
    async def waiting(self, *, at_most: int) -> Backlog:
        pending, oldest = (await self._database.read(WAITING, {"at_most": at_most}))[0]
        return Backlog(pending, oldest=None if oldest is None else from_ms(oldest))

    @override
    async def claim(
        self, user_id: str, *, owner: str, lease: timedelta, now: datetime, turns: Sequence[str] = ()
    ) -> Claim | None:
        """Take the user; see `Updates.claim`. All is known to this process, so `turns` need not be kept."""
        held = self._held.get(user_id)
        if held and held.claim.owner != owner and held.expires_at > now:
            return None
        # No await since the look at `_held`: calls of one event loop cannot both take the user.
        claim = Claim(user_id, owner, next(self._generations))
        self._held[user_id] = _Held(claim, now + lease)
        return claim

    @override
    async def renew(self, claim: Claim, *, lease: timedelta, now: datetime, turns: Sequence[str] | None = None) -> bool:
        held = self._held.get(claim.user_id)
        if held is None or held.claim != claim:
            return False
        held.expires_at = now + lease
        return True

    @override
    async def release(self, claim: Claim, *, is_over: bool = False) -> None:
        held = self._held.get(claim.user_id)
        if held and held.claim == claim:
            del self._held[claim.user_id]
