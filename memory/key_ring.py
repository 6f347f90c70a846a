"""The keys of a service: made, listed, revoked, and looked up for every request without asking the store each time."""

import time
from collections.abc import Callable
from datetime import datetime

from memory.errors import NotFound
from memory.keys import Key, Keys, new_key, read_key
from memory.times import Clock

CACHE_SECONDS = 5.0
"""How long a key that was revoked by another process may still open."""
MOST_CACHED = 1_000


class KeyRing:
    """Keys over their store. What this process revokes or deletes opens nothing from then on.

    Raises:
        StoreUnavailable: from any call that has to ask the store.
    """

    def __init__(self, keys: Keys, clock: Clock, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._keys = keys
        self._clock = clock
        self._monotonic = monotonic
        self._cached: dict[str, tuple[float, Key]] = {}
        self._removals = 0

    async def create(self, role: str, *, name: str | None = None) -> tuple[Key, str]:
        """Store a new key; the key and its text, which nobody can ask for again.

        Raises:
            InvalidRequest: the role or the name is none.
        """
        while True:
            key, text = new_key(role, name=name, now=self._clock())
            if await self._keys.insert(key):
                return key, text

    async def find(self, text: str) -> Key | None:
        """The living key that a caller shows; None for anything else, which is not told apart."""
        shown = read_key(text)
        if shown is None:
            return None
        key = await self._key(shown.id)
        return key if shown.opens(key) else None

    async def page(self, *, limit: int, after: tuple[datetime, str] | None = None) -> list[Key]:
        """All keys, oldest first."""
        return await self._keys.page(limit=limit, after=after)

    async def revoke(self, key_id: str) -> None:
        """Remove a key: it opens nothing any more.

        Raises:
            NotFound: there is none of this id.
        """
        try:
            if not await self._keys.remove(key_id):
                raise NotFound("There is no such key.")
        finally:
            self._forget()

    async def count(self, user_id: str) -> int:
        """How many keys are this user's own."""
        return await self._keys.count(user_id)

    async def delete(self, user_id: str) -> int:
        """Remove the user's own keys and say how many there were."""
        try:
            return await self._keys.delete(user_id)
        finally:
            self._forget()

    async def _key(self, key_id: str) -> Key | None:
        now = self._monotonic()
        until, cached = self._cached.get(key_id, (now, None))
        if until > now:
            return cached
        removals = self._removals
        key = await self._keys.key(key_id)
        if key is not None and removals == self._removals:  # else it may have been removed since it was read
            self._cached.pop(key_id, None)
            while len(self._cached) >= MOST_CACHED:
                del self._cached[next(iter(self._cached))]
            self._cached[key_id] = (now + CACHE_SECONDS, key)
        return key

    def _forget(self) -> None:
        self._removals += 1
        self._cached.clear()
