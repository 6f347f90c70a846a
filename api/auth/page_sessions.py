"""Sessions of people who have signed in to the inspector: opens, finds and ends them."""

import secrets
from datetime import datetime, timedelta

from recollect.api.auth.caller import Caller, bound_caller
from recollect.memory.erasure.fenced_records import FencedSessions
from recollect.memory.ports.key_ring import KeyRing
from recollect.memory.ports.sessions import Session, digest_of
from recollect.memory.values.times import Clock

LONGEST = timedelta(hours=12)
MOST_OF_A_CALLER = 100
"""Sessions of one caller; the one that started first ends for the next."""
EXTENDED_EVERY = timedelta(seconds=5)
"""How often an act is recorded: pages that only read shall not wait for a write each time."""


class PageSessions:
    """Sessions over their store. `idle`: how long one lives without an act; `has_keys`: AUTH=api_key.

    Every request asks the store, so that a session which another process ends is over at once.

    Raises:
        StoreUnavailable: from every call; the store cannot be asked now.
    """

    def __init__(
        self, sessions: FencedSessions, ring: KeyRing, *, clock: Clock, idle: timedelta, has_keys: bool
    ) -> None:
        self._sessions = sessions
        self._ring = ring
        self._clock = clock
        self._idle = idle
        self._has_keys = has_keys

    async def open(self, caller: Caller) -> str:
        """Store a session of the caller and return its secret, which is stored nowhere.

        Raises:
            UserErased: the caller's own user is being erased.
        """
        secret, now = secrets.token_urlsafe(32), self._clock()
        ends_at = now + LONGEST if caller.ends_at is None else min(now + LONGEST, caller.ends_at)
        session = Session(
            digest=digest_of(secret),
            name=caller.name,
            user_id=caller.bound,
            is_admin=caller.is_admin,
            key_id=caller.key_id,
            started_at=now,
            expires_at=self._expiry(now, ends_at),
            ends_at=ends_at,
        )
        await self._sessions.insert(session)
        await self._sessions.trim(caller.name, keep=MOST_OF_A_CALLER)
        return secret

    async def caller(self, secret: str, *, is_act: bool) -> Caller | None:
        """Return whom the session lets in; None where it is over. An act keeps it open."""
        now = self._clock()
        session = await self._sessions.session(digest_of(secret))
        if session is None:
            return None
        if session.is_over(now) or not await self._is_key_living(session):
            await self._sessions.remove(session.digest)
            return None
        if is_act and (expires_at := self._expiry(now, session.ends_at)) >= session.expires_at + EXTENDED_EVERY:
            await self._sessions.extend(session.digest, expires_at=expires_at)
        return bound_caller(
            session.name,
            session.user_id,
            is_admin=session.is_admin,
            key_id=session.key_id,
            ends_at=session.ends_at,
        )

    async def end(self, secret: str) -> None:
        """End the session, if there is one."""
        await self._sessions.remove(digest_of(secret))

    def _expiry(self, now: datetime, ends_at: datetime) -> datetime:
        return min(now + self._idle, ends_at)

    async def _is_key_living(self, session: Session) -> bool:
        """Tell whether the key that opened the session still lets in; one of another AUTH does not."""
        if session.key_id is None or not self._has_keys:
            return session.key_id is None and not self._has_keys
        return await self._ring.key(session.key_id) is not None
