"""The facts step of an update: extraction, reconciliation, and the writes that they decide on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memory.decision import Proposal
from memory.documents import Facts
from memory.extractor import ExtractionRequest, Extractor
from memory.fact import Fact
from memory.planned_write import PlannedWrite
from memory.recall import MOST_FACTS
from memory.reconciliation import Plan, PlanRequest, plan
from memory.times import Clock
from memory.turn import Message, Turn
from memory.update import Update
from memory.user_work import Save

MOST_SHOWN = 50
"""How many known facts the extraction model is shown, newest first."""


@dataclass(frozen=True, slots=True)
class FactsStep:
    """Learns facts from the user's message of a turn.

    What a plan decides is recorded with the turn before the first write: a replay after a kill does the recorded
    writes, each of them idempotent, and asks no model again.
    """

    facts: Facts
    extractor: Extractor
    clock: Clock

    async def run(self, turn: Turn, update: Update, save: Save) -> Update:
        """Learn; see `StepWork.run`. The agent's own proposals are written first: no extraction can hold them up."""
        await self._write(turn.message, update.writes)
        if update.proposals:
            living = await self._living(turn.message)
            made = self._plan(turn.message, update.proposals, (), living)
            update = await self._keep(replace(update, proposals=()), made, turn.message, save)
        if not update.planned:
            update = await self._extract(turn, update, save)
        return update

    async def _extract(self, turn: Turn, update: Update, save: Save) -> Update:
        message = turn.message
        living = await self._living(message)
        shown = living[:MOST_SHOWN]
        reply = turn.reply.content if turn.reply is not None else ""
        extraction = await self.extractor.extract(
            ExtractionRequest(message=message.content, reply=reply, known=shown, now=self.clock())
        )
        made = self._plan(message, extraction.proposals, shown, living)
        learned = replace(
            update,
            planned=True,
            model=extraction.model,
            refused=(*update.refused, *extraction.refused),
        )
        return await self._keep(learned, made, message, save)

    async def _keep(self, update: Update, made: Plan, message: Message, save: Save) -> Update:
        """Record what a plan decided, then do it. A fact that this turn has just taught is not confirmed by it too."""
        taught = {change.fact_id for change in update.changes}
        fresh = [
            (change, write)
            for change, write in zip(made.changes, made.writes, strict=True)
            if not (change.decision == "keep" and change.fact_id in taught)
        ]
        learned = replace(
            update,
            changes=(*update.changes, *(change for change, _ in fresh)),
            writes=(*update.writes, *(write for _, write in fresh)),
            refused=(*update.refused, *made.refused),
        )
        if fresh:
            await save(learned)
            await self._write(message, [write for _, write in fresh])
        return learned

    def _plan(
        self, message: Message, proposals: Sequence[Proposal], known: Sequence[Fact], living: Sequence[Fact]
    ) -> Plan:
        return plan(
            PlanRequest(
                proposals=proposals,
                known=known,
                living=living,
                message=message.content,
                user_id=message.user_id,
                thread_id=message.thread_id,
                turn_id=message.turn_id,
                now=self.clock(),
            )
        )

    async def _living(self, message: Message) -> list[Fact]:
        return await self.facts.living(message.scope, limit=MOST_FACTS)

    async def _write(self, message: Message, writes: Sequence[PlannedWrite]) -> None:
        for write in writes:
            new = write.new_fact(user_id=message.user_id, thread_id=message.thread_id, turn_id=message.turn_id)
            if new is not None:
                await self.facts.insert(new)
            ended = await self._known(message, write.ends)
            if ended is not None and not ended.is_guarded:
                # A person may have pinned it since the plan was made.
                await self.facts.end(ended, at=write.at)
            confirmed = await self._known(message, write.confirms)
            if confirmed is not None:
                await self.facts.confirm(confirmed, at=write.at)

    async def _known(self, message: Message, fact_id: str | None) -> Fact | None:
        return None if fact_id is None else await self.facts.fact(user_id=message.user_id, fact_id=fact_id)
