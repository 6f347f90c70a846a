"""Deletion of one turn: what it taught is taken back, then its messages go, and every copy of their text."""

import logging
from collections.abc import Mapping
from typing import Any

from recollect.memory.facts.fact_service import FactService
from recollect.memory.learning.turns.regenerating import reopen
from recollect.memory.learning.turns.turn_service import TurnService
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import PointStore
from recollect.memory.threads.recorded_hits import RecordedHits
from recollect.memory.values.errors import IndexUnavailable, NotFound
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Turn

logger = logging.getLogger(__name__)


@frozen
class TurnDeleting:
    """Deletes turns. After a failure the same call completes what is left."""

    store: Store
    index: PointStore
    turns: TurnService
    facts: FactService

    async def delete(self, user_id: str, turn_id: str) -> None:
        """Delete the turn: the facts that it added are forgotten, those that it ended hold again.

        Facts that have changed since stay as they are.

        Raises:
            NotFound: the user has no such turn.
            UpdatePending: the turn is still being learned from.
            StoreUnavailable: a part is deleted.
        """
        turn = await self.store.conversations.turn(user_id=user_id, turn_id=turn_id)
        if turn is None:
            raise NotFound("There is no such turn of this user.")
        await self.take_back(turn)
        # The summary goes first: after a kill between the two, the same call still finds the turn.
        await reopen(self.store, turn.message)
        await self.store.conversations.remove(user_id=user_id, turn_ids=[turn_id])
        await RecordedHits(self.store).blank_turn(user_id, turn_id)
        await self._remove_points(turn)

    async def take_back(self, turn: Turn) -> None:
        """Undo what the turn taught, and forget the facts that it added."""
        user_id, turn_id = turn.message.user_id, turn.message.turn_id
        if turn.update is None:
            return
        undone = await self.turns.undo(user_id, turn_id, force=True)
        added: list[Mapping[str, Any]] = undone["undone"]
        for fact_id in dict.fromkeys(change["fact_id"] for change in added):
            fact = await self.store.facts.fact(user_id=user_id, fact_id=fact_id)
            if fact is not None and fact.turn_id == turn_id and fact.ended is not None and fact.status != "forgotten":
                await self.facts.forget(user_id, fact_id)

    async def take_back_all(self, scope: Scope) -> None:
        """Undo what the thread's (or the user's) turns taught, and forget the facts that they added.

        Raises:
            UpdatePending: one of the turns is still being learned from; those before it are done.
        """
        async for turns in self.store.conversations.every(scope):
            for turn in turns:
                await self.take_back(turn)

    async def _remove_points(self, turn: Turn) -> None:
        try:
            await self.index.remove(user_id=turn.message.user_id, ids=turn.message.point_ids)
        except IndexUnavailable:
            logger.warning("a deleted turn's points wait for the repair", extra={"action": "deleted_points_wait"})
