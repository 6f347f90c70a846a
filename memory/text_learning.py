"""Learning from a text that is no turn: at once, and in turn with what the user's turns teach.

Nothing is written down of the text itself. A new fact is inserted before the one that it replaces ends, and names it;
where a kill came in between, the next text that is learned from ends that one, so that the same text again completes
what the first time began.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol
from uuid import uuid4

from memory.decision import Change, Refused
from memory.documents import Documents
from memory.fact_book import Keeper
from memory.fact_rivals import superseded
from memory.fact_writes import FactWrites, revise
from memory.fences import Fences
from memory.owed_points import OwedPoints
from memory.plan import Plan
from memory.recall import MOST_FACTS
from memory.scope import Scope
from memory.text import check_message
from memory.times import Clock
from memory.updater import Updater
from memory.user_claim import user_claim


class Planner(Protocol):
    """What decides what a text teaches."""

    async def plan_text(self, scope: Scope, text: str, lesson_id: str) -> tuple[Plan, str]:
        """What learning from the text comes to, and which model says so; nothing is stored."""
        ...


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a text has taught, what was refused, and which model read it."""

    model: str
    changes: Sequence[Change]
    refused: Sequence[Refused]

    def as_json(self) -> dict[str, Any]:
        """As the HTTP contract shows it."""
        return {
            "model": self.model,
            "changes": [asdict(change) for change in self.changes],
            "refused": [asdict(refused) for refused in self.refused],
        }


@dataclass(frozen=True, slots=True)
class TextLearning:
    """Learns from texts. A call waits up to `wait_seconds` for what the user's turns are just teaching."""

    documents: Documents
    planner: Planner
    points: OwedPoints
    updater: Updater
    bounds: Keeper
    fences: Fences
    clock: Clock
    wait_seconds: float

    async def learn(self, scope: Scope, text: str) -> Lesson:
        """Learn facts of the user, and of the thread where the scope names one, from the user's own words.

        Raises:
            InvalidRequest: the text is none that can be learned from; names `content`.
            UpdatePending: the user's turns are still being learned from.
            UserErased: the user, or the thread, was erased meanwhile; nothing of it is kept.
            ModelUnavailable, UnreadableAnswer: nothing was learned.
            StoreUnavailable: some of it may have been learned; the same text again completes it.
        """
        check_message(text, field="content")
        fence = await self.fences.open(scope)
        try:
            async with user_claim(
                self.documents.updates, scope.user_id, clock=self.clock, wait_seconds=self.wait_seconds
            ) as held:
                async with fence.writing():
                    await self._complete(scope)
                # Another one each time: a text that is told again may teach again what was forgotten meanwhile.
                made, model = await self.planner.plan_text(scope, text, str(uuid4()))
                await held.check()
                async with fence.writing() as writing:
                    writing.take_back(lambda: self._take_back(scope, made))
                    await FactWrites(self.documents.facts).do(scope, made.writes)
            if made.writes:
                self.bounds.touch(scope.user_id)
            if any(write.inserts and write.scope == "thread" for write in made.writes):
                await self.bounds.trim_thread(scope)
        finally:
            self.updater.notify(scope.user_id)
        await self.points.sync_soon(scope.user_id)
        return Lesson(model, made.changes, made.refused)

    async def _take_back(self, scope: Scope, made: Plan) -> None:
        """Of an erased user, or thread, nothing is left but what was just written."""
        inserted = [write.inserts for write in made.writes if write.inserts is not None]
        await self.documents.facts.remove(user_id=scope.user_id, fact_ids=inserted)

    async def _complete(self, scope: Scope) -> None:
        """End what an earlier text has replaced, where a kill came before that."""
        facts = self.documents.facts
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
