"""Keeps the token buckets of callers in MongoDB: one document each, by a hash of its name, until it is full again.

The fields are `held` (requests), `at` (when it held them), `full_at`, and `revision`, which each write raises: of two
processes that lease at once the later one reads again.
"""

from datetime import datetime, timedelta

from pymongo.errors import DuplicateKeyError
from typing_extensions import override

from recollect.memory.ports.callers.rate_leases import RateLease, RateLeases
from recollect.memory.stores.mongo.connection import (
    MARK,
    RATE_LEASES,
    MongoConnection,
    MongoDatabase,
    Record,
    hidden_key,
)
from recollect.memory.values.errors import StoreUnavailable

TIDIED = timedelta(seconds=60)
"""How often a process removes the buckets that are full again."""
_TRIES = 20


class MongoRateLeases(RateLeases):
    """Implements RateLeases over the `rate_leases` collection."""

    def __init__(self, connection: MongoConnection) -> None:
        self._connection = connection
        self._tidied_at: datetime | None = None

    @override
    async def lease(self, name: str, lease: RateLease, *, now: datetime) -> tuple[int, float]:
        key = hidden_key("rate", name)
        async with self._connection.use() as database:
            await self._tidy(database, now)
            for _ in range(_TRIES):
                found = await database[RATE_LEASES].find_one({"_id": key})
                held = lease.burst if found is None else _held(found, lease, now)
                granted = min(lease.wanted, int(held))
                if granted == 0:
                    return 0, held
                if await _write(database, key, found, held - granted, lease, now):
                    return granted, held - granted
        raise StoreUnavailable("Too many processes count this caller's requests at once; send the request again.")

    async def _tidy(self, database: MongoDatabase, now: datetime) -> None:
        if self._tidied_at is not None and now - self._tidied_at < TIDIED:
            return
        self._tidied_at = now
        # A minute late, because the clocks of two processes differ: another one may think that it is not full yet.
        await database[RATE_LEASES].delete_many({"full_at": {"$lt": now - TIDIED}})


def _held(found: Record, lease: RateLease, now: datetime) -> float:
    seconds = max(0.0, (now - found["at"]).total_seconds())
    return min(lease.burst, found["held"] + seconds * lease.per_second + lease.given_back)


async def _write(
    database: MongoDatabase, key: str, found: Record | None, held: float, lease: RateLease, now: datetime
) -> bool:
    """Write what the bucket holds unless another process has written it since it was read."""
    # A process whose clock is behind must not turn the bucket's time back: it would fill up twice.
    at = now if found is None else max(now, found["at"])
    full_at = at + timedelta(seconds=(lease.burst - held) / lease.per_second)
    state: Record = {"held": held, "at": at, "full_at": full_at}
    if found is None:
        try:
            await database[RATE_LEASES].insert_one({**MARK, "_id": key, **state, "revision": 1})
        except DuplicateKeyError:
            return False
        return True
    revision = found["revision"]
    change = {"$set": {**state, "revision": revision + 1}}
    return (await database[RATE_LEASES].update_one({"_id": key, "revision": revision}, change)).matched_count == 1
