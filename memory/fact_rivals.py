"""Facts that rival each other: those that live under one key at one place at one time, and how one of them ends."""

from collections.abc import Callable
from datetime import datetime

from memory.decision import FactScope
from memory.documents import Facts
from memory.fact import Ended, EndedBy, Fact
from memory.recall import MOST_FACTS
from memory.scope import Scope


async def living_under(facts: Facts, key: str, scope: FactScope, home: Scope, *, at: datetime) -> list[Fact]:
    """The living facts under a key at one place: the user's own, a thread's, or the global ones."""
    found = await facts.living(home, at=at, limit=MOST_FACTS)
    place = (key, scope, home.thread_id)
    return [fact for fact in found if fact.is_living(at) and (fact.key, fact.scope, fact.home) == place]


def is_rival(one: Fact, other: Fact) -> bool:
    """Whether they are two facts under one key at one place, valid at the same time for a while."""
    return (
        one.id != other.id
        and one.key is not None
        and (one.key, one.scope, one.home) == (other.key, other.scope, other.home)
        and (other.valid_to is None or one.valid_from < other.valid_to)
        and (one.valid_to is None or other.valid_from < one.valid_to)
    )


async def rivals_of(facts: Facts, fact: Fact, *, at: datetime) -> list[Fact]:
    """The living facts that rival this one."""
    if fact.key is None:
        return []
    found = await living_under(facts, fact.key, fact.scope, home_scope(fact), at=at)
    return [other for other in found if is_rival(other, fact)]


def home_scope(fact: Fact) -> Scope:
    """Where the fact lives: its user, and its thread if it is the thread's own."""
    return Scope(fact.user_id, fact.home)


def superseded(
    *, by: EndedBy, at: datetime, until: datetime | None = None, turn_id: str | None = None
) -> Callable[[Fact], Fact | None]:
    """How a fact ends at `at`, if it is open: it held until `until` (None: `at`), or less long if it said so itself."""

    def end(fact: Fact) -> Fact | None:
        if not fact.is_open:
            return None
        last = until or at
        if fact.valid_to is not None:
            last = min(last, fact.valid_to)
        ended = Ended(by, at, turn_id, was_valid_to=fact.valid_to)
        return fact.revised(at=at, valid_to=max(last, fact.valid_from), ended=ended)

    return end
