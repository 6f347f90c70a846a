"""Reconciliation: proposals against what is known, made into changes. The model proposes, code disposes.

`plan` is pure: it decides everything and writes nothing. What it returns is recorded with the turn and then done, write
by write; done twice, it has the effect of once.
"""

from dataclasses import replace

from memory.decision import Change, Decision, Proposal, Refused
from memory.evidence import quote_problem
from memory.fact import Fact, fold
from memory.plan import Plan, PlanRequest, Refusal, Relearning, Review
from memory.plan_draft import WAITS, PlanDraft, reasons
from memory.planned_write import PlannedWrite
from memory.proposal import bounded, clean, names_another, names_fact, worded
from memory.proposal_target import (
    Told,
    completed,
    global_twin_of,
    is_redated,
    own_proposal,
    says_something_else,
    target_of,
    twin_of,
)
from memory.times import to_ms
from memory.validity import read_validity

__all__ = ["MOST_DECISIONS", "Plan", "PlanRequest", "Relearning", "Review", "plan"]

MOST_DECISIONS = 20
"""Decisions of one turn after this many are refused."""


def plan(request: PlanRequest) -> Plan:
    """Turn proposals into changes. Never raises, whatever they say; an invalid one never spoils its neighbours."""
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


def _decide(draft: PlanDraft, proposal: Proposal, count: int) -> None:
    """Plan what the turn's `count`-th proposal comes to, or raise Refusal."""
    if count > MOST_DECISIONS:
        raise Refusal(f"it comes after the turn's first {MOST_DECISIONS} decisions")
    request = draft.request
    proposal = own_proposal(request, proposal)
    problem = quote_problem(proposal.evidence, request.message)
    wording = worded(proposal)
    if problem or wording.problem:
        raise Refusal(problem or wording.problem or "")
    validity = read_validity(
        proposal.valid_from,
        proposal.valid_to,
        proposal.evidence,
        said_at=request.said,
        message=request.message,
    )
    if validity.problem:
        raise Refusal(validity.problem)
    told = Told(proposal, wording, validity)
    target = target_of(request, proposal)
    if proposal.decision == "delete":
        _end(draft, told, target)
    elif proposal.decision == "keep":
        _confirm(draft, told, target)
    else:
        _learn(draft, told, target)


def _learn(draft: PlanDraft, told: Told, target: Fact | None) -> None:
    """An add or an update: whichever of the two it is, what is known decides."""
    told = completed(told, target)
    key = told.proposal.key if told.proposal.key is not None or target is None else target.key
    problem = told.wording.missing(key)
    if problem:
        raise Refusal(problem, target)
    if draft.is_planned(told, key):
        return
    if draft.is_over(told) or draft.follows(told, key):
        _write(draft, told, None, key, beside=True)
        return
    if target is not None:
        is_news = says_something_else(told, target)
    else:
        target = twin_of(draft.request, told) or global_twin_of(draft.request, told, key)
        is_news = target is None or (target.scope != "global" and is_redated(told, target))
        if target is not None and is_news:
            told, key = completed(told, target), target.key or key
    if target is not None and not is_news:
        _keep(draft, told.proposal, target)
    else:
        _write(draft, told, target, key)


def _confirm(draft: PlanDraft, told: Told, target: Fact | None) -> None:
    """A keep: it confirms, unless it says something else."""
    target = target or twin_of(draft.request, told)
    if target is None:
        raise Refusal("it names no known fact")
    if target.scope == "global" or not says_something_else(told, target):
        return _keep(draft, told.proposal, target)
    told = completed(told, target)
    problem = told.wording.missing(target.key)
    if problem:
        raise Refusal(problem, target)
    is_over = draft.is_over(told)
    return _write(draft, told, None if is_over else target, target.key, beside=is_over)


def _end(draft: PlanDraft, told: Told, target: Fact | None) -> None:
    """A delete: its quote must name what it ends."""
    proposal = told.proposal
    if draft.request.relearning is not None and not draft.request.relearning.anew:
        raise Refusal("learning again deletes nothing", target)
    target = target or twin_of(draft.request, told)
    if target is None:
        raise Refusal("it names no known fact")
    draft.check_may_change(target)
    if told.wording.value and not names_fact(told.wording.value, target):
        raise Refusal("its value is not that of the fact it names", target)
    if not names_fact(proposal.evidence, target):
        raise Refusal("the quote names nothing of the fact", target)
    if names_another(proposal.evidence, target, draft.others(target)):
        raise Refusal("the quote names another fact", target)
    draft.check_untouched(target)
    if draft.request.review.holds_back((*target.tags, *told.wording.tags)):
        _propose_end(draft, told, target)
        return
    ended = told.validity.valid_to or told.validity.valid_from
    until = draft.begin(target) if ended is None else to_ms(ended)
    draft.record(
        target.id,
        draft.change(told, "delete", target, after=None),
        PlannedWrite(at_ms=draft.at_ms(target), ends=target.id, valid_from_ms=until),
    )


def _propose_end(draft: PlanDraft, told: Told, target: Fact) -> None:
    """A delete that waits for a person: a copy of the fact that proposes it, valid until the end that was said."""
    waiting = next(
        (fact for fact in draft.request.proposed if fact.proposes == "delete" and fact.replaces == target.id), None
    )
    if waiting is not None:
        return _keep(draft, told.proposal, waiting)
    fact_id = draft.new_id(f"delete:{target.id}", target.key, target.scope)
    ended = told.validity.valid_to or told.validity.valid_from
    change = draft.change(told, "delete", target, after=None, fact_id=fact_id, waits=True)
    write = PlannedWrite(
        at_ms=draft.at_ms(target),
        inserts=fact_id,
        key=target.key,
        value=target.value,
        statement=target.statement,
        evidence=change.evidence,
        scope=target.scope,
        source=_source(told.proposal),
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
    )
    draft.record(target.id, change, PlannedWrite(at_ms=to_ms(draft.request.now), confirms=target.id))


def _write(draft: PlanDraft, told: Told, target: Fact | None, key: str | None, *, beside: bool = False) -> None:
    """A new fact, in place of `target`; `beside`: next to others under its key that hold at another time."""
    wording, validity, request = told.wording, told.validity, draft.request
    scope = target.scope if target is not None else told.proposal.scope
    tags = wording.tags or (target.tags if target is not None else ())
    waits = request.review.holds_back((*tags, *(target.tags if target is not None else ())))
    waiting = next((fact for fact in request.proposed if _waits_as(fact, told, key)), None)
    if waiting is not None:
        return _keep(draft, told.proposal, waiting)
    if target is not None:
        draft.check_may_change(target)
        draft.check_untouched(target, instead_of=("keep", "delete"))
    part = key or fold(wording.statement)
    fact_id = draft.new_id(f"beside:{part}:{fold(wording.value)}" if beside else part, key, scope)
    decision: Decision = "update" if target is not None else "add"
    after = wording.statement if key is None else wording.value
    change = draft.change(told, decision, target, after=after, fact_id=fact_id, waits=waits)
    write = PlannedWrite(
        at_ms=draft.at_ms(target),
        inserts=fact_id,
        ends=target.id if target is not None and not waits else None,
        key=key,
        value=wording.value or wording.statement,
        statement=wording.statement or f"{key}: {wording.value}",
        evidence=change.evidence,
        scope=scope,
        source=_source(told.proposal),
        importance=wording.importance,
        tags=tags,
        replaces=target.id if target is not None else None,
        status="proposed" if waits else "active",
        proposes=decision if waits else None,
        valid_from_ms=draft.begin(target) if validity.valid_from is None else to_ms(validity.valid_from),
        valid_to_ms=None if validity.valid_to is None else to_ms(validity.valid_to),
    )
    return draft.record(target.id if target is not None else fact_id, replace(change, key=key), write)


def _waits_as(fact: Fact, told: Told, key: str | None) -> bool:
    """Whether a proposed fact says the same, so that nobody has to decide on it twice."""
    return fact.proposes in {"add", "update"} and fact.scope == told.proposal.scope and told.says(fact, key)


def _source(proposal: Proposal) -> str:
    return "tool" if proposal.source == "tool" else "turn"


def _refused(proposal: Proposal, refusal: Refusal) -> Refused:
    return Refused(
        decision=proposal.decision,
        fact_id=refusal.fact_id,
        key=bounded(proposal.key),
        value=bounded(proposal.value if proposal.value is not None else proposal.statement),
        evidence=bounded(proposal.evidence) or "",
        reason=str(refusal),
    )
