"""Known statement: finds and confirms a fact that already says what is about to be written."""

from collections.abc import Callable, Iterable
from datetime import datetime

from recollect.memory.background.long_texts import off_loop
from recollect.memory.facts.fact_writes import revise
from recollect.memory.ports.facts import Facts
from recollect.memory.values.fact import Fact, fold
from recollect.memory.values.fact_limits import MOST_FACTS
from recollect.memory.values.scope import Scope
from recollect.memory.values.times import Clock


async def known_statement(
    facts: Facts,
    scope: Scope,
    statement: str,
    *,
    clock: Clock,
    with_proposed: bool = False,
    among: Callable[[Fact], bool] | None = None,
) -> Fact | None:
    """Return the earliest fact of the user, or of the thread that `scope` names, with this statement; None without one.

    Compare statements after folding, under any key. `with_proposed` includes facts that wait for a person's approval.
    `among` limits the search to facts for which it holds.
    """
    now = clock()
    living = await facts.living(scope, at=now, limit=MOST_FACTS)
    found = [fact for fact in living if fact.is_living(now)]
    if with_proposed:
        waiting = await facts.proposed(scope, limit=MOST_FACTS)
        found = [*found, *(fact for fact in waiting if fact.proposes in {None, "add"})]
    found = list(filter(among, found)) if among is not None else found
    return await off_loop(lambda: _same(found, fold(statement)), (fact.statement for fact in found))


async def confirm(facts: Facts, fact: Fact, *, clock: Clock) -> Fact:
    """Confirm the fact now and return it. Change `confirmed_at` alone: its point in the index stays valid."""
    now = clock()

    def confirmed(known: Fact) -> Fact | None:
        if known.confirmed_at >= now:
            return None
        return known.revised(at=known.updated_at, confirmed_at=now, indexed=known.indexed)

    return await revise(facts, user_id=fact.user_id, fact_id=fact.id, change=confirmed) or fact


def is_before(fact: Fact, other: Fact) -> bool:
    """Tell whether the fact was written before the `other`."""
    return _place(fact) < _place(other)


def _same(facts: Iterable[Fact], said: str) -> Fact | None:
    """Return the earliest of `facts` whose folded statement is `said`; None if `said` is empty."""
    return min((fact for fact in facts if said and fold(fact.statement) == said), key=_place, default=None)


def _place(fact: Fact) -> tuple[datetime, str]:
    return fact.created_at, fact.id
