"""The pending update: what a committed turn still owes the memory, and how each step of it ends.

The record travels inside the assistant's message, so that one atomic insert commits a turn together with what it owes.
All of it is plain values and pure functions; `memory/updater.py` does the work.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from memory.decision import Change, Proposal, Refused
from memory.planned_write import PlannedWrite
from memory.times import iso

Status = Literal["pending", "done", "skipped", "failed"]
StepName = Literal["facts", "index", "summary"]

MAX_ATTEMPTS = 5
"""How often a step is tried before it fails; outages (see `errors.is_outage`) are not counted."""
MAX_BACKOFF_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Step:
    """One kind of work of an update.

    `tries` counts every start and drives the back-off; `attempts` counts only those that no outage excuses. `due_at` is
    None when it may run at once.
    """

    status: Status = "pending"
    reason: str | None = None
    tries: int = 0
    attempts: int = 0
    due_at: datetime | None = None

    def is_due(self, now: datetime) -> bool:
        """Whether it is pending and its back-off has passed."""
        return self.status == "pending" and (self.due_at is None or self.due_at <= now)


@dataclass(frozen=True, slots=True)
class Left:
    """A fact that an undo left as it is, and why."""

    fact_id: str
    key: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Undo:
    """The taking back of a turn's changes: wished for at `at`, done once `done`.

    `force` undoes what can be undone and names the rest in `left`; without it nothing is done where something is left.
    """

    at: datetime
    force: bool = False
    done: bool = False
    changes: tuple[Change, ...] = ()
    left: tuple[Left, ...] = ()

    @property
    def is_done(self) -> bool:
        """Whether it was done: without force, what had changed in between may have kept it from doing anything."""
        return self.done and (self.force or bool(self.changes) or not self.left)

    def as_json(self) -> dict[str, Any]:
        """When it was wished for, and what it left."""
        return {"at": iso(self.at), "left": [asdict(one) for one in self.left]}


@dataclass(frozen=True, slots=True)
class Earlier:
    """What earlier answers to the turn have taught, which the facts step takes back before it learns anew.

    `writes` are theirs, `fact_ids` the facts that they touched, `at` is when the last of them was replaced. Once `done`
    there are no writes left.
    """

    at: datetime
    writes: tuple[PlannedWrite, ...] = ()
    fact_ids: tuple[str, ...] = ()
    done: bool = False


@dataclass(frozen=True, slots=True)
class Update:
    """What a turn owes, step by step, and what it has taught.

    `writes` (one for each of `changes`) are recorded, and `planned` set, before the first fact changes: a replay does
    the recorded writes and asks no model again.
    `proposals` are the agent's own `remember_fact` calls, waiting for the facts step to check their quotes. `learned`
    counts how often the turn was learned from before (see `relearning`), `wanted_model` is the one asked for then.
    `undo` is a person's wish to take back what the turn taught, and what came of it. `earlier` is there once the turn
    was answered anew; `anew` says that it is learned from as for the first time since.
    """

    steps: Mapping[StepName, Step]
    model: str | None = None
    planned: bool = False
    changes: tuple[Change, ...] = ()
    refused: tuple[Refused, ...] = ()
    proposals: tuple[Proposal, ...] = ()
    writes: tuple[PlannedWrite, ...] = ()
    learned: int = 0
    wanted_model: str | None = None
    undo: Undo | None = None
    earlier: Earlier | None = None
    anew: bool = False

    @property
    def status(self) -> Status:
        """Pending while a step is; else failed if one failed; else skipped if nothing was to be learned; else done."""
        found = {step.status for step in self.steps.values()}
        for status in ("pending", "failed"):
            if status in found:
                return status
        return "skipped" if self._facts.status == "skipped" else "done"

    @property
    def reason(self) -> str | None:
        """Why it failed (each failed step's name and reason) or was skipped, else None."""
        if self.status == "skipped":
            return self._facts.reason
        failed = [f"{name}: {step.reason}" for name, step in self.steps.items() if step.status == "failed"]
        return "; ".join(failed) or None

    @property
    def _facts(self) -> Step:
        return self.steps.get("facts", Step(status="done"))

    @property
    def is_tried(self) -> bool:
        """Whether every step has ended or was tried at least once."""
        return all(step.status != "pending" or step.tries for step in self.steps.values())

    def as_json(self) -> dict[str, Any]:
        """The update as the HTTP contract shows it; one that was undone also says when, and what was left."""
        shown: dict[str, Any] = {
            "status": self.status,
            "reason": self.reason,
            "model": self.model,
            "changes": [asdict(change) for change in self.changes],
            "refused": [asdict(refused) for refused in self.refused],
        }
        if self.undo is not None and self.undo.is_done:
            shown["undone"] = self.undo.as_json()
        return shown


def owed(*, proposals: tuple[Proposal, ...] = (), trivial: bool = False, summary: bool = False) -> Update:
    """The update of a turn that is to be learned from and indexed.

    A `trivial` message teaches nothing, unless the agent itself proposed something. `summary`: the thread's summary is
    to be looked at too.
    """
    facts = Step(status="skipped", reason="trivial") if trivial and not proposals else Step()
    steps: dict[StepName, Step] = {"facts": facts, "index": Step()}
    if summary:
        steps["summary"] = Step()
    return Update(steps=steps, proposals=proposals)


def not_owed(reason: str) -> Update:
    """The update of a turn that is only stored: every step skipped for `reason`."""
    skipped = Step(status="skipped", reason=reason)
    return Update(steps={"facts": skipped, "index": skipped})


def backoff(tries: int, jitter: float) -> timedelta:
    """How long to wait after the `tries`-th try failed: 0.25 s doubled each time, at most 30 s, times 0.5 + jitter/2.

    `jitter` is in [0, 1] ("equal jitter", Brooker, AWS Architecture Blog 2015).
    """
    seconds = min(MAX_BACKOFF_SECONDS, 0.25 * 2 ** min(tries - 1, 16))
    return timedelta(seconds=seconds * (0.5 + jitter / 2))


def after_failure(step: Step, *, reason: str, outage: bool, now: datetime, jitter: float) -> Step:
    """The step after a try that failed: waiting with back-off, or failed after its fifth attempt."""
    tries = step.tries + 1
    attempts = step.attempts if outage else step.attempts + 1
    if attempts >= MAX_ATTEMPTS:
        return Step(status="failed", reason=reason, tries=tries, attempts=attempts)
    return Step(reason=reason, tries=tries, attempts=attempts, due_at=now + backoff(tries, jitter))
