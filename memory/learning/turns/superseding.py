"""Superseding: takes the last turns of a thread out of window, search and learning, because the user went another way.

A chat client's user edits a message, and the turns behind it no longer count. Each becomes an unfinished turn: the
user's message stays among the thread's messages, the reply goes, and what it taught is taken back.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace

from recollect.memory.learning.turns.regenerating import Regenerating, reopen
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import PointStore
from recollect.memory.updates.updater import Updater
from recollect.memory.values.errors import IndexUnavailable, UpdatePending
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Turn
from recollect.memory.values.update import not_owed

logger = logging.getLogger(__name__)

REASON = "superseded"
"""Why the steps of a superseded turn are skipped, while what it taught is taken back."""


@frozen
class Superseding:
    """Supersedes turns. After a failure the same call completes what is left."""

    store: Store
    index: PointStore
    updater: Updater
    regenerating: Regenerating

    async def supersede(self, scope: Scope, turn_ids: Sequence[str]) -> None:
        """Supersede these turns of the thread, which are its last ones, the newest first.

        Raises:
            UpdatePending: one of them is still being learned from; those behind it are superseded.
            StoreUnavailable: a part is superseded.
        """
        for turn_id in reversed(turn_ids):
            turn = await self.store.conversations.turn(user_id=scope.user_id, turn_id=turn_id)
            if turn is not None and turn.reply is not None:
                await self._supersede(turn)

    async def _supersede(self, turn: Turn) -> None:
        await reopen(self.store, turn.message)
        taken_back = await self._taken_back(turn)
        if not await self.store.conversations.retract(taken_back):
            raise UpdatePending(turn_id=turn.message.turn_id)
        await self._remove_points(turn)

    async def _taken_back(self, turn: Turn) -> Turn:
        """Have the facts step take back what the turn taught, as it does for a new answer; no model is asked."""
        if turn.reply is None or turn.update is None:
            return turn
        message = turn.message
        replaced = await self.regenerating.replace(turn.reply, result=turn.result or {}, owed=not_owed(REASON))
        self.updater.notify(message.user_id)
        update = await self.updater.wait_ended(
            user_id=message.user_id, turn_id=message.turn_id, seconds=self.regenerating.wait_seconds
        )
        if update is None or update.status == "pending":
            raise UpdatePending(turn_id=message.turn_id)
        return replace(replaced, update=update)

    async def _remove_points(self, turn: Turn) -> None:
        spoken = [message for stored in turn.messages for message in stored.spoken]
        try:
            await self.index.remove(user_id=turn.message.user_id, ids=[message.id for message in spoken])
        except IndexUnavailable:
            logger.warning("a superseded turn's points wait for the repair", extra={"action": "superseded_points_wait"})
