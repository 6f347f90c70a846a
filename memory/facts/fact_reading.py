"""Reads facts for people: one, a page of them, the whole dict of a user, the history of one, and notes.

Every read is scoped to a user; global facts are those of `GLOBAL_USER`. A forgotten fact is read as its tombstone.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from recollect.memory.facts.fact_history import in_force_at, tombstone, versions
from recollect.memory.facts.fact_rivals import living_under
from recollect.memory.facts.forgetting import family_of
from recollect.memory.ports.facts import FactFilter
from recollect.memory.ports.store import Store
from recollect.memory.values.errors import NotFound
from recollect.memory.values.fact import Fact, fact_dict
from recollect.memory.values.fact_limits import MOST_FACTS
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope
from recollect.memory.values.times import Clock


@frozen
class FactPage:
    """Holds a page of facts, the whole dict of the user, and whether more facts follow."""

    items: Sequence[Fact]
    facts: Mapping[str, str]
    has_more: bool


@frozen
class FactReading:
    """Reads facts for people.

    Raises:
        NotFound: the user has no such fact.
        StoreUnavailable: from any call.
    """

    store: Store
    clock: Clock

    async def page(self, user_id: str, shown: FactFilter, *, limit: int, after: str | None = None) -> FactPage:
        """Return at most `limit` facts that the filter `shown` selects, in its order, after the one with id `after`.

        The dict on every page has all facts that hold for the user (and the filter's thread) now, or at its `as_of`.
        """
        items, has_more = await self.listed(user_id, shown, limit=limit, after=after)
        return FactPage(items=items, facts=await self.known(user_id, shown), has_more=has_more)

    async def known(self, user_id: str, shown: FactFilter, *, agent_id: str | None = None) -> Mapping[str, str]:
        """Return the whole dict of the user (and the filter's thread) now, or at its `as_of`.

        `agent_id`: of facts with the label of this agent.
        """
        holding = FactFilter(now=shown.now, thread_id=shown.thread_id, as_of=shown.as_of)
        found = await self.store.facts.page(user_id, holding, limit=MOST_FACTS)
        return fact_dict(_as_of([fact for fact in found if agent_id in (None, fact.agent_id)], shown.as_of))

    async def listed(
        self, user_id: str, shown: FactFilter, *, limit: int, after: str | None = None
    ) -> tuple[list[Fact], bool]:
        """Return the facts of a page alone, and whether more follow: the dict of 5,000 facts takes its time."""
        found = await self.store.facts.page(user_id, shown, limit=limit + 1, after=after)
        return _as_of(found[:limit], shown.as_of), len(found) > limit

    async def fact(self, user_id: str, fact_id: str) -> Fact:
        """Return one fact in any state; a forgotten one as its tombstone."""
        fact = await self.store.facts.fact(user_id=user_id, fact_id=fact_id)
        if fact is None:
            raise NotFound("There is no such fact of this user.")
        return without_text(fact)

    async def living(self, user_id: str, key: str) -> list[Fact]:
        """Return the facts that live under the key in the user's own scope."""
        return await living_under(self.store.facts, key, "user", Scope(user_id), at=self.clock())

    async def history(self, user_id: str, fact_id: str, *, agent_id: str | None = None) -> list[dict[str, Any]]:
        """Return all versions of the fact and of its superseded and later facts, oldest first, each with its end.

        `agent_id`: those with the label of this agent.
        """
        await self.fact(user_id, fact_id)
        family = await family_of(self.store.facts, user_id, fact_id)
        family.sort(key=lambda fact: (fact.created_at, fact.id))
        found = [version for fact in family for version in versions(without_text(fact))]
        return [version for version in found if agent_id in (None, version.get("agent_id"))]

    async def notes(self, user_id: str, *, tag: str | None = None, limit: int, after: str | None = None) -> list[Fact]:
        """Return the user's own notes (without a key) that hold now, newest first, after the one with id `after`."""
        return await self.store.facts.notes(user_id, at=self.clock(), tag=tag, limit=limit, after=after)

    async def note(self, user_id: str, fact_id: str) -> Fact:
        """Return one note, in any state but forgotten.

        Raises:
            NotFound: also if the fact has a key, or was forgotten.
        """
        fact = await self.store.facts.fact(user_id=user_id, fact_id=fact_id)
        if fact is None or fact.key is not None or fact.status == "forgotten":
            raise no_such_note()
        return fact


def no_such_note() -> NotFound:
    """Return the error for a note that is not there."""
    return NotFound("There is no such memory of this user.")


def _as_of(facts: Sequence[Fact], at: datetime | None) -> list[Fact]:
    return list(facts) if at is None else [in_force_at(fact, at) for fact in facts]


def without_text(fact: Fact) -> Fact:
    """Return the fact; while it is being forgotten, its tombstone."""
    return tombstone(fact, at=fact.updated_at) if fact.status == "forgotten" else fact
