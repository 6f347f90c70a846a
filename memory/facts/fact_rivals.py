"""Fact rivals: finds facts that live under one key at one place at one time, and ends one of them."""

from collections.abc import Callable
from datetime import datetime

from recollect.memory.ports.facts import Facts
from recollect.memory.values.decision import FactScope
from recollect.memory.values.fact import Ended, EndedBy, Fact
from recollect.memory.values.fact_limits import MOST_FACTS
from recollect.memory.values.scope import Scope


async def living_under(facts: Facts, key: str, scope: FactScope, home: Scope, *, at: datetime) -> list[Fact]:
    """Return the living facts under `key` at one place: the user's own, a thread's, or the global ones."""
    found = await facts.living(home, at=at, limit=MOST_FACTS, keys=[key])
    place = (key, scope, home.thread_id)
    return [fact for fact in found if fact.is_living(at) and (fact.key, fact.scope, fact.home) == place]


def is_rival(one: Fact, other: Fact) -> bool:
    """Tell whether two facts have one key and one place, and their validities overlap."""
    return (
        one.id != other.id
        and one.key is not None
        and (one.key, one.scope, one.home) == (other.key, other.scope, other.home)
        and (other.valid_to is None or one.valid_from < other.valid_to)
        and (one.valid_to is None or other.valid_from < one.valid_to)
    )


async def rivals_of(facts: Facts, fact: Fact, *, at: datetime) -> list[Fact]:
    """Return the living facts that rival `fact`."""
    if fact.key is None:
        return []
    found = await living_under(facts, fact.key, fact.scope, home_scope(fact), at=at)
    return [other for other in found if is_rival(other, fact)]


def home_scope(fact: Fact) -> Scope:
    """Return the fact's user, and its thread if it is the thread's own."""
    return Scope(fact.user_id, fact.home)


def superseded(
    *, by: EndedBy, at: datetime, until: datetime | None = None, turn_id: str | None = None
) -> Callable[[Fact], Fact | None]:
    """Return the change that ends an open fact at `at`: it held until `until` (None: `at`), or its own earlier end.

    A fact that an earlier turn has ended may only end sooner, for another value that held in between.
    """

    def end(fact: Fact) -> Fact | None:
        last = until or at
        if not fact.is_open and not _ended_sooner(fact, last):
            return None
        if fact.valid_to is not None:
            last = min(last, fact.valid_to)
        ended = Ended(by, at, turn_id, was_valid_to=fact.valid_to)
        return fact.revised(at=at, valid_to=max(last, fact.valid_from), ended=ended)

    return end


def _ended_sooner(fact: Fact, last: datetime) -> bool:
    by_a_turn = fact.status == "active" and fact.ended is not None and fact.ended.by == "turn"
    return by_a_turn and fact.valid_to is not None and fact.valid_from < last < fact.valid_to
