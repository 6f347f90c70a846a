"""Sessions of people who have signed in to the inspector: what is stored of one, and where.

A session's secret is 256 random bits that the browser alone holds; its SHA-256 is stored, as with keys.
"""

import hashlib
from abc import abstractmethod
from datetime import datetime
from typing import Protocol

from recollect.memory.values.frozen import frozen


@frozen
class Session:
    """The stored data of a session: whom it lets in, and until when.

    `digest` is the hex SHA-256 of its secret. `name`, `user_id` and `is_admin` are the caller's; `key_id` is set where
    a key opened it, and it ends with that key. `expires_at` moves on with each act, `ends_at` never does.
    """

    digest: str
    name: str
    user_id: str | None
    is_admin: bool
    key_id: str | None
    started_at: datetime
    expires_at: datetime
    ends_at: datetime

    def is_over(self, now: datetime) -> bool:
        """Tell whether its time is up."""
        return now >= min(self.expires_at, self.ends_at)


class Sessions(Protocol):
    """Sessions: one record each, by the digest of its secret."""

    @abstractmethod
    async def insert(self, session: Session) -> bool:
        """Store a new session; return False, and change nothing, if its digest exists."""
        ...

    @abstractmethod
    async def session(self, digest: str) -> Session | None:
        """Return the session with this digest, or None. Whether its time is up, the caller asks."""
        ...

    @abstractmethod
    async def extend(self, digest: str, *, expires_at: datetime) -> bool:
        """Set `expires_at` if it is later than the stored one; return False, and change nothing, otherwise."""
        ...

    @abstractmethod
    async def remove(self, digest: str) -> bool:
        """Delete the session; return False if there is none."""
        ...

    @abstractmethod
    async def trim(self, name: str, *, keep: int) -> int:
        """Delete the sessions of the caller of this name but the `keep` that started last; return how many."""
        ...

    @abstractmethod
    async def expire(self, now: datetime, *, limit: int) -> int:
        """Delete up to `limit` sessions whose `expires_at` is `now` or before; return how many."""
        ...

    @abstractmethod
    async def delete(self, user_id: str) -> int:
        """Delete the sessions that are bound to this user; return how many there were."""
        ...


def digest_of(secret: str) -> str:
    """Return what is stored of a session's secret."""
    return hashlib.sha256(secret.encode()).hexdigest()
