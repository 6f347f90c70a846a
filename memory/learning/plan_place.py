"""Plan place: puts a fact that was said before what is known into the history of its key. Pure.

A fact without a date holds from when its message was said. If something under its key was said later, it ends when the
next value begins, and the value before it ends when it begins.
"""

from collections.abc import Iterable
from datetime import datetime

from recollect.memory.learning.plan import PlanRequest, Refusal
from recollect.memory.learning.proposal_target import ReadProposal
from recollect.memory.values.fact import Fact, preferred
from recollect.memory.values.frozen import frozen

HISTORY = "it was said before what is known now: history"
"""The reason of a change that writes such a fact."""
LATER = "a later turn says otherwise"


@frozen
class PlanPlace:
    """Says from when until when a fact of the past holds, and which fact held before it."""

    begin: datetime
    until: datetime
    before: Fact | None


def place_in_history(
    request: PlanRequest, reading: ReadProposal, target: Fact | None, key: str | None
) -> PlanPlace | None:
    """Return the fact's place in the history of its key; None if nothing there was said later.

    Raises:
        Refusal: a fact that was said later held at that time already.
    """
    rivals = _rivals(request, reading, target, key)
    later = [fact for fact in rivals if request.is_later(fact)]
    if not later:
        return None
    begin = reading.validity.valid_from or request.said
    if (holding := preferred(fact for fact in later if fact.holds(begin))) is not None:
        raise Refusal(LATER, holding)
    following = min((fact.valid_from for fact in rivals if fact.valid_from > begin), default=None)
    if following is None:
        return None
    until = min(following, reading.validity.valid_to or following)
    return PlanPlace(begin, until, preferred(fact for fact in rivals if fact.holds(begin)))


def held_then(request: PlanRequest, target: Fact) -> Fact:
    """Return the fact that held under the key of `target` when the message was said.

    Raises:
        Refusal: `target` began or was said later than the message, and nothing held before it.
    """
    if not request.is_later(target):
        return target
    rivals = [fact for fact in _under(request, target.key, target) if not request.is_later(fact)]
    held = preferred(fact for fact in rivals if fact.holds(request.said))
    if held is None:
        raise Refusal(LATER if request.was_said_later(target) else "it was said before the fact began", target)
    return held


def _rivals(request: PlanRequest, reading: ReadProposal, target: Fact | None, key: str | None) -> list[Fact]:
    """Return the facts that held under `key` at one place since the message was said; without a key `target` alone."""
    if key is None:
        return [] if target is None else [target]
    if target is not None:
        return _under(request, key, target)
    scope = reading.proposal.scope
    return [fact for fact in _known(request) if (fact.key, fact.scope) == (key, scope)]


def _under(request: PlanRequest, key: str | None, target: Fact) -> list[Fact]:
    if key is None:
        return [target]
    place = (key, target.scope, target.home)
    return [fact for fact in _known(request) if (fact.key, fact.scope, fact.home) == place]


def _known(request: PlanRequest) -> Iterable[Fact]:
    """Yield living and ended facts, without those that never held."""
    every = (*request.living, *request.ended)
    return (fact for fact in every if fact.valid_to is None or fact.valid_to > fact.valid_from)
