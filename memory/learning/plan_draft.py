"""Plan draft: collects the changes of a plan, and enforces the rules that hold for every change."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from recollect.memory.facts.wording import clean
from recollect.memory.learning.plan import PlanRequest, Refusal
from recollect.memory.learning.proposal_target import ReadProposal
from recollect.memory.values.decision import Change, Decision, RefusedProposal
from recollect.memory.values.fact import Fact, fold
from recollect.memory.values.frozen import frozen
from recollect.memory.values.planned_write import PlannedWrite
from recollect.memory.values.times import to_ms
from recollect.memory.values.turn import derived_id

WAITS = "waits for approval"
"""The reason of a change that a person has to approve."""
_MILLISECOND = timedelta(milliseconds=1)


@frozen
class Planned:
    """Holds one change and its write."""

    change: Change
    write: PlannedWrite


@dataclass
class PlanDraft:
    """Collects a plan's changes. `planned` is keyed by the id of the touched fact: at most one change a fact."""

    request: PlanRequest
    planned: dict[str, Planned] = field(default_factory=dict[str, Planned])
    refused: list[RefusedProposal] = field(default_factory=list[RefusedProposal])

    def is_over(self, reading: ReadProposal) -> bool:
        """Tell whether `reading` held in the past only: history supersedes nothing."""
        return reading.validity.valid_to is not None and reading.validity.valid_to <= self.request.now

    def follows(self, reading: ReadProposal, key: str | None) -> bool:
        """Tell whether `reading` begins after a fact that this turn sets under `key` ("until May here, then there")."""
        begins = reading.validity.valid_from
        return (
            key is not None
            and begins is not None
            and any(
                item.write.inserts is not None
                and (item.write.key, item.write.scope) == (key, reading.proposal.scope)
                and item.write.valid_to_ms is not None
                and item.write.valid_to_ms <= to_ms(begins)
                for item in self.planned.values()
            )
        )

    def new_id(self, part: str, key: str | None, scope: str) -> str:
        """Return the id of the turn's fact about `part` under `key`: stable within a round of learning.

        Raises:
            Refusal: this turn has set the fact already, a person forgot it, or a later turn has changed it.
        """
        relearning = self.request.relearning
        name = f"fact:{part}" if scope == "user" else f"fact:{scope}:{part}"
        ids = [self._derived(name)]
        if self._waits_already(ids[0]):
            # The waiting fact keeps its id, so the fact that has been proved since needs one of its own.
            name = f"proved:{name}"
            ids.append(self._derived(name))
        if relearning is not None:
            ids += [self._derived(f"again:{number}:{name}") for number in range(1, relearning.round + 1)]
            if not {*ids, key}.isdisjoint(relearning.forgotten):
                raise Refusal("a person forgot it")
            if not set(ids).isdisjoint(relearning.later):
                raise Refusal("a later turn says otherwise")
        fact_id = ids[-1]
        known = (*self.request.living, *self.request.proposed)
        if any(fact.id == fact_id for fact in known) or any(
            item.write.inserts == fact_id for item in self.planned.values()
        ):
            raise Refusal("an earlier decision of this turn already sets it")
        return fact_id

    def _waits_already(self, fact_id: str) -> bool:
        return any(fact.id == fact_id for fact in self.request.proposed) or any(
            item.write.inserts == fact_id and item.write.status == "proposed" for item in self.planned.values()
        )

    def _derived(self, part: str) -> str:
        return derived_id(self.request.user_id, self.request.turn_id, part)

    def is_planned(self, reading: ReadProposal, key: str | None, *, waits: bool) -> bool:
        """Tell whether an earlier decision of this turn already writes the same fact.

        Ignore a decision that waits for a person if this one need not wait.
        """
        now_ms, is_over = to_ms(self.request.now), self.is_over(reading)
        return any(
            item.write.inserts is not None
            and item.write.proposes != "delete"
            and (waits or item.write.status == "active")
            and is_over == (item.write.valid_to_ms is not None and item.write.valid_to_ms <= now_ms)
            and _says(item.write, reading, key)
            for item in self.planned.values()
        )

    def others(self, target: Fact) -> list[str]:
        """Return the texts of the other facts that the model was shown, and of those that this turn has set so far."""
        shown = [fact for fact in self.request.known if fact.id != target.id]
        written = [item.write for item in self.planned.values() if item.write.inserts is not None]
        return [f"{item.key or ''} {item.value} {item.statement}" for item in (*shown, *written)]

    def check_may_change(self, target: Fact) -> None:
        """Raise Refusal if a person wrote or pinned `target`, it is global, or this turn or a later one set it."""
        relearning = self.request.relearning
        if target.scope == "global":
            raise Refusal("global facts are written by administrators only", target)
        if target.is_guarded:
            raise Refusal("a person wrote or pinned the fact", target)
        if (relearning is None or relearning.anew) and target.turn_id == self.request.turn_id:
            raise Refusal("an earlier decision of this turn already sets it", target)
        if relearning is not None and target.id in relearning.later:
            raise Refusal("a later turn says otherwise", target)

    def check_untouched(self, target: Fact, *, instead_of: Sequence[Decision] = (), waits: bool = False) -> None:
        """Raise Refusal if `target` is changed already, unless by one of the decisions that this one outranks.

        An update outranks a keep, and both outrank a delete. A change that waits for a person gives way to one that
        need not wait.
        """
        earlier = self.planned.get(target.id)
        if earlier is None or (earlier.write.status == "proposed" and not waits):
            return
        if earlier.change.decision not in instead_of:
            raise Refusal("an earlier decision of this turn is about the same fact", target)

    def change(
        self,
        reading: ReadProposal,
        decision: Decision,
        target: Fact | None,
        *,
        after: str | None,
        fact_id: str = "",
        waits: bool = False,
    ) -> Change:
        """Build the change that the turn reports. The caller adds the key of a new fact."""
        proposal = reading.proposal
        return Change(
            decision=decision,
            fact_id=fact_id or (target.id if target is not None else ""),
            key=target.key if target is not None else None,
            before=target.text if target is not None else None,
            after=after,
            evidence=clean(proposal.evidence),
            reason=reasons(
                "" if decision == proposal.decision else f"proposed as {proposal.decision}",
                WAITS if waits else "",
                (reading.doubt or "") if waits else "",
                reading.validity.remark or "",
            ),
            status="proposed" if waits else None,
        )

    def record(self, touched: str, change: Change, write: PlannedWrite) -> None:
        """Add the change of the fact `touched`, in place of the one that it outranks."""
        self.planned.pop(touched, None)
        self.planned[touched] = Planned(change, write)

    def at_ms(self, target: Fact | None) -> int:
        """Return the time of a write (ms): now, or just after `target` was made if clocks disagree."""
        now = self.request.now
        return to_ms(now if target is None else max(now, target.created_at + _MILLISECOND))

    def begin(self, target: Fact | None) -> int:
        """Return when a change without a date begins (ms): at its turn, but after the beginning of `target`."""
        begin = self.request.said
        if target is not None and target.valid_from <= self.request.now:
            begin = max(begin, target.valid_from + _MILLISECOND)
        return to_ms(begin)


def _says(write: PlannedWrite, reading: ReadProposal, key: str | None) -> bool:
    """Tell whether the write's new fact says the same as `reading`: its value under its key, or its statement."""
    same_value = fold(write.value) == fold(reading.wording.value)
    if key is not None and write.key == key:
        return same_value
    statement = fold(reading.wording.statement)
    return bool(statement) and fold(write.statement) == statement and (None in {key, write.key} or same_value)


def reasons(*given: str) -> str | None:
    """Join the reasons that are not empty; None if none is left."""
    return "; ".join(reason for reason in given if reason) or None
