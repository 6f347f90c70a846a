"""Reconciliation: compares proposals with what is known, and plans changes. The model proposes, code decides.

`plan` is pure: it decides everything and writes nothing. Its caller records the plan with the turn, then does it write
by write. Each write is idempotent.
"""

from dataclasses import replace

from recollect.memory.facts.wording import clean, clean_excerpt, names_another, names_fact, worded
from recollect.memory.learning.plan import Plan, PlanRequest, Refusal, Relearning, Review
from recollect.memory.learning.plan_draft import WAITS, PlanDraft, reasons
from recollect.memory.learning.plan_place import HISTORY, PlanPlace, held_then, place_in_history
from recollect.memory.learning.plan_proof import (
    doubt_of,
    has_to_wait,
    is_proved_since,
    with_carried_dates,
    with_carried_tags,
)
from recollect.memory.learning.proof.evidence import quote_problem
from recollect.memory.learning.proposal_target import (
    ReadProposal,
    completed,
    global_twin_of,
    is_redated,
    own_proposal,
    says_something_else,
    target_of,
    twin_of,
)
from recollect.memory.learning.validity import Validity, read_validity
from recollect.memory.values.decision import Change, Decision, Proposal, RefusedProposal
from recollect.memory.values.fact import Fact, fold
from recollect.memory.values.planned_write import PlannedWrite
from recollect.memory.values.times import to_ms

__all__ = ["MOST_DECISIONS", "Plan", "PlanRequest", "Relearning", "Review", "plan"]

MOST_DECISIONS = 20
"""At most this many decisions of a turn are planned; the others are refused."""


def plan(request: PlanRequest) -> Plan:
    """Plan the changes that the request's proposals make. Refuse an invalid proposal without harm to the others."""
    draft = PlanDraft(request)
    in_order = sorted(request.proposals, key=lambda proposal: proposal.source != "tool")
    for count, proposal in enumerate(in_order, start=1):
        try:
            _decide(draft, proposal, count)
        except Refusal as refusal:
            draft.refused.append(_refused(proposal, refusal))
    ordered = list(draft.planned.values())
    return Plan(
        changes=tuple(item.change for item in ordered),
        writes=tuple(item.write for item in ordered),
        refused=tuple(draft.refused),
    )


def _validity(request: PlanRequest, proposal: Proposal) -> Validity:
    """Return the period in which the proposal says that its fact holds.

    Raises:
        Refusal: its dates make no period.
    """
    validity = read_validity(
        proposal.valid_from,
        proposal.valid_to,
        proposal.evidence,
        said_at=request.said,
        message=request.times,
    )
    if validity.problem:
        raise Refusal(validity.problem)
    return validity


def _decide(draft: PlanDraft, proposal: Proposal, count: int) -> None:
    """Plan the turn's `count`-th proposal (from 1), or raise Refusal."""
    if count > MOST_DECISIONS:
        raise Refusal(f"it comes after the turn's first {MOST_DECISIONS} decisions")
    request = draft.request
    proposal = own_proposal(request, proposal)
    problem = quote_problem(proposal.evidence, request.heard)
    wording = worded(proposal)
    if problem or wording.problem:
        raise Refusal(problem or wording.problem or "")
    wording = with_carried_tags(request, proposal, wording)
    validity = _validity(request, proposal)  # before dates are left out: those that contradict each other are refused
    proposal, remark = with_carried_dates(request, proposal)
    if remark:
        validity = _validity(request, proposal)
        validity = replace(validity, remark=reasons(remark, validity.remark or ""))
    target = target_of(request, proposal)
    reading = ReadProposal(proposal, wording, validity, doubt_of(request, proposal, wording, validity, target))
    if proposal.decision == "delete":
        _end(draft, reading, target)
    elif proposal.decision == "keep":
        _confirm(draft, reading, target)
    else:
        _learn(draft, reading, target)


def _learn(draft: PlanDraft, reading: ReadProposal, target: Fact | None) -> None:
    """Plan an add or an update; what is known decides which of the two it is."""
    reading = completed(reading, target)
    key = reading.proposal.key if reading.proposal.key is not None or target is None else target.key
    problem = reading.wording.missing(key)
    if problem:
        raise Refusal(problem, target)
    if draft.is_planned(reading, key, waits=has_to_wait(draft.request, reading, reading.wording.tags, target)):
        return
    if draft.is_over(reading) or draft.follows(reading, key):
        _write(draft, reading, None, key, beside=True)
        return
    if target is not None:
        is_news = says_something_else(reading, target)
    else:
        target = twin_of(draft.request, reading) or global_twin_of(draft.request, reading, key)
        is_news = target is None or (target.scope != "global" and is_redated(reading, target))
        if target is not None and is_news:
            reading, key = completed(reading, target), target.key or key
    if target is not None and not is_news:
        _keep(draft, reading.proposal, target)
    else:
        _write_in_order(draft, reading, target, key)


def _confirm(draft: PlanDraft, reading: ReadProposal, target: Fact | None) -> None:
    """Plan a keep: confirm the fact, or update it if the proposal says something else."""
    target = target or twin_of(draft.request, reading)
    if target is None:
        raise Refusal("it names no known fact")
    if target.scope == "global" or not says_something_else(reading, target):
        return _keep(draft, reading.proposal, target)
    reading = completed(reading, target)
    problem = reading.wording.missing(target.key)
    if problem:
        raise Refusal(problem, target)
    if draft.is_over(reading):
        return _write(draft, reading, None, target.key, beside=True)
    return _write_in_order(draft, reading, target, target.key)


def _end(draft: PlanDraft, reading: ReadProposal, target: Fact | None) -> None:
    """Plan a delete. Refuse it if its quote does not name the fact that it ends."""
    proposal = reading.proposal
    if draft.request.relearning is not None and not draft.request.relearning.anew:
        raise Refusal("learning again deletes nothing", target)
    target = target or twin_of(draft.request, reading)
    if target is None:
        raise Refusal("it names no known fact")
    target = held_then(draft.request, target)
    draft.check_may_change(target)
    if reading.wording.value and not names_fact(reading.wording.value, target):
        raise Refusal("its value is not that of the fact it names", target)
    if not names_fact(proposal.evidence, target):
        raise Refusal("the quote names nothing of the fact", target)
    if names_another(proposal.evidence, target, draft.others(target)):
        raise Refusal("the quote names another fact", target)
    draft.check_untouched(target)
    if has_to_wait(draft.request, reading, (*target.tags, *reading.wording.tags), target):
        _propose_end(draft, reading, target)
        return
    ended = reading.validity.valid_to or reading.validity.valid_from
    until = draft.begin(target) if ended is None else to_ms(ended)
    draft.record(
        target.id,
        draft.change(reading, "delete", target, after=None),
        PlannedWrite(at_ms=draft.at_ms(target), ends=target.id, valid_from_ms=until),
    )


def _propose_end(draft: PlanDraft, reading: ReadProposal, target: Fact) -> None:
    """Plan a delete that waits for a person: a copy of the fact, valid until the end that was said."""
    waiting = next(
        (fact for fact in draft.request.proposed if fact.proposes == "delete" and fact.replaces == target.id), None
    )
    if waiting is not None:
        return _keep(draft, reading.proposal, waiting)
    fact_id = draft.new_id(f"delete:{target.id}", target.key, target.scope)
    ended = reading.validity.valid_to or reading.validity.valid_from
    change = draft.change(reading, "delete", target, after=None, fact_id=fact_id, waits=True)
    write = PlannedWrite(
        at_ms=draft.at_ms(target),
        inserts=fact_id,
        key=target.key,
        value=target.value,
        statement=target.statement,
        evidence=change.evidence,
        scope=target.scope,
        source=_source(reading.proposal),
        importance=target.importance,
        tags=target.tags,
        replaces=target.id,
        status="proposed",
        proposes="delete",
        valid_from_ms=to_ms(target.valid_from),
        valid_to_ms=None if ended is None else to_ms(ended),
    )
    return draft.record(target.id, replace(change, key=target.key), write)


def _keep(draft: PlanDraft, proposal: Proposal, target: Fact) -> None:
    if target.scope == "global":
        raise Refusal("a global fact says so already", target)
    earlier = draft.planned.get(target.id)
    if earlier is not None and earlier.change.decision == "keep":
        return
    draft.check_untouched(target, instead_of=("delete",))
    change = Change(
        decision="keep",
        fact_id=target.id,
        key=target.key,
        before=target.text,
        after=target.text,
        evidence=clean(proposal.evidence),
        reason=reasons(
            "" if proposal.decision == "keep" else f"proposed as {proposal.decision}",
            WAITS if target.status == "proposed" else "",
        ),
        status="proposed" if target.status == "proposed" else None,
    )
    before = to_ms(target.confirmed_at)
    write = PlannedWrite(at_ms=to_ms(draft.request.said), confirms=target.id, confirmed_ms=before)
    draft.record(target.id, change, write)


def _write_in_order(draft: PlanDraft, reading: ReadProposal, target: Fact | None, key: str | None) -> None:
    """Plan a new fact in place of `target`, or in the history of its key if something there was said later."""
    place = place_in_history(draft.request, reading, target, key)
    if place is None:
        return _write(draft, reading, target, key)
    if target is not None and reading.proposal.scope != target.scope:
        reading = replace(reading, proposal=replace(reading.proposal, scope=target.scope))
    if place.before is not None and reading.says(place.before, key):
        return _keep(draft, reading.proposal, place.before)
    return _write(draft, _of_the_past(reading, place), place.before, key, beside=True)


def _of_the_past(reading: ReadProposal, place: PlanPlace) -> ReadProposal:
    remark = reasons(HISTORY, reading.validity.remark or "")
    return replace(
        reading, validity=replace(reading.validity, valid_from=place.begin, valid_to=place.until, remark=remark)
    )


def _write(
    draft: PlanDraft, reading: ReadProposal, target: Fact | None, key: str | None, *, beside: bool = False
) -> None:
    """Plan a new fact in place of `target`; with `beside`, next to facts under its key that hold at another time."""
    wording, validity, request = reading.wording, reading.validity, draft.request
    scope = target.scope if target is not None else reading.proposal.scope
    tags = wording.tags or (target.tags if target is not None else ())
    waits = has_to_wait(request, reading, (*tags, *(target.tags if target is not None else ())), target)
    waiting = next((fact for fact in request.proposed if _waits_as(fact, reading, key)), None)
    if waiting is not None and (waits or not is_proved_since(request, reading, waiting)):
        return _keep(draft, reading.proposal, waiting)
    if target is not None:
        draft.check_may_change(target)
        draft.check_untouched(target, instead_of=("keep", "delete"), waits=waits)
    part = key or fold(wording.statement)
    fact_id = draft.new_id(f"beside:{part}:{fold(wording.value)}" if beside else part, key, scope)
    decision: Decision = "update" if target is not None else "add"
    after = wording.statement if key is None else wording.value
    change = draft.change(reading, decision, target, after=after, fact_id=fact_id, waits=waits)
    write = PlannedWrite(
        at_ms=draft.at_ms(target),
        inserts=fact_id,
        ends=target.id if target is not None and not waits else None,
        key=key,
        value=wording.value or wording.statement,
        statement=wording.statement or f"{key}: {wording.value}",
        evidence=change.evidence,
        scope=scope,
        source=_source(reading.proposal),
        importance=wording.importance,
        tags=tags,
        replaces=target.id if target is not None else None,
        status="proposed" if waits else "active",
        proposes=decision if waits else None,
        valid_from_ms=draft.begin(target) if validity.valid_from is None else to_ms(validity.valid_from),
        valid_to_ms=None if validity.valid_to is None else to_ms(validity.valid_to),
    )
    return draft.record(target.id if target is not None else fact_id, replace(change, key=key), write)


def _waits_as(fact: Fact, reading: ReadProposal, key: str | None) -> bool:
    """Tell whether a proposed `fact` says the same, so that nobody has to decide on it twice."""
    return fact.proposes in {"add", "update"} and fact.scope == reading.proposal.scope and reading.says(fact, key)


def _source(proposal: Proposal) -> str:
    return "tool" if proposal.source == "tool" else "turn"


def _refused(proposal: Proposal, refusal: Refusal) -> RefusedProposal:
    return RefusedProposal(
        decision=proposal.decision,
        fact_id=refusal.fact_id,
        key=clean_excerpt(proposal.key),
        value=clean_excerpt(proposal.value if proposal.value is not None else proposal.statement),
        evidence=clean_excerpt(proposal.evidence) or "",
        reason=str(refusal),
    )
