"""Reconciliation: proposals against what is known, made into changes. The model proposes, code disposes.

`plan` is pure: it decides everything and writes nothing. What it returns is recorded with the turn and then done, write
by write; done twice, it has the effect of once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from memory.decision import Change, Decision, Proposal, Refused
from memory.evidence import quote_problem
from memory.fact import Fact, fold, preferred
from memory.planned_write import PlannedWrite
from memory.proposal import Wording, bounded, clean, names_fact, numbers_in, worded
from memory.times import to_ms
from memory.turn import derived_id

MOST_DECISIONS = 20
"""Decisions of one turn after this many are refused."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """All that a plan depends on.

    `known` is what the model was shown, under the numbers 1, 2, 3, …; `living` are all living facts in force for the
    user and thread. The agent's own proposals (source "tool") are taken first. `now` (UTC) is the time of all writes.
    """

    proposals: Sequence[Proposal]
    known: Sequence[Fact]
    living: Sequence[Fact]
    message: str
    user_id: str
    thread_id: str
    turn_id: str
    now: datetime


@dataclass(frozen=True, slots=True)
class Plan:
    """What a turn changes, in order, one write for each change, and what was refused."""

    changes: tuple[Change, ...] = ()
    writes: tuple[PlannedWrite, ...] = ()
    refused: tuple[Refused, ...] = ()


def plan(request: PlanRequest) -> Plan:
    """Turn proposals into changes. Never raises, whatever they say; an invalid one never spoils its neighbours."""
    draft = _Draft(request)
    in_order = sorted(request.proposals, key=lambda proposal: proposal.source != "tool")
    for count, proposal in enumerate(in_order, start=1):
        try:
            draft.decide(proposal, count)
        except _No as no:
            draft.refused.append(_refused(proposal, no))
    ordered = list(draft.planned.values())
    return Plan(
        changes=tuple(item.change for item in ordered),
        writes=tuple(item.write for item in ordered),
        refused=tuple(draft.refused),
    )


class _No(Exception):
    """This proposal is refused, which is no error; the message says why."""

    def __init__(self, reason: str, target: Fact | None = None) -> None:
        super().__init__(reason)
        self.fact_id = target.id if target else None


@dataclass(frozen=True, slots=True)
class _Planned:
    change: Change
    write: PlannedWrite


@dataclass
class _Draft:
    """A plan in the making. `planned` is by the id of the fact that each change touches: one change a fact."""

    request: PlanRequest
    planned: dict[str, _Planned] = field(default_factory=dict[str, _Planned])
    refused: list[Refused] = field(default_factory=list[Refused])

    def decide(self, proposal: Proposal, count: int) -> None:
        """Plan what the turn's `count`-th proposal comes to, or raise _No."""
        if count > MOST_DECISIONS:
            raise _No(f"it comes after the turn's first {MOST_DECISIONS} decisions")
        problem = quote_problem(proposal.evidence, self.request.message)
        if problem:
            raise _No(problem)
        wording = worded(proposal)
        if wording.problem:
            raise _No(wording.problem)
        target = self._target(proposal)
        if proposal.decision == "delete":
            self._end(proposal, wording, target)
        elif proposal.decision == "keep":
            self._confirm(proposal, wording, target)
        else:
            self._learn(proposal, wording, target)

    def _learn(self, proposal: Proposal, wording: Wording, target: Fact | None) -> None:
        """An add or an update: whichever of the two it is, what is known decides."""
        key = proposal.key if proposal.key is not None or target is None else target.key
        problem = wording.missing(key)
        if problem:
            raise _No(problem, target)
        if self._is_planned(wording, key):
            return
        same = self._twin(proposal, wording) if target is None else None
        if target is not None and not self._says_something_else(proposal, wording, target):
            same = target
        if same is not None:
            self._keep(proposal, same)
        else:
            self._write(proposal, wording, target, key)

    def _confirm(self, proposal: Proposal, wording: Wording, target: Fact | None) -> None:
        """A keep: it confirms, unless it says something else."""
        target = target or self._twin(proposal, wording)
        if target is None:
            raise _No("it names no known fact")
        if not self._says_something_else(proposal, wording, target):
            return self._keep(proposal, target)
        problem = wording.missing(target.key)
        if problem:
            raise _No(problem, target)
        return self._write(proposal, wording, target, target.key)

    def _target(self, proposal: Proposal) -> Fact | None:
        """The living fact that the proposal is about: by its shown number, else by its key, or one that says the same.

        An `add` means no shown fact, whatever number it carries.
        """
        if proposal.shown is not None and proposal.decision != "add":
            return self._shown(proposal, proposal.shown)
        if proposal.key is not None:
            same = [fact for fact in self.request.living if fact.key == proposal.key]
            here = [fact for fact in same if fact.scope == proposal.scope]
            if proposal.decision in {"delete", "keep"}:
                here = here or same
            guarded = [fact for fact in same if fact.is_guarded]
            return preferred(here) or preferred(guarded)
        return None

    def _shown(self, proposal: Proposal, number: int) -> Fact:
        if not 1 <= number <= len(self.request.known):
            raise _No("it names a fact that was not shown")
        shown = self.request.known[number - 1]
        if proposal.key is not None and shown.key is not None and proposal.key != shown.key:
            raise _No("its key is not that of the fact it names", shown)
        if shown.key is None and any(fact.key == proposal.key for fact in self.request.living if fact.key):
            raise _No("its key is that of another known fact", shown)
        living = next((fact for fact in self.request.living if fact.id == shown.id), None)
        if living is None:
            raise _No("the fact it names has ended", shown)
        return living

    def _says_something_else(self, proposal: Proposal, wording: Wording, target: Fact) -> bool:
        other_numbers = bool(wording.statement) and numbers_in(wording.statement) != numbers_in(target.statement)
        if target.key is not None:
            return fold(wording.value) != fold(target.value) if wording.value else other_numbers
        if proposal.decision == "keep":
            # A model words a kept statement anew each time; only other numbers make it another statement.
            return other_numbers
        return proposal.key is not None or fold(wording.statement) != fold(target.statement)

    def _end(self, proposal: Proposal, wording: Wording, target: Fact | None) -> None:
        """A delete: its quote must name what it ends."""
        target = target or self._twin(proposal, wording)
        if target is None:
            raise _No("it names no known fact")
        self._check_may_change(target)
        if not names_fact(proposal.evidence, target):
            raise _No("the quote names nothing of the fact", target)
        if wording.value and not names_fact(wording.value, target):
            raise _No("its value is not that of the fact it names", target)
        self._check_untouched(target, instead_of=("keep",))
        self._record(
            target.id,
            self._change(proposal, "delete", target, after=None),
            PlannedWrite(at_ms=self._at_ms(target), ends=target.id),
        )

    def _keep(self, proposal: Proposal, target: Fact) -> None:
        earlier = self.planned.get(target.id)
        if earlier is not None and earlier.change.decision == "keep":
            return
        self._check_untouched(target)
        change = self._change(proposal, "keep", target, after=target.text)
        self._record(target.id, change, PlannedWrite(at_ms=to_ms(self.request.now), confirms=target.id))

    def _write(self, proposal: Proposal, wording: Wording, target: Fact | None, key: str | None) -> None:
        if target is not None:
            self._check_may_change(target)
            self._check_untouched(target, instead_of=("keep", "delete"))
        scope = target.scope if target is not None else proposal.scope
        part = key or fold(wording.statement)
        fact_id = derived_id(
            self.request.user_id, self.request.turn_id, f"fact:{part}" if scope == "user" else f"fact:{scope}:{part}"
        )
        if any(fact.id == fact_id for fact in self.request.living) or any(
            item.write.inserts == fact_id for item in self.planned.values()
        ):
            raise _No("an earlier decision of this turn already sets it")
        decision: Decision = "update" if target is not None else "add"
        after = wording.statement if key is None else wording.value
        change = self._change(proposal, decision, target, after=after, fact_id=fact_id, key=key)
        write = PlannedWrite(
            at_ms=self._at_ms(target),
            inserts=fact_id,
            ends=target.id if target is not None else None,
            key=key,
            value=wording.value or wording.statement,
            statement=wording.statement or f"{key}: {wording.value}",
            evidence=change.evidence,
            scope=scope,
            source="tool" if proposal.source == "tool" else "turn",
            importance=wording.importance,
            tags=wording.tags,
            replaces=target.id if target is not None else None,
        )
        self._record(target.id if target is not None else fact_id, change, write)

    def _twin(self, proposal: Proposal, wording: Wording) -> Fact | None:
        """A living fact that already says this, word for word after folding, under whatever key."""
        if not wording.statement:
            return None
        said = fold(wording.statement)
        return preferred(
            fact
            for fact in self.request.living
            if fold(fact.statement) == said
            and fact.scope in {proposal.scope, "user"}
            and (proposal.key is None or fact.key is None or fold(fact.value) == fold(wording.value))
        )

    def _is_planned(self, wording: Wording, key: str | None) -> bool:
        """Whether an earlier decision of this turn already writes the same: told twice, it is one change."""
        value, statement = fold(wording.value), fold(wording.statement)
        return any(
            item.write.inserts is not None
            and (
                (key is not None and item.write.key == key and fold(item.write.value) == value)
                or (None in {key, item.write.key} and bool(statement) and fold(item.write.statement) == statement)
            )
            for item in self.planned.values()
        )

    def _check_may_change(self, target: Fact) -> None:
        if target.is_guarded:
            raise _No("a person wrote or pinned the fact", target)
        if target.scope == "global":
            raise _No("global facts are written by administrators only", target)
        if target.turn_id == self.request.turn_id:
            raise _No("an earlier decision of this turn already sets it", target)

    def _check_untouched(self, target: Fact, *, instead_of: Sequence[Decision] = ()) -> None:
        """One change a fact: the first holds, except that a change outranks a mere keep, and an update a delete."""
        earlier = self.planned.get(target.id)
        if earlier is not None and earlier.change.decision not in instead_of:
            raise _No("an earlier decision of this turn is about the same fact", target)

    def _change(
        self,
        proposal: Proposal,
        decision: Decision,
        target: Fact | None,
        *,
        after: str | None,
        fact_id: str | None = None,
        key: str | None = None,
    ) -> Change:
        told_as = None if decision == proposal.decision else f"proposed as {proposal.decision}"
        return Change(
            decision=decision,
            fact_id=fact_id or (target.id if target is not None else ""),
            key=key if fact_id else (target.key if target is not None else None),
            before=target.text if target is not None else None,
            after=after,
            evidence=clean(proposal.evidence),
            reason=told_as,
        )

    def _record(self, touched: str, change: Change, write: PlannedWrite) -> None:
        self.planned.pop(touched, None)
        self.planned[touched] = _Planned(change, write)

    def _at_ms(self, target: Fact | None) -> int:
        """Now, or just after the target's own time where clocks disagree: what supersedes is always the newer."""
        now = self.request.now
        if target is not None:
            now = max(now, target.created_at + timedelta(milliseconds=1))
        return to_ms(now)


def _refused(proposal: Proposal, no: _No) -> Refused:
    return Refused(
        decision=proposal.decision,
        fact_id=no.fact_id,
        key=bounded(proposal.key),
        value=bounded(proposal.value if proposal.value is not None else proposal.statement),
        evidence=bounded(proposal.evidence) or "",
        reason=str(no),
    )
