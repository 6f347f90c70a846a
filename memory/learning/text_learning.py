"""Text learning: learns from a text that is no turn, at once, under the claim that the user's turns use too.

The text itself is not stored. A new fact is inserted before the one that it replaces ends, and names it. After a kill
in between, the next text that is learned from ends the replaced fact, so that the same text again completes the work.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from typing import Any
from uuid import uuid4

from recollect.memory.erasure.fences import Fences
from recollect.memory.facts.fact_rivals import superseded
from recollect.memory.facts.fact_writes import FactWrites, revise
from recollect.memory.index.index_outbox import IndexOutbox
from recollect.memory.learning.plan import Plan
from recollect.memory.ports.store import Store
from recollect.memory.updates.retention import Retention
from recollect.memory.updates.updater import Updater
from recollect.memory.updates.user_claim import user_claim
from recollect.memory.values.decision import Change, RefusedProposal
from recollect.memory.values.fact_limits import MOST_FACTS
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope
from recollect.memory.values.text import MOST_MESSAGE_CHARACTERS, check_message
from recollect.memory.values.times import Clock

PlanText = Callable[[Scope, str, str, str | None], Awaitable[tuple[Plan, str]]]
"""Plans learning from a scope's text, under the lesson's id; returns the plan and the model's name. Stores nothing."""


@frozen
class Lesson:
    """Holds what a text has taught, what was refused, and the model that read it."""

    model: str
    changes: Sequence[Change]
    refused: Sequence[RefusedProposal]

    def as_json(self) -> dict[str, Any]:
        """Return the JSON of the HTTP contract."""
        return {
            "model": self.model,
            "changes": [change.as_json() for change in self.changes],
            "refused": [asdict(refused) for refused in self.refused],
        }


@frozen
class TextLearning:
    """Learns from texts. A call waits up to `wait_seconds` for the claim while the user's turns are learned from."""

    store: Store
    plan: PlanText
    points: IndexOutbox
    updater: Updater
    retention: Retention
    fences: Fences
    clock: Clock
    wait_seconds: float
    most_characters: int = MOST_MESSAGE_CHARACTERS

    async def learn(self, scope: Scope, text: str, *, agent_id: str | None = None) -> Lesson:
        """Learn facts of the user, and of the thread if `scope` names one, from the user's own words.

        `agent_id` labels the new facts.

        Raises:
            InvalidRequest: nothing can be learned from the text; names `content`.
            UpdatePending: the user's turns are still being learned from.
            UserErased: the user, or the thread, was erased meanwhile; nothing of it is kept.
            ModelUnavailable, UnreadableAnswer: nothing was learned.
            StoreUnavailable: some of it may have been learned; the same text again completes it.
        """
        check_message(text, most=self.most_characters, field="content")
        fence = await self.fences.observe(scope)
        try:
            async with user_claim(
                self.store.updates, scope.user_id, clock=self.clock, wait_seconds=self.wait_seconds
            ) as held:
                async with fence.writing():
                    await self._complete(scope)
                # A new id for each call: the same text may teach again what was forgotten meanwhile.
                made, model = await self.plan(scope, text, str(uuid4()), agent_id)
                # The model took its time: write nothing if the claim has passed to another process meanwhile.
                await held.check()
                async with fence.writing() as writing:
                    writing.on_erased(lambda: self._take_back(scope, made))
                    await FactWrites(self.store.facts).do(scope, made.writes, agent_id=agent_id)
            if made.writes:
                self.retention.touch(scope.user_id)
            if any(write.inserts and write.scope == "thread" for write in made.writes):
                await self.retention.trim_thread(scope)
        finally:
            self.updater.notify(scope.user_id)
        await self.points.sync_soon(scope.user_id)
        return Lesson(model, made.changes, made.refused)

    async def _take_back(self, scope: Scope, made: Plan) -> None:
        """Remove the facts that were just written, because their user or thread was erased meanwhile."""
        inserted = [write.inserts for write in made.writes if write.inserts is not None]
        await self.store.facts.remove(user_id=scope.user_id, fact_ids=inserted)

    async def _complete(self, scope: Scope) -> None:
        """End the facts that an earlier text replaced but did not end before a kill."""
        facts = self.store.facts
        living = {fact.id: fact for fact in await facts.living(scope, at=self.clock(), limit=MOST_FACTS)}
        for fact in living.values():
            replaced = living.get(fact.replaces or "")
            if (
                fact.source == "text"
                and fact.is_open
                and replaced is not None
                and replaced.is_open
                and not replaced.is_guarded
            ):
                end = superseded(by="turn", at=fact.created_at, until=fact.valid_from)
                await revise(facts, user_id=replaced.user_id, fact_id=replaced.id, change=end)
