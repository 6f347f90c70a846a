"""Answering a finished turn anew: the new answer takes the place of the old one in one write.

Until that write the old answer is what is stored, and whoever reads sees it whole. What it taught is taken back by the
turn's facts step, before that learns anew; its point goes at once, and the index step makes the new one.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import uuid4

from memory.documents import Documents
from memory.errors import IndexUnavailable, NotFound, NotLastTurn, TurnConflict, UpdatePending, UserErased
from memory.scope import Scope
from memory.times import Clock
from memory.turn import Message, Turn
from memory.update import Earlier, Step, Update
from memory.user_work import LEASE
from memory.vector_index import PointStore

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.05
"""How often to look whether the old answer's update, which somebody works on, is through."""


async def last_turn(documents: Documents, scope: Scope, turn_id: str) -> Turn:
    """The thread's last turn, finished or not. Whoever holds the thread can rely on it.

    Raises:
        NotFound: there is no such turn.
        TurnConflict: it is another thread's, or the user said nothing in it that could be answered.
        NotLastTurn: another one has followed it.
    """
    conversations = documents.conversations
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


async def reopen(documents: Documents, message: Message) -> bool:
    """Take a thread's archive and summary back where they hold the answer to this message, its last one.

    It is summarised again when the time comes; a person's summary stays. Whether anything was taken back.
    """
    while (record := await documents.threads.record(message.scope)) is not None:
        reopened = record.without(message.position)
        if reopened == record:
            return False
        if await documents.threads.put(reopened.revised(), revision=record.revision):
            return True
    return False


def is_without_memory(turn: Turn) -> bool:
    """Whether the turn was run without memory: then it is answered anew without it, too."""
    index = turn.update.steps.get("index") if turn.update is not None else None
    return index is not None and index.status == "skipped"


def answered_anew(before: Update, owed: Update, *, at: datetime) -> Update:
    """What a turn owes with a new answer, where it owed `before` with the old one.

    It first takes back what the old answer's turn taught. New facts get ids of another round, because those that were
    taken back, or forgotten by a person, keep theirs.
    """
    known = before.earlier or Earlier(at)
    writes = tuple(write for write in before.writes if write.inserts or write.ends or write.replaces)
    inserted = [write.inserts for write in writes if write.inserts is not None]
    fact_ids = (*known.fact_ids, *(change.fact_id for change in before.changes), *inserted)
    update = replace(owed, anew=True, learned=before.learned)
    if not fact_ids:
        return update
    earlier = Earlier(at, (*known.writes, *writes), tuple(dict.fromkeys(fact_ids)))
    update = replace(update, learned=before.learned + 1, earlier=replace(earlier, done=not earlier.writes))
    if earlier.writes and owed.steps["facts"].status == "skipped":
        # It learns nothing this time, but has something to take back.
        return replace(update, planned=True, steps={**owed.steps, "facts": Step()})
    return update


@dataclass(frozen=True, slots=True)
class Regenerating:
    """Puts new answers in the place of old ones. It waits up to `wait_seconds` for who works on the old one's update.

    Where nobody does, it is replaced under the user's claim, so that nobody begins to; so is one that only waits, for
    an outage to pass or for more turns of its thread.
    """

    documents: Documents
    index: PointStore
    clock: Clock
    wait_seconds: float

    async def store(self, answer: Message, *, result: Mapping[str, Any], owed: Update) -> Turn:
        """Replace the turn's answer by `answer` (an assistant's message), its result, and what it owes.

        Raises:
            UserErased: the turn is gone.
            UpdatePending: somebody still works on the old answer's update; that answer stays.
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
        """The turn with its new answer; None while somebody works on its update, or where that has just changed."""
        updates = self.documents.updates
        owner = f"answer-{uuid4().hex}"
        claim = await updates.claim(answer.user_id, owner=owner, lease=LEASE, now=self.clock())
        if claim is None:
            turn = await self._read(answer)
            # Somebody works for the user, but not on this turn. The index step will remove the old answer's point.
            is_at_rest = turn.update is not None and turn.update.status != "pending"
            return await self._write(turn, answer, result, owed) if is_at_rest else None
        try:
            stored = await self._write(await self._read(answer), answer, result, owed, generation=claim.generation)
            if stored is not None:
                await self._remove_point(answer)
            return stored
        finally:
            await updates.release(claim)

    async def _remove_point(self, answer: Message) -> None:
        """Let nobody find the old answer from now on. Nobody makes the new one's point meanwhile."""
        try:
            await self.index.remove(user_id=answer.user_id, ids=[answer.id])
        except IndexUnavailable:
            logger.warning(
                "an old answer's point waits for the index",
                extra={"action": "old_point_waits", "turn_id": answer.turn_id},
            )

    async def _read(self, answer: Message) -> Turn:
        turn = await self.documents.conversations.turn(user_id=answer.user_id, turn_id=answer.turn_id)
        if turn is None or turn.update is None:
            raise UserErased
        return turn

    async def _write(
        self, turn: Turn, answer: Message, result: Mapping[str, Any], owed: Update, generation: int | None = None
    ) -> Turn | None:
        if turn.update is None:
            return None
        update = answered_anew(turn.update, owed, at=self.clock())
        conversations = self.documents.conversations
        if not await conversations.recommit(turn, answer, result=result, update=update, generation=generation):
            return None
        return Turn(turn.message, answer, result, update)
