"""Which known fact a proposal is about, and whether it says something else than that fact. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from memory.decision import Proposal
from memory.fact import Fact, fold, preferred
from memory.plan import PlanRequest, Refusal
from memory.proposal import Wording, numbers_in
from memory.validity import Validity


@dataclass(frozen=True, slots=True)
class Told:
    """A proposal with what its texts and dates were read as."""

    proposal: Proposal
    wording: Wording
    validity: Validity

    def says(self, fact: Fact, key: str | None) -> bool:
        """Whether under `key` it would say the same as `fact`, word for word after folding."""
        if fact.key != key:
            return False
        one, other = (self.wording.statement, fact.statement) if key is None else (self.wording.value, fact.value)
        return fold(one) == fold(other)


def own_proposal(request: PlanRequest, proposal: Proposal) -> Proposal:
    """The proposal as it concerns the user: talking changes no global fact, but may make one of the user's own."""
    shown = _number(request, proposal.shown)
    if proposal.decision != "update" or shown is None or shown.scope != "global":
        return proposal
    return replace(proposal, shown=None, key=shown.key if proposal.key is None else proposal.key)


def target_of(request: PlanRequest, proposal: Proposal) -> Fact | None:
    """The living fact that the proposal is about: by its shown number, else by its key.

    An `add` means no shown fact, whatever number it carries. A global fact is found only to be confirmed or ended.

    Raises:
        Refusal: it names a fact that was not shown, has ended, or has another key.
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


def says_something_else(told: Told, target: Fact) -> bool:
    """Whether it is more than the fact told again: another text, other numbers, or other dates."""
    return is_redated(told, target) or _is_reworded(told, target)


def is_redated(told: Told, target: Fact) -> bool:
    """Whether it names an end that the fact does not have, or an earlier start (a later one is a telling)."""
    validity = told.validity
    return (validity.valid_to is not None and validity.valid_to != target.valid_to) or (
        validity.valid_from is not None and validity.valid_from < target.valid_from
    )


def _is_reworded(told: Told, target: Fact) -> bool:
    proposal, wording = told.proposal, told.wording
    other_numbers = _other_numbers(wording, target)
    if target.key is not None:
        return fold(wording.value) != fold(target.value) if wording.value else other_numbers
    if proposal.decision == "keep":
        # A model words a kept statement anew each time; only other numbers make it another statement.
        return other_numbers
    return proposal.key is not None or fold(wording.statement) != fold(target.statement)


def _other_numbers(wording: Wording, target: Fact) -> bool:
    return bool(wording.statement) and numbers_in(wording.statement) != numbers_in(target.statement)


def completed(told: Told, target: Fact | None) -> Told:
    """The proposal with the fact's own texts, where it brings only new dates for it."""
    wording = told.wording
    if target is None or not is_redated(told, target):
        return told
    if wording.value or (wording.statement and (target.key is None or _other_numbers(wording, target))):
        return told
    texts = replace(wording, value=target.value, statement=wording.statement or target.statement)
    return replace(told, wording=replace(texts, importance=target.importance, tags=wording.tags or target.tags))


def twin_of(request: PlanRequest, told: Told) -> Fact | None:
    """A living fact that already says this, word for word after folding, under whatever key."""
    wording, proposal = told.wording, told.proposal
    if not wording.statement:
        return None
    said = fold(wording.statement)
    return preferred(
        fact
        for fact in _reaching(request.living, proposal)
        if fold(fact.statement) == said
        and (proposal.key is None or fact.key is None or fold(fact.value) == fold(wording.value))
    )


def global_twin_of(request: PlanRequest, told: Told, key: str | None) -> Fact | None:
    """A global fact that says the same already."""
    return preferred(fact for fact in request.living if fact.scope == "global" and told.says(fact, key))


def _reaching(facts: Iterable[Fact], proposal: Proposal) -> Iterable[Fact]:
    """The facts that hold wherever the proposed one would: the user's own and global ones everywhere."""
    return (fact for fact in facts if fact.scope in {proposal.scope, "user", "global"})
