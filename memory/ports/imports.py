"""The imports port, part of the store: turns of the past, many in one call."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol

from recollect.memory.values.turn import Message, Turn
from recollect.memory.values.update import Update


class Imports(Protocol):
    """Turns of the past, as an importer brings them: many in one call, with the times they have."""

    @abstractmethod
    async def known(self, user_id: str, imported_ids: Sequence[str]) -> dict[str, Message]:
        """Return stored messages of finished turns by their imported ids, of those in `imported_ids` (at most 500)."""
        ...

    @abstractmethod
    async def stored(self, user_id: str, turn_ids: Sequence[str]) -> dict[str, Turn]:
        """Return, by turn id, those of `turn_ids` (at most 500) that are stored, unfinished turns included."""
        ...

    @abstractmethod
    async def insert(self, turns: Sequence[Turn]) -> int:
        """Store `turns` (at most 500, of one user) behind their threads' newest, in this order.

        The store keeps `created_at` and assigns positions; it keeps a message's own position if that is above all
        positions in the thread by then. A turn without a reply is stored as unfinished. A turn that is stored already
        stays unchanged; one of which only the user's message is stored gets its reply. Return how many turns were
        inserted or finished. The call is not atomic: after a kill, some of the turns are stored.
        """
        ...

    @abstractmethod
    async def settle(self, user_id: str, turn_ids: Sequence[str], *, owed: Update, done: Update) -> int:
        """Record `done` for those of `turn_ids` (at most 500) whose stored update equals `owed`; return how many."""
        ...

    @abstractmethod
    async def settle_each(self, turns: Sequence[Turn], *, done: Sequence[Update]) -> int:
        """Record `done[i]` for `turns[i]` (at most 500) where the stored update equals that turn's `update`.

        Return how many were recorded.
        """
        ...
