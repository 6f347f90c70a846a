"""The keys of a service: creates, lists and revokes them, and looks one up for every request from a short cache."""

import time
from collections.abc import Callable
from datetime import datetime

from recollect.memory.ports.keys import Key, Keys, new_key, read_key
from recollect.memory.values.errors import NotFound
from recollect.memory.values.times import Clock

CACHE_SECONDS = 5.0
"""How long a key that another process has revoked may still be accepted."""
MOST_CACHED = 1_000


class KeyRing:
    """Keys over their store, with a cache. A key that this process revokes or deletes is refused from then on.

    Raises:
        StoreUnavailable: from any call that has to ask the store.
    """

    def __init__(self, keys: Keys, clock: Clock, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._keys = keys
        self._clock = clock
        self._monotonic = monotonic
        self._cached: dict[str, tuple[float, Key]] = {}
        self._removals = 0

    async def create(self, role: str, *, name: str | None = None, agent_id: str | None = None) -> tuple[Key, str]:
        """Store a new key; return it with its text, which nobody can ask for again.

        Raises:
            InvalidRequest: `role`, `name` or `agent_id` is not valid.
        """
        while True:
            key, text = new_key(role, name=name, now=self._clock(), agent_id=agent_id)
            if await self._keys.insert(key):
                return key, text

    async def find(self, text: str) -> Key | None:
        """Return the living key that a caller shows; None for any other text.

        Unknown, revoked and malformed texts give the same answer, so that a caller learns nothing from it.
        """
        shown = read_key(text)
        if shown is None:
            return None
        key = await self._key(shown.id)
        return key if shown.opens(key) else None

    async def key(self, key_id: str) -> Key | None:
        """Return the living key of this id, from the cache too: one that was revoked elsewhere up to 5 s ago."""
        return await self._key(key_id)

    async def page(self, *, limit: int, after: tuple[datetime, str] | None = None) -> list[Key]:
        """Return a page of all keys, oldest first; see `Keys.page`."""
        return await self._keys.page(limit=limit, after=after)

    async def revoke(self, key_id: str) -> None:
        """Remove a key, which is refused from then on.

        Raises:
            NotFound: there is no key with this id.
        """
        try:
            if not await self._keys.remove(key_id):
                raise NotFound("There is no such key.")
        finally:
            self._forget()  # After an error too: the store may have removed it before the connection broke.

    async def count(self, user_id: str) -> int:
        """Count this user's own keys."""
        return await self._keys.count(user_id)

    async def delete(self, user_id: str) -> int:
        """Remove the user's own keys and return how many there were."""
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
        # A key may be removed while it is read: caching it then would accept it for CACHE_SECONDS more.
        if key is not None and removals == self._removals:
            self._cached.pop(key_id, None)
            while len(self._cached) >= MOST_CACHED:
                del self._cached[next(iter(self._cached))]
            self._cached[key_id] = (now + CACHE_SECONDS, key)
        return key

    def _forget(self) -> None:
        self._removals += 1
        self._cached.clear()
