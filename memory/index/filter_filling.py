"""Fills in the terms of items that were written before the present MEMORY_FILTER_KEYS, without embedding anything."""

import logging
from dataclasses import replace

from recollect.memory.background.sweep import Sweep
from recollect.memory.index.expected import expected
from recollect.memory.ports.embedder import Embedder, embedder_name
from recollect.memory.ports.filtering.filter_terms import Filling
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import VectorIndex
from recollect.memory.values.errors import IndexUnavailable, ModelUnavailable
from recollect.memory.values.filtering.keys import FilterKeys

logger = logging.getLogger(__name__)

RETRY_SECONDS = 5.0
AT_ONCE = 200
"""How many of a user's items of each kind are filled in at a time: their terms hold the event loop for a few ms."""
PLACE_CHARACTERS = 2
"""How much of a user's id the record holds; an erased user must not stay in it."""
MOST_PASSES = 5
"""How many passes over a user's points look for what changed meanwhile. A pass that writes nothing ends them."""

_LATER = (
    "MEMORY_FILTER_KEYS is %s here, and %s in a process that started later: until all have one setting, filters here "
    "treat every key as undeclared."
)
_BESIDE = (
    "MEMORY_FILTER_KEYS is %s here, and %s in a process beside this one: give all of them one setting; what that one "
    "writes is looked at item by item until the next start."
)


class FilterFilling:
    """Goes through the users in a task of its own, first the store's items of each, then the points.

    The record in the store says how far it came, so that a killed process goes on there. Only what the record calls
    done is searched by terms in the index: until then, a filter looks at the stored items.

    Of processes with different keys on one store the one that started last has the record. The others' keys count as
    undeclared, and what they write has no terms of the record's keys: it is looked at, until the next start with these
    keys fills it in. `warning` is the sentence that says so in each of them, or None. The record is read every
    `seconds`.
    """

    def __init__(
        self, store: Store, index: VectorIndex, embedder: Embedder, keys: FilterKeys, *, seconds: float = RETRY_SECONDS
    ) -> None:
        self.warning: str | None = None
        self._store = store
        self._index = index
        self._embedder = embedder
        self._keys = keys
        self._is_begun = False
        self._sweep = Sweep("filter-filling", self._go_on, seconds=seconds)

    def start(self) -> None:
        """Start filling in, where anything is left to fill in."""
        self._sweep.start()

    async def close(self) -> None:
        """Stop; the next start goes on."""
        await self._sweep.close()

    async def _go_on(self) -> None:
        """Fill in what is left. An outage leaves the rest to the next call."""
        try:
            seen = await self._begun()
            if seen is not None and not seen.is_done:
                await self._fill(seen)
        except (IndexUnavailable, ModelUnavailable):
            logger.warning("terms of filters wait for the index", extra={"action": "filter_filling_waits"})

    async def _begun(self) -> Filling | None:
        """Return the record for the present keys and embedder; None where this process is not to fill in anything.

        Another embedder's points may have been made before the keys were declared.
        """
        wanted = Filling(self._keys.digest, await embedder_name(self._embedder), keys=self._keys.as_text)
        seen = await self._store.filter_terms.filling()
        if self._is_begun and seen is not None and seen.digest != wanted.digest:
            await self._give_way(seen)
            return None
        is_own = seen is not None and (seen.digest, seen.embedder) == (wanted.digest, wanted.embedder)
        # At a start, what processes with other keys have written until then gets its terms.
        if seen is not None and is_own and (self._is_begun or not seen.others):
            self._is_begun = True
            self._warn(_BESIDE % (self._keys.as_text, seen.others) if seen.others else None)
            return seen
        if not await self._store.filter_terms.record(wanted, seen=seen):
            return None
        self._is_begun = True
        return wanted

    async def _give_way(self, seen: Filling) -> None:
        """Say that a process which started later has other keys, here and in the record, for that process to say."""
        self._warn(_LATER % (self._keys.as_text, seen.keys or "other keys"))
        if not seen.others:
            await self._store.filter_terms.record(replace(seen, others=self._keys.as_text), seen=seen)

    def _warn(self, warning: str | None) -> None:
        """Keep the warning, and log it once."""
        if warning is not None and warning != self.warning:
            logger.warning(warning, extra={"action": "filter_keys_differ"})
        self.warning = warning

    async def _fill(self, seen: Filling) -> None:
        """Fill in all users' items, from where the record says."""
        async for users in self._store.users():
            for user_id in (user for user in users if user >= seen.place):
                reached = replace(seen, place=user_id[:PLACE_CHARACTERS])
                if reached != seen and not await self._store.filter_terms.record(reached, seen=seen):
                    return  # another process fills in, too: look at the record again
                seen = reached
                await self._fill_user(user_id)
        if await self._store.filter_terms.record(replace(seen, place="", is_done=True), seen=seen):
            logger.info("terms of filters are filled in", extra={"action": "filter_filling_done"})

    async def _fill_user(self, user_id: str) -> None:
        read = AT_ONCE
        while read:
            read = await self._store.filter_terms.fill(user_id, limit=AT_ONCE)
        # A point may be written between reading its item and writing its terms: the next pass writes those of its item.
        for _ in range(MOST_PASSES):
            written = 0
            async for entries in expected(self._store, user_id=user_id):
                for begin in range(0, len(entries), AT_ONCE):
                    written += await self._index.retouch(entries[begin : begin + AT_ONCE])
            if not written:
                return
