"""What reconciliation is told and what it decides: plain values."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from memory.decision import Change, Proposal, Refused
from memory.fact import Fact
from memory.planned_write import PlannedWrite


@dataclass(frozen=True, slots=True)
class Review:
    """Which changes wait for a person: none, those of facts with a sensitive tag, or all (confirmations never do)."""

    mode: Literal["off", "sensitive", "all"] = "off"
    sensitive_tags: Collection[str] = ()

    def holds_back(self, tags: Iterable[str]) -> bool:
        """Whether a change of a fact with these tags has to wait. Tags are compared without case."""
        if self.mode != "sensitive":
            return self.mode == "all"
        return not {tag.strip().casefold() for tag in self.sensitive_tags}.isdisjoint(tag.casefold() for tag in tags)


@dataclass(frozen=True, slots=True)
class Relearning:
    """A turn is learned from again, for the `round`-th time (from 1). It adds and updates, and deletes nothing.

    With `anew` what it taught before was taken back, because it was answered anew: it may do all that it may at first.

    New facts get ids of the round, so that what was undone or forgotten is not hit again. `later` are ids of facts that
    later turns taught or ended: they stay as those turns left them. `forgotten` are keys and ids of facts of this turn
    that a person forgot.
    """

    round: int
    later: Collection[str] = ()
    forgotten: Collection[str] = ()
    anew: bool = False


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """All that a plan depends on.

    `known` is what the model was shown, under the numbers 1, 2, 3, …; `living` are all living facts of the user and
    thread and the global ones, `proposed` those that wait for a person. The agent's own proposals (source "tool") are
    taken first. `now` (UTC) is the time of all writes, `said_at` the turn's, from which its facts hold (None: now).
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

    @property
    def said(self) -> datetime:
        """When the user said it; never after `now`, whatever the clocks say."""
        return self.now if self.said_at is None else min(self.said_at, self.now)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a turn changes, in order, one write for each change, and what was refused."""

    changes: tuple[Change, ...] = ()
    writes: tuple[PlannedWrite, ...] = ()
    refused: tuple[Refused, ...] = ()


class Refusal(Exception):
    """A proposal is refused, which is no error; the message says why."""

    def __init__(self, reason: str, target: Fact | None = None) -> None:
        super().__init__(reason)
        self.fact_id = target.id if target else None
