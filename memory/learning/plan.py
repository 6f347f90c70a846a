"""Plan: the inputs and the result of reconciliation, as plain values."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Literal

from recollect.memory.learning.proof.evidence import Heard, heard
from recollect.memory.learning.proof.witness import Witness
from recollect.memory.temporal.dates import Times
from recollect.memory.values.decision import Change, Proposal, RefusedProposal
from recollect.memory.values.fact import Fact, fold
from recollect.memory.values.frozen import frozen
from recollect.memory.values.mem_config import MemoryConfig
from recollect.memory.values.planned_write import PlannedWrite

CLOCKS = timedelta(seconds=2)
"""The clocks of two processes may disagree by this much: within it the order of learning decides."""


@frozen
class Review:
    """Says which changes wait for a person: none, those of facts with a sensitive tag, or all but confirmations.

    `unproven` says whether a change that its quote does not carry waits, is refused, or is allowed. `tools` says which
    proposals of the agent's own tools wait: those made beside untrusted texts, none, or all.
    """

    mode: Literal["off", "sensitive", "all"] = "off"
    sensitive_tags: Collection[str] = ()
    unproven: Literal["review", "refuse", "allow"] = "allow"
    tools: Literal["untrusted", "off", "all"] = "off"

    @classmethod
    def of(cls, config: MemoryConfig) -> "Review":
        """Read the review options from `config`."""
        return cls(config.review, config.sensitive_tags, config.unproven, config.review_tools)

    @property
    def may_hold_back(self) -> bool:
        """Tell whether any change may have to wait."""
        return self.mode != "off" or self.unproven == "review" or self.tools != "off"

    def holds_back(self, tags: Iterable[str]) -> bool:
        """Tell whether a change of a fact with these `tags` has to wait. Compare tags without case."""
        if self.mode != "sensitive":
            return self.mode == "all"
        return not {tag.strip().casefold() for tag in self.sensitive_tags}.isdisjoint(tag.casefold() for tag in tags)

    def holds_tool_back(self, *, untrusted: bool) -> bool:
        """Tell whether a proposal of the agent's own tool has to wait; `untrusted`: made beside untrusted texts."""
        return self.tools == "all" or (self.tools == "untrusted" and untrusted)


@frozen
class Relearning:
    """Describes that a turn is learned from again, for the `round`-th time (from 1): it adds and updates only.

    `anew` says that the turn was regenerated and what it taught was taken back: then it may delete too.

    New facts get ids of the round, so that they do not meet facts that were undone or forgotten. `later` are ids of
    facts that later turns taught or ended: they stay as those turns left them. `forgotten` are keys and ids of facts of
    this turn that a person forgot.
    """

    round: int
    later: Collection[str] = ()
    forgotten: Collection[str] = ()
    anew: bool = False


@dataclass(frozen=True)
class PlanRequest:
    """Holds all that a plan depends on.

    `known` is what the model was shown, under the numbers 1, 2, 3, …; `living` are all living facts of the user and
    thread and the global ones, `proposed` those that wait for a person. The agent's own proposals (source "tool") are
    taken first. `now` (UTC) is the time of all writes, `said_at` the turn's, from which its facts hold (None: now).
    `ended` are facts that no longer hold and did when it was said, or began later; `later` are ids of facts, living or
    ended, that are known to have been said after it. `asked` is what the assistant said just before the message,
    `wanted` are keys that are asked for: they add nothing to what is said.
    """

    proposals: Sequence[Proposal]
    known: Sequence[Fact]
    living: Sequence[Fact]
    message: str
    user_id: str
    thread_id: str
    turn_id: str
    now: datetime
    said_at: datetime | None = None
    proposed: Sequence[Fact] = ()
    review: Review = field(default_factory=Review)
    relearning: Relearning | None = None
    ended: Sequence[Fact] = ()
    later: Collection[str] = ()
    asked: str = ""
    wanted: Collection[str] = ()

    def is_later(self, fact: Fact) -> bool:
        """Tell whether `fact` is newer than the message: it was said later, or has begun since."""
        if fact.turn_id == self.turn_id:
            return False
        return self.was_said_later(fact) or self.said + CLOCKS < fact.valid_from <= self.now

    def was_said_later(self, fact: Fact) -> bool:
        """Tell whether `fact` is known to have been said after this message."""
        return fact.id in self.later or (self.relearning is not None and fact.id in self.relearning.later)

    @property
    def said(self) -> datetime:
        """Return when the user said it; never later than `now`, even if clocks disagree."""
        return self.now if self.said_at is None else min(self.said_at, self.now)

    @cached_property
    def heard(self) -> Heard:
        """Fold the message, once for all proposals, so that quotes can be found in it."""
        return heard(self.message)

    @cached_property
    def witness(self) -> Witness:
        """Read the message for proofs, once for all proposals."""
        return Witness.of(self.message, self.heard, at=self.said, asked=self.asked)

    @cached_property
    def times(self) -> Times:
        """Find the times that the message names, once for all proposals."""
        return Times.of(self.message)

    @cached_property
    def by_statement(self) -> Mapping[str, Sequence[Fact]]:
        """Group the living facts by their folded statements."""
        found: dict[str, list[Fact]] = {}
        for fact in self.living:
            found.setdefault(fold(fact.statement), []).append(fact)
        return found


@frozen
class Plan:
    """Lists what a turn changes, in order, one write for each change, and the refused proposals."""

    changes: tuple[Change, ...] = ()
    writes: tuple[PlannedWrite, ...] = ()
    refused: tuple[RefusedProposal, ...] = ()


class Refusal(Exception):
    """Refuses a proposal, which is no error; the message says why."""

    def __init__(self, reason: str, target: Fact | None = None) -> None:
        super().__init__(reason)
        self.fact_id = target.id if target else None
