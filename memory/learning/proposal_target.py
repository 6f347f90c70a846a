"""Proposal target: finds the known fact that a proposal is about, and compares the two. Pure."""

from collections.abc import Iterable
from dataclasses import replace

from recollect.memory.facts.wording import Wording, numbers_in
from recollect.memory.learning.plan import PlanRequest, Refusal
from recollect.memory.learning.validity import Validity
from recollect.memory.values.decision import Proposal
from recollect.memory.values.fact import Fact, fold, preferred
from recollect.memory.values.frozen import frozen


@frozen
class ReadProposal:
    """Holds a proposal with its checked texts and dates. `doubt` says why its quote does not carry it."""

    proposal: Proposal
    wording: Wording
    validity: Validity
    doubt: str | None = None

    def says(self, fact: Fact, key: str | None) -> bool:
        """Tell whether the proposal, under `key`, says the same as `fact`, word for word after folding."""
        if fact.key != key:
            return False
        one, other = (self.wording.statement, fact.statement) if key is None else (self.wording.value, fact.value)
        return fold(one) == fold(other)


def own_proposal(request: PlanRequest, proposal: Proposal) -> Proposal:
    """Return the proposal; turn an update of a global fact into one of the user's own fact under its key."""
    shown = _number(request, proposal.shown)
    if proposal.decision != "update" or shown is None or shown.scope != "global":
        return proposal
    return replace(proposal, shown=None, key=shown.key if proposal.key is None else proposal.key)


def target_of(request: PlanRequest, proposal: Proposal) -> Fact | None:
    """Return the living fact that the proposal is about: by its shown number, else by its key.

    Ignore the number of an `add`. Return a global fact for a `keep` or `delete` only.

    Raises:
        Refusal: the proposal names a fact that was not shown, has ended, or has another key.
    """
    if proposal.shown is not None and proposal.decision != "add":
        return _shown(request, proposal)
    if proposal.key is None:
        return None
    every = [fact for fact in request.living if fact.key == proposal.key]
    same = [fact for fact in every if fact.scope != "global"]
    here = [fact for fact in same if fact.scope == proposal.scope]
    if proposal.decision in {"delete", "keep"}:
        here = here or same or every
    return preferred(here) or preferred(fact for fact in same if fact.is_guarded)


def _number(request: PlanRequest, number: int | None) -> Fact | None:
    return request.known[number - 1] if number is not None and 1 <= number <= len(request.known) else None


def _shown(request: PlanRequest, proposal: Proposal) -> Fact:
    shown = _number(request, proposal.shown)
    if shown is None:
        raise Refusal("it names a fact that was not shown")
    if proposal.key is not None and shown.key is not None and proposal.key != shown.key:
        raise Refusal("its key is not that of the fact it names", shown)
    others = (fact for fact in request.living if fact.key is not None and fact.scope != "global")
    if shown.key is None and any(fact.key == proposal.key for fact in others):
        raise Refusal("its key is that of another known fact", shown)
    living = next((fact for fact in request.living if fact.id == shown.id), None)
    if living is None:
        raise Refusal("the fact it names has ended", shown)
    return living


def says_something_else(reading: ReadProposal, target: Fact) -> bool:
    """Tell whether the proposal says more than `target`: another text, other numbers, or other dates."""
    return is_redated(reading, target) or _is_reworded(reading, target)


def is_redated(reading: ReadProposal, target: Fact) -> bool:
    """Tell whether it names an end that `target` does not have, or an earlier start. A later start repeats the fact."""
    validity = reading.validity
    return (validity.valid_to is not None and validity.valid_to != target.valid_to) or (
        validity.valid_from is not None and validity.valid_from < target.valid_from
    )


def _is_reworded(reading: ReadProposal, target: Fact) -> bool:
    proposal, wording = reading.proposal, reading.wording
    other_numbers = _other_numbers(wording, target)
    if target.key is not None:
        return fold(wording.value) != fold(target.value) if wording.value else other_numbers
    if proposal.decision == "keep":
        # A model rewords a kept statement each time; only other numbers make it another statement.
        return other_numbers
    return proposal.key is not None or fold(wording.statement) != fold(target.statement)


def _other_numbers(wording: Wording, target: Fact) -> bool:
    return bool(wording.statement) and numbers_in(wording.statement) != numbers_in(target.statement)


def completed(reading: ReadProposal, target: Fact | None) -> ReadProposal:
    """Return the proposal with the texts of `target` if it brings new dates only."""
    wording = reading.wording
    if target is None or not is_redated(reading, target):
        return reading
    if wording.value or (wording.statement and (target.key is None or _other_numbers(wording, target))):
        return reading
    texts = replace(wording, value=target.value, statement=wording.statement or target.statement)
    return replace(reading, wording=replace(texts, importance=target.importance, tags=wording.tags or target.tags))


def twin_of(request: PlanRequest, reading: ReadProposal) -> Fact | None:
    """Return a living fact with the same statement, word for word after folding, under any key; None without one."""
    wording, proposal = reading.wording, reading.proposal
    if not wording.statement:
        return None
    said = fold(wording.statement)
    return preferred(
        fact
        for fact in _reaching(request.by_statement.get(said, ()), proposal)
        if (proposal.key is None or fact.key is None or fold(fact.value) == fold(wording.value))
    )


def global_twin_of(request: PlanRequest, reading: ReadProposal, key: str | None) -> Fact | None:
    """Return a global fact that says the same under `key`; None without one."""
    return preferred(fact for fact in request.living if fact.scope == "global" and reading.says(fact, key))


def _reaching(facts: Iterable[Fact], proposal: Proposal) -> Iterable[Fact]:
    """Yield the facts that hold wherever the proposed one would; the user's own and global facts hold everywhere."""
    return (fact for fact in facts if fact.scope in {proposal.scope, "user", "global"})
