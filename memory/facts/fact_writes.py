"""Fact writes: does the writes of a plan one by one; each of them is idempotent."""

from collections.abc import Callable, Sequence
from datetime import datetime

from recollect.memory.facts.fact_rivals import is_rival, superseded
from recollect.memory.ports.facts import Facts
from recollect.memory.values.errors import FactConflict
from recollect.memory.values.fact import Fact
from recollect.memory.values.fact_limits import MOST_FACTS
from recollect.memory.values.frozen import frozen
from recollect.memory.values.planned_write import PlannedWrite
from recollect.memory.values.scope import Scope
from recollect.memory.values.times import from_ms

_TRIES = 10
"""A write that lost a race reads the fact at most this often."""


@frozen
class FactWrites:
    """Does planned writes. Leaves what a person has written or pinned since the plan was made."""

    facts: Facts

    async def do(
        self,
        scope: Scope,
        writes: Sequence[PlannedWrite],
        *,
        turn_id: str | None = None,
        agent_id: str | None = None,
    ) -> list[Fact]:
        """Insert, end and confirm facts in the order of the plan. Without `turn_id` a text in `scope` taught them.

        New facts are labelled with `agent_id`. Return what is stored now of the facts that the plan writes.
        """
        inserted: list[Fact] = []
        written: dict[str, Fact | None] = {}
        for write in writes:
            new = write.new_fact(user_id=scope.user_id, thread_id=scope.thread_id, turn_id=turn_id, agent_id=agent_id)
            if new is not None:
                is_new = await self.facts.insert(new)
                inserted.append(new)
                written[new.id] = new if is_new else await self.facts.fact(user_id=new.user_id, fact_id=new.id)
            # Ended after the insert: a kill in between leaves both values, and the replay ends the old one.
            if write.ends is not None and write.status == "active":
                written[write.ends] = await self._end(scope.user_id, write.ends, write, turn_id)
            if write.confirms is not None:
                written[write.confirms] = await self._confirm(scope.user_id, write.confirms, write.at)
        keyed = [fact for fact in inserted if fact.key is not None and fact.status == "active"]
        written |= await self._give_way(scope, keyed)
        return [fact for fact in written.values() if fact is not None]

    async def _give_way(self, scope: Scope, inserted: Sequence[Fact]) -> dict[str, Fact | None]:
        """End inserted facts if a person has written or pinned a fact under their key since the plan was made.

        Return those by id, as they are stored now.
        """
        ended: dict[str, Fact | None] = {}
        if not inserted:
            return ended
        at = max(fact.created_at for fact in inserted)
        keys = {fact.key for fact in inserted if fact.key is not None}
        living = await self.facts.living(scope, at=at, limit=MOST_FACTS, keys=keys)
        for fact in inserted:
            if any(other.is_guarded and is_rival(other, fact) and other.is_living(at) for other in living):
                end = superseded(by="person", at=at)
                ended[fact.id] = await revise(self.facts, user_id=fact.user_id, fact_id=fact.id, change=end)
        return ended

    async def _end(self, user_id: str, fact_id: str, write: PlannedWrite, turn_id: str | None) -> Fact | None:
        until = None if write.valid_from_ms is None else from_ms(write.valid_from_ms)
        end = superseded(by="turn", at=write.at, until=until, turn_id=turn_id)

        def ended(fact: Fact) -> Fact | None:
            return None if fact.is_guarded else end(fact)

        return await revise(self.facts, user_id=user_id, fact_id=fact_id, change=ended)

    async def _confirm(self, user_id: str, fact_id: str, at: datetime) -> Fact | None:
        def confirmed(fact: Fact) -> Fact | None:
            if fact.confirmed_at >= at or not (fact.is_open or fact.status == "proposed"):
                return None
            # `indexed` stays: the text is unchanged, so its point needs no write.
            return fact.revised(at=fact.updated_at, confirmed_at=at, indexed=fact.indexed)

        return await revise(self.facts, user_id=user_id, fact_id=fact_id, change=confirmed)


async def revise(facts: Facts, *, user_id: str, fact_id: str, change: Callable[[Fact], Fact | None]) -> Fact | None:
    """Change a fact under the revision that it was read at; read and try again if another write came first.

    `change` returns the next revision, or None to leave the fact as it is. Return the stored fact, or None if there is
    no such fact.

    Raises:
        FactConflict: other writes came first ten times.
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
