"""Regeneration: replaces the answer of a finished turn by a new one in a single write.

Until that write readers see the whole old answer. The turn's facts step takes back what the old answer taught before it
learns from the new one. The old answer's point is removed at once, and the index step makes the new one.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import uuid4

from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import PointStore
from recollect.memory.updates.work_claim import LEASE
from recollect.memory.values.errors import (
    IndexUnavailable,
    NotFound,
    NotLastTurn,
    TurnConflict,
    UpdatePending,
    UserErased,
)
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope
from recollect.memory.values.times import Clock
from recollect.memory.values.turn import Message, Turn
from recollect.memory.values.update import PreviousAnswer, Step, Update

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.05
"""Seconds between two checks of whether the work on the old answer's update has ended."""


async def last_turn(store: Store, scope: Scope, turn_id: str) -> Turn:
    """Return the thread's last turn, finished or not. It stays the last while the caller holds the thread.

    Raises:
        NotFound: the user has no such turn.
        TurnConflict: the turn is another thread's, or has no message of the user to answer.
        NotLastTurn: another turn has followed it.
    """
    conversations = store.conversations
    turn = await conversations.turn(user_id=scope.user_id, turn_id=turn_id)
    if turn is None:
        raise NotFound("There is no such turn of this user.")
    if turn.message.thread_id != scope.thread:
        raise TurnConflict(turn_id=turn_id)
    if turn.message.absent:
        raise TurnConflict("The user said nothing in this turn that could be answered anew.", turn_id=turn_id)
    if await conversations.last_position(scope) > turn.message.position + 1:
        raise NotLastTurn(turn_id=turn_id)
    return turn


async def reopen(store: Store, message: Message) -> bool:
    """Take back a thread's archive and summary if they cover `message`, its last one; tell whether they did.

    A later step summarises the thread again; a person's summary stays.
    """
    while (record := await store.threads.record(message.scope)) is not None:
        reopened = record.without(message.position)
        if reopened == record:
            return False
        if await store.threads.put(reopened.revised(), revision=record.revision):
            return True
    return False


def is_without_memory(turn: Turn) -> bool:
    """Tell whether the turn was run without memory; its new answer is then made without memory too."""
    index = turn.update.steps.get("index") if turn.update is not None else None
    return index is not None and index.status == "skipped"


def answered_anew(before: Update, owed: Update, *, at: datetime) -> Update:
    """Return the update `owed` for a new answer, which also takes back what the old update `before` taught.

    New facts get ids of another round, because facts that were taken back or forgotten by a person keep their ids.
    """
    known = before.earlier or PreviousAnswer(at)
    writes = tuple(write for write in before.writes if write.inserts or write.ends or write.replaces)
    inserted = [write.inserts for write in writes if write.inserts is not None]
    fact_ids = (*known.fact_ids, *(change.fact_id for change in before.changes), *inserted)
    update = replace(owed, anew=True, learned=before.learned, preview=before.voided)
    if not fact_ids:
        return update
    earlier = PreviousAnswer(at, (*known.writes, *writes), tuple(dict.fromkeys(fact_ids)))
    update = replace(update, learned=before.learned + 1, earlier=replace(earlier, done=not earlier.writes))
    if earlier.writes and owed.steps["facts"].status == "skipped":
        # The new answer teaches nothing, but the facts step still has to take the old writes back.
        return replace(update, planned=True, steps={**owed.steps, "facts": Step()})
    return update


@frozen
class Regenerating:
    """Replaces answers. Waits up to `wait_seconds` while another worker runs the old answer's update.

    If nobody works for the user, the replacement runs under the user's claim, so that no worker begins meanwhile. That
    includes an update that is retried later or deferred until more turns of its thread wait.
    """

    store: Store
    index: PointStore
    clock: Clock
    wait_seconds: float

    async def replace(self, answer: Message, *, result: Mapping[str, Any], owed: Update) -> Turn:
        """Replace the turn's answer by `answer` (an assistant's message), its `result`, and the `owed` update.

        Raises:
            UserErased: the turn no longer exists.
            UpdatePending: a worker still runs the old answer's update; the old answer stays.
            StoreUnavailable: the old answer stays.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.wait_seconds
        while True:
            stored = await self._replace(answer, result, owed)
            if stored is not None:
                return stored
            left = deadline - loop.time()
            if left <= 0:
                raise UpdatePending(turn_id=answer.turn_id)
            await asyncio.sleep(min(LOOK_SECONDS, left))

    async def _replace(self, answer: Message, result: Mapping[str, Any], owed: Update) -> Turn | None:
        """Return the turn with its new answer; None if a worker runs its update, or if that has just changed."""
        updates = self.store.updates
        owner = f"answer-{uuid4().hex}"
        claim = await updates.claim(answer.user_id, owner=owner, lease=LEASE, now=self.clock())
        if claim is None:
            turn = await self._read(answer)
            # A worker holds the claim, but this turn's update has ended. The index step removes the old answer's point.
            is_worked_off = turn.update is not None and turn.update.status != "pending"
            return await self._write(turn, answer, result, owed) if is_worked_off else None
        try:
            stored = await self._write(await self._read(answer), answer, result, owed, generation=claim.generation)
            if stored is not None:
                await self._remove_point(answer)
            return stored
        finally:
            await updates.release(claim)

    async def _remove_point(self, answer: Message) -> None:
        """Remove the old answer's point. The caller holds the claim, so no worker makes the new point meanwhile."""
        try:
            await self.index.remove(user_id=answer.user_id, ids=[answer.id])
        except IndexUnavailable:
            logger.warning(
                "an old answer's point waits for the index",
                extra={"action": "old_point_waits", "turn_id": answer.turn_id},
            )

    async def _read(self, answer: Message) -> Turn:
        turn = await self.store.conversations.turn(user_id=answer.user_id, turn_id=answer.turn_id)
        if turn is None or turn.update is None:
            raise UserErased
        return turn

    async def _write(
        self, turn: Turn, answer: Message, result: Mapping[str, Any], owed: Update, generation: int | None = None
    ) -> Turn | None:
        if turn.update is None:
            return None
        update = answered_anew(turn.update, owed, at=self.clock())
        conversations = self.store.conversations
        if not await conversations.recommit(turn, answer, result=result, update=update, generation=generation):
            return None
        return Turn(turn.message, answer, result, update)
