"""Reads what a turn shows beside its hits, once for all of its fetches that need it; its search leaves that out."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import field
from typing import Generic, TypeVar

from recollect.memory.threads.window import ReadWindow
from recollect.memory.values.errors import StoreUnavailable
from recollect.memory.values.frozen import frozen
from recollect.memory.values.turn import Exchange

Found = TypeVar("Found")


@frozen
class KnownFacts:
    """The facts that every prompt gets: the keyed ones as a dict, pinned notes as statements.

    A thread's own come first, then the weightiest; of `notes` the first `own_notes` are the thread's. Other notes are
    recalled by meaning. `ids` are the facts' ids, in the order of `facts`, then of `notes`.
    """

    facts: Mapping[str, str]
    notes: Sequence[str]
    ids: Sequence[str] = ()
    own_notes: int = 0


ReadFacts = Callable[[], Awaitable[KnownFacts]]
"""Reads the facts that a turn is given."""


class SharedRead(Generic[Found]):
    """Reads once what several fetches of one turn need: the first of them reads, the others wait."""

    def __init__(self) -> None:
        self._reading = asyncio.Lock()
        self._found: Found | None = None

    async def get(self, read: Callable[[], Awaitable[Found]]) -> Found:
        """Return what was read, or what `read` gives: where one reader fails or is cancelled, the next one reads."""
        async with self._reading:
            if self._found is None:
                self._found = await read()
            return self._found


@frozen
class SharedReads:
    """Holds what the fetches of one turn share."""

    window: SharedRead[list[Exchange]] = field(default_factory=SharedRead[list[Exchange]])
    facts: SharedRead[KnownFacts] = field(default_factory=SharedRead[KnownFacts])


@frozen
class Shown:
    """Names what a turn shows: the turns and facts that `window` and `facts` read, and further `turns` by their ids.

    Without `window` it shows the thread's last turns. What it shows is no hit.
    """

    window: ReadWindow | None = None
    facts: ReadFacts | None = None
    turns: Collection[str] = ()

    async def fact_ids(self) -> frozenset[str]:
        """Return the ids of the facts that are shown, as far as they can be read: a search checks those it finds."""
        if self.facts is None:
            return frozenset()
        try:
            return frozenset((await self.facts()).ids)
        except StoreUnavailable:
            return frozenset()
