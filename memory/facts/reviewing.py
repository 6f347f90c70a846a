"""Reviewing: approves or rejects a proposed fact for a person.

An approval first writes the fact, then ends what it takes the place of. After a kill in between the same call completes
it. A fact that is approved already and has nothing left to complete raises FactConflict.
"""

from datetime import datetime

from recollect.memory.facts.fact_history import with_version
from recollect.memory.facts.fact_rivals import rivals_of, superseded
from recollect.memory.facts.fact_writes import revise
from recollect.memory.ports.facts import Facts
from recollect.memory.values.errors import FactConflict, NotFound
from recollect.memory.values.fact import Ended, Fact
from recollect.memory.values.version import version_of


def proposal_version(proposed: Fact, replaced: Fact | None) -> str:
    """Return the version of a proposal as a person is shown it: with the fact that it would change or end."""
    return version_of(proposed.version, None if replaced is None else replaced.version)


async def approve(facts: Facts, user_id: str, fact_id: str, *, now: datetime) -> Fact:
    """Let a proposed fact hold, and end what it replaces or what lives under its key by now.

    An approved deletion ends its target and itself. The ended fact names this fact's turn, so that an undo restores it.

    Raises:
        NotFound: the user has no such fact.
        FactConflict: the fact is not proposed.
    """
    proposed = await _fact(facts, user_id, fact_id)
    rivals = await _rivals(facts, proposed, now)
    if proposed.status != "proposed" and not (_was_approved(proposed) and rivals):
        raise FactConflict(f"The fact is {proposed.shown_status}, not proposed; there is nothing to approve.")
    ends = [rival.id for rival in rivals]
    replaces = proposed.replaces if proposed.replaces in ends or not ends else ends[0]

    def approved(fact: Fact) -> Fact | None:
        if fact.status != "proposed":
            return None
        history = with_version(fact, Ended("review", now, fact.turn_id, "approved"))
        held = fact.revised(at=now, status="active", confirmed_at=now, replaces=replaces, history=history)
        if fact.proposes != "delete":
            return held
        # The deletion copies its target's text, so it must never hold itself.
        return fact.revised(
            at=now,
            status="active",
            valid_to=fact.valid_from,
            replaces=replaces,
            history=history,
            ended=Ended("review", now, fact.turn_id, "approved"),
        )

    # Approved before the others end: after a kill the fact still names what it replaces, and the same call ends that.
    fact = await revise(facts, user_id=user_id, fact_id=fact_id, change=approved)
    if fact is None or not _was_approved(fact):
        raise FactConflict
    until = proposed.valid_to if fact.proposes == "delete" else fact.valid_from
    end = superseded(by="review", at=now, until=until, turn_id=fact.turn_id)
    for rival in rivals:
        await revise(facts, user_id=user_id, fact_id=rival.id, change=end)
    return fact


async def reject(facts: Facts, user_id: str, fact_id: str, *, now: datetime) -> Fact:
    """Reject a proposed fact.

    Raises:
        NotFound: the user has no such fact.
        FactConflict: the fact is not proposed.
    """

    def rejected(fact: Fact) -> Fact | None:
        if fact.status != "proposed":
            raise FactConflict(f"The fact is {fact.shown_status}, not proposed; there is nothing to reject.")
        return fact.revised(at=now, status="rejected", ended=Ended("review", now, fact.turn_id, "rejected"))

    fact = await revise(facts, user_id=user_id, fact_id=fact_id, change=rejected)
    if fact is None:
        raise NotFound("There is no such fact of this user.")
    return fact


async def _fact(facts: Facts, user_id: str, fact_id: str) -> Fact:
    fact = await facts.fact(user_id=user_id, fact_id=fact_id)
    if fact is None:
        raise NotFound("There is no such fact of this user.")
    return fact


async def _rivals(facts: Facts, fact: Fact, now: datetime) -> list[Fact]:
    """Return what an approval ends: what the fact replaces, if that is still open, and what lives under its key."""
    others = [] if fact.proposes == "delete" else await rivals_of(facts, fact, at=now)
    found = {other.id: other for other in others}
    if fact.replaces is not None:
        target = await facts.fact(user_id=fact.user_id, fact_id=fact.replaces)
        if target is not None and target.is_open:
            found[target.id] = target
    return list(found.values())


def _was_approved(fact: Fact) -> bool:
    return any(version["ended"]["by"] == "review" for version in fact.history) and fact.status == "active"
