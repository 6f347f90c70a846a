"""A plan in the making: what it holds so far, and the rules that every change of it keeps."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from memory.decision import Change, Decision, Refused
from memory.fact import Fact, fold
from memory.plan import PlanRequest, Refusal
from memory.planned_write import PlannedWrite
from memory.proposal import clean
from memory.proposal_target import Told
from memory.times import to_ms
from memory.turn import derived_id

WAITS = "waits for approval"
"""What a change's reason says where a person has to approve it."""
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Planned:
    """One change and its write."""

    change: Change
    write: PlannedWrite


@dataclass
class PlanDraft:
    """A plan in the making. `planned` is by the id of the fact that each change touches: one change a fact."""

    request: PlanRequest
    planned: dict[str, Planned] = field(default_factory=dict[str, Planned])
    refused: list[Refused] = field(default_factory=list[Refused])

    def is_over(self, told: Told) -> bool:
        """Whether it held only in the past: history, which supersedes nothing."""
        return told.validity.valid_to is not None and told.validity.valid_to <= self.request.now

    def follows(self, told: Told, key: str | None) -> bool:
        """Whether it begins when what this turn already sets under its key has ended ("until May here, then there")."""
        begins = told.validity.valid_from
        return (
            key is not None
            and begins is not None
            and any(
                item.write.inserts is not None
                and (item.write.key, item.write.scope) == (key, told.proposal.scope)
                and item.write.valid_to_ms is not None
                and item.write.valid_to_ms <= to_ms(begins)
                for item in self.planned.values()
            )
        )

    def new_id(self, part: str, key: str | None, scope: str) -> str:
        """The id of the turn's fact about `part`, under `key`: the same each time, another in each round of learning.

        Raises:
            Refusal: this turn has set it already, a person forgot it, or a later turn has had the last word on it.
        """
        relearning = self.request.relearning
        name = f"fact:{part}" if scope == "user" else f"fact:{scope}:{part}"
        ids = [self._derived(name)]
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

    def _derived(self, part: str) -> str:
        return derived_id(self.request.user_id, self.request.turn_id, part)

    def is_planned(self, told: Told, key: str | None) -> bool:
        """Whether an earlier decision of this turn already writes the same: told twice, it is one change."""
        now_ms, is_over = to_ms(self.request.now), self.is_over(told)
        return any(
            item.write.inserts is not None
            and item.write.proposes != "delete"
            and is_over == (item.write.valid_to_ms is not None and item.write.valid_to_ms <= now_ms)
            and _says(item.write, told, key)
            for item in self.planned.values()
        )

    def others(self, target: Fact) -> list[str]:
        """The texts of the other facts that the model was shown, and of those that this turn has set so far."""
        shown = [fact for fact in self.request.known if fact.id != target.id]
        written = [item.write for item in self.planned.values() if item.write.inserts is not None]
        return [f"{item.key or ''} {item.value} {item.statement}" for item in (*shown, *written)]

    def check_may_change(self, target: Fact) -> None:
        """Refuse to change what a person wrote or pinned, what is global, and what is this turn's or a later one's."""
        relearning = self.request.relearning
        if target.scope == "global":
            raise Refusal("global facts are written by administrators only", target)
        if target.is_guarded:
            raise Refusal("a person wrote or pinned the fact", target)
        if (relearning is None or relearning.anew) and target.turn_id == self.request.turn_id:
            raise Refusal("an earlier decision of this turn already sets it", target)
        if relearning is not None and target.id in relearning.later:
            raise Refusal("a later turn says otherwise", target)

    def check_untouched(self, target: Fact, *, instead_of: Sequence[Decision] = ()) -> None:
        """One change a fact: the first holds, but an update outranks a keep, and both a delete: in doubt it stays."""
        earlier = self.planned.get(target.id)
        if earlier is not None and earlier.change.decision not in instead_of:
            raise Refusal("an earlier decision of this turn is about the same fact", target)

    def change(
        self,
        told: Told,
        decision: Decision,
        target: Fact | None,
        *,
        after: str | None,
        fact_id: str = "",
        waits: bool = False,
    ) -> Change:
        """The change as the turn tells it; of a new fact the caller says the key."""
        proposal = told.proposal
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
                told.validity.note or "",
            ),
        )

    def record(self, touched: str, change: Change, write: PlannedWrite) -> None:
        """Take the change up, in place of the one that it outranks."""
        self.planned.pop(touched, None)
        self.planned[touched] = Planned(change, write)

    def at_ms(self, target: Fact | None) -> int:
        """Now, or just after the target's own time where clocks disagree: what supersedes is always the newer."""
        now = self.request.now
        return to_ms(now if target is None else max(now, target.created_at + _MILLISECOND))

    def begin(self, target: Fact | None) -> int:
        """From when a change holds that names no date: from its turn, but after the beginning of what it changes."""
        begin = self.request.said
        if target is not None and target.valid_from <= self.request.now:
            begin = max(begin, target.valid_from + _MILLISECOND)
        return to_ms(begin)


def _says(write: PlannedWrite, told: Told, key: str | None) -> bool:
    """Whether the write's new fact says what is told: the same value under its key, or the same in as many words."""
    same_value = fold(write.value) == fold(told.wording.value)
    if key is not None and write.key == key:
        return same_value
    statement = fold(told.wording.statement)
    return bool(statement) and fold(write.statement) == statement and (None in {key, write.key} or same_value)


def reasons(*given: str) -> str | None:
    """The reasons that there are, as one text."""
    return "; ".join(reason for reason in given if reason) or None
