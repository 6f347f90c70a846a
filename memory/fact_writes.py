"""The writes of a plan, done one by one; done twice, they have the effect of once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from memory.documents import Facts
from memory.errors import FactConflict
from memory.fact import Fact
from memory.fact_rivals import is_rival, superseded
from memory.planned_write import PlannedWrite
from memory.recall import MOST_FACTS
from memory.scope import Scope
from memory.times import from_ms

_TRIES = 10
"""How often a write that lost a race looks at the fact again."""


@dataclass(frozen=True, slots=True)
class FactWrites:
    """Does what plans decided. A person may have changed a fact since: what they wrote or pinned stays."""

    facts: Facts

    async def do(self, scope: Scope, writes: Sequence[PlannedWrite], *, turn_id: str | None = None) -> None:
        """Insert, end and confirm, in the order of the plan: what this turn taught, or a text in this scope."""
        inserted: list[Fact] = []
        for write in writes:
            new = write.new_fact(user_id=scope.user_id, thread_id=scope.thread_id, turn_id=turn_id)
            if new is not None:
                await self.facts.insert(new)
                inserted.append(new)
            if write.ends is not None and write.status == "active":
                await self._end(scope.user_id, write.ends, write, turn_id)
            if write.confirms is not None:
                await self._confirm(scope.user_id, write.confirms, write.at)
        await self._give_way(scope, [fact for fact in inserted if fact.key is not None and fact.status == "active"])

    async def _give_way(self, scope: Scope, inserted: Sequence[Fact]) -> None:
        """End what was inserted under a key where a person has written or pinned a fact since the plan was made."""
        if not inserted:
            return
        at = max(fact.created_at for fact in inserted)
        living = await self.facts.living(scope, at=at, limit=MOST_FACTS)
        for fact in inserted:
            if any(other.is_guarded and is_rival(other, fact) and other.is_living(at) for other in living):
                end = superseded(by="person", at=at)
                await revise(self.facts, user_id=fact.user_id, fact_id=fact.id, change=end)

    async def _end(self, user_id: str, fact_id: str, write: PlannedWrite, turn_id: str | None) -> None:
        until = None if write.valid_from_ms is None else from_ms(write.valid_from_ms)
        end = superseded(by="turn", at=write.at, until=until, turn_id=turn_id)

        def ended(fact: Fact) -> Fact | None:
            return None if fact.is_guarded else end(fact)

        await revise(self.facts, user_id=user_id, fact_id=fact_id, change=ended)

    async def _confirm(self, user_id: str, fact_id: str, at: datetime) -> None:
        def confirmed(fact: Fact) -> Fact | None:
            if fact.confirmed_at >= at or not (fact.is_open or fact.status == "proposed"):
                return None
            # Its point says the same as before.
            return fact.revised(at=fact.updated_at, confirmed_at=at, indexed=fact.indexed)

        await revise(self.facts, user_id=user_id, fact_id=fact_id, change=confirmed)


async def revise(facts: Facts, *, user_id: str, fact_id: str, change: Callable[[Fact], Fact | None]) -> Fact | None:
    """Change a fact under the revision it was read at, and again where another write came in between.

    `change` returns the next revision, or None to leave the fact as it is. The stored fact after it, or None if there
    is no such fact.

    Raises:
        FactConflict: other writes kept coming in between.
    """
    for _ in range(_TRIES):
        fact = await facts.fact(user_id=user_id, fact_id=fact_id)
        if fact is None:
            return None
        changed = change(fact)
        if changed is None:
            return fact
        if await facts.replace(changed, revision=fact.revision):
            return changed
    raise FactConflict
