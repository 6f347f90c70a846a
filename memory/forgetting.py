"""Forgetting a fact: its text leaves every place that keeps it, and a tombstone without text stays.

First every version of what the fact says is marked forgotten, so that nothing recalls it any more; then its text leaves
the index and what turns keep of it; last it leaves the facts themselves. Cut off in between, the same call again
completes what is left. The messages of the conversation and its summary stay: they are not the fact's.
"""

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memory.decision import Change, Proposal, Refused
from memory.documents import Documents, Facts
from memory.errors import FactConflict, NotFound, UpdatePending
from memory.fact import Ended, Fact, fold
from memory.fact_history import tombstone
from memory.fact_writes import revise
from memory.owed_points import OwedPoints
from memory.planned_write import PlannedWrite
from memory.scope import GLOBAL_USER
from memory.times import Clock
from memory.turn import Turn
from memory.update import Update
from memory.updater import Updater

logger = logging.getLogger(__name__)

FORGOTTEN = "forgotten"
_TRIES = 5
_PENDING = 1_000


async def family_of(facts: Facts, user_id: str, fact_id: str) -> list[Fact]:
    """The fact with all that it replaced and all that replaced it, however far: what a user once said on one matter."""
    found: dict[str, Fact] = {}
    to_read = [fact_id]
    while to_read:
        wanted = to_read.pop()
        if wanted in found:
            continue
        fact = await facts.fact(user_id=user_id, fact_id=wanted)
        if fact is None:
            continue
        found[wanted] = fact
        to_read += [fact.replaces] if fact.replaces is not None else []
        to_read += [later.id for later in await facts.successors(user_id=user_id, fact_id=wanted)]
    return list(found.values())


@dataclass(frozen=True, slots=True)
class Traces:
    """What tells that something in a turn's record is of the facts: their ids, and under which keys they said what."""

    ids: frozenset[str]
    said: frozenset[tuple[str | None, str]]

    @classmethod
    def of(cls, facts: Sequence[Fact]) -> "Traces":
        """The traces of these facts, their earlier versions included. A tombstone has its id alone."""
        said: set[tuple[str | None, str]] = set()
        for fact in facts:
            told = [(fact.value, fact.statement), *((one["value"], one["statement"]) for one in fact.history)]
            said |= {(fact.key, fold(text)) for texts in told for text in texts if text}
        return cls(frozenset(fact.id for fact in facts), frozenset(said))

    def has(self, key: str | None, text: str | None) -> bool:
        """Whether one of the facts said this."""
        return text is not None and (key, fold(text)) in self.said

    def without(self, turn: Turn) -> Turn:
        """The turn with nothing of the facts in its update and its result; an equal one if it holds nothing."""
        update, result = turn.update, turn.result
        return replace(
            turn,
            update=None if update is None else self._without_update(update),
            result=None if result is None else self._without_result(result),
        )

    def _without_update(self, update: Update) -> Update:
        undo, earlier = update.undo, update.earlier
        return replace(
            update,
            changes=self._without_changes(update.changes),
            writes=self._without_writes(update.writes),
            earlier=None if earlier is None else replace(earlier, writes=self._without_writes(earlier.writes)),
            refused=tuple(_blank_refused(one) if self._is_refused(one) else one for one in update.refused),
            proposals=tuple(one for one in update.proposals if not self._is_proposed(one)),
            undo=None
            if undo is None
            else replace(
                undo,
                changes=self._without_changes(undo.changes),
                left=tuple(replace(one, key=None) if one.fact_id in self.ids else one for one in undo.left),
            ),
        )

    def _without_writes(self, writes: Sequence[PlannedWrite]) -> tuple[PlannedWrite, ...]:
        return tuple(_blank_write(one) if one.inserts in self.ids else one for one in writes)

    def _without_changes(self, changes: Sequence[Change]) -> tuple[Change, ...]:
        return tuple(_blank_change(one) if one.fact_id in self.ids else one for one in changes)

    def _is_refused(self, refused: Refused) -> bool:
        return refused.fact_id in self.ids or self.has(refused.key, refused.value)

    def _is_proposed(self, proposal: Proposal) -> bool:
        return any(self.has(proposal.key, text) for text in (proposal.value, proposal.statement))

    def _without_result(self, result: Mapping[str, Any]) -> Mapping[str, Any]:
        memory: Mapping[str, Any] = result.get("memory", {})
        facts: Mapping[str, str] = memory.get("facts", {})
        hits: Sequence[Mapping[str, Any]] = memory.get("hits", ())
        kept = {key: value for key, value in facts.items() if not self.has(key, value)}
        blanked = [{**hit, "content": ""} if hit["kind"] == "fact" and hit["id"] in self.ids else hit for hit in hits]
        if len(kept) == len(facts) and blanked == list(hits):
            return result
        return {**result, "memory": {**memory, "facts": kept, "hits": blanked}}


def _blank_change(change: Change) -> Change:
    return replace(change, key=None, before=None, after=None, evidence="", reason=FORGOTTEN)


def _blank_refused(refused: Refused) -> Refused:
    return replace(refused, key=None, value=None, evidence="", reason=FORGOTTEN)


def _blank_write(write: PlannedWrite) -> PlannedWrite:
    return replace(write, key=None, value="", statement="", evidence="", tags=())


@dataclass(frozen=True, slots=True)
class Forgetting:
    """Forgets facts in documents and index."""

    documents: Documents
    points: OwedPoints
    updater: Updater
    clock: Clock
    wait_seconds: float

    async def forget(self, user_id: str, fact_id: str) -> None:
        """Forget the fact; see `FactBook.forget`."""
        if await self.documents.facts.fact(user_id=user_id, fact_id=fact_id) is None:
            raise NotFound("There is no such fact of this user.")
        await self._settle(user_id)
        family = await family_of(self.documents.facts, user_id, fact_id)
        for fact in family:
            await revise(self.documents.facts, user_id=user_id, fact_id=fact.id, change=self._marked)
        await self.points.sync_soon(user_id)
        traces = Traces.of(family)
        late = 0
        async for holder in self._holders(user_id):
            late += await self._clean(holder, traces)
        for fact in family:
            await revise(self.documents.facts, user_id=user_id, fact_id=fact.id, change=self._blanked)
        await self.points.sync_soon(user_id)
        logger.info("fact forgotten", extra={"action": "fact_forgotten", "versions": len(family), "late": late})
        if late:
            raise UpdatePending(
                "The fact is forgotten, but a turn that is still being learned from holds some of its text; "
                "forget it again when that has ended."
            )

    def _marked(self, fact: Fact) -> Fact | None:
        if fact.status == FORGOTTEN:
            return None
        now = self.clock()
        return fact.revised(at=now, status=FORGOTTEN, ended=Ended("person", now, reason=FORGOTTEN))

    def _blanked(self, fact: Fact) -> Fact:
        # Always a write: the store takes the earlier bytes off its disk with it.
        return tombstone(fact, at=fact.updated_at)

    async def _settle(self, user_id: str) -> None:
        """Wait, within bounds, until what the user's turns are just learning is learned."""
        pending = await self.documents.updates.pending(user_id, limit=_PENDING)
        await self.updater.wait_all_ended(pending, seconds=self.wait_seconds)

    async def _holders(self, user_id: str) -> AsyncIterator[str]:
        """Whose turns may have recalled the fact: everyone's, if it is a global one."""
        if user_id != GLOBAL_USER:
            yield user_id
            return
        async for users in self.documents.users():
            for each in users:
                if each != GLOBAL_USER:
                    yield each

    async def _clean(self, user_id: str, traces: Traces) -> int:
        """Clean the user's turns; how many could not be, because they are still being learned from."""
        late = 0
        async for turns in self.documents.conversations.turns(user_id):
            for turn in turns:
                late += not await self._clean_turn(turn, traces)
        return late

    async def _clean_turn(self, turn: Turn, traces: Traces) -> bool:
        conversations = self.documents.conversations
        message = turn.message
        for _ in range(_TRIES):
            clean = traces.without(turn)
            if clean == turn or clean.update is None or clean.result is None or turn.update is None:
                return True
            # While an update is pending somebody works on it: only the result may change under their hands.
            is_late = turn.update.status == "pending" and clean.update != turn.update
            update = turn.update if is_late else clean.update
            if await conversations.rewrite(turn, result=clean.result, update=update):
                return not is_late
            stored = await conversations.turn(user_id=message.user_id, turn_id=message.turn_id)
            if stored is None:
                return True
            turn = stored
        raise FactConflict("The turns that recalled the fact keep changing; forget it again.")
