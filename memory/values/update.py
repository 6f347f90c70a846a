"""The pending update: the work that a committed turn still owes the memory, and how each step of it ends.

The record is stored inside the assistant's message, so that one atomic insert commits a turn together with its update.
All of it is plain values and pure functions; `memory/updates/updater.py` does the work.
"""

from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from recollect.memory.values.decision import Change, Proposal, RefusedProposal
from recollect.memory.values.frozen import frozen
from recollect.memory.values.planned_write import PlannedWrite
from recollect.memory.values.preview import Preview
from recollect.memory.values.times import iso

Status = Literal["pending", "done", "skipped", "failed"]
StepName = Literal["facts", "index", "summary"]

MAX_ATTEMPTS = 5
"""Attempts after which a step fails; tries that an outage stopped (see `errors.is_outage`) are not counted."""
MAX_BACKOFF_SECONDS = 30.0
DEFERRED = "It waits for more turns of its thread (LEARN_EVERY)."


@frozen
class Step:
    """One kind of work of an update.

    `tries` counts every start and drives the back-off; `attempts` counts only tries that no outage excuses. `due_at`
    (UTC) is None when the step may run at once.
    """

    status: Status = "pending"
    reason: str | None = None
    tries: int = 0
    attempts: int = 0
    due_at: datetime | None = None

    @property
    def next_try_at(self) -> datetime | None:
        """The time of the next try; None where the step has ended, or was never tried."""
        return self.due_at if self.status == "pending" else None

    def as_json(self) -> dict[str, Any]:
        """Return the step as the HTTP contract shows it."""
        at = self.next_try_at
        return {
            "status": self.status,
            "tries": self.tries,
            "reason": self.reason,
            "next_try_at": None if at is None else iso(at),
        }

    def is_due(self, now: datetime) -> bool:
        """Tell whether it is pending and its back-off has passed at `now`."""
        return self.status == "pending" and (self.due_at is None or self.due_at <= now)


@frozen
class Left:
    """A fact that an undo did not change, and why."""

    fact_id: str
    key: str | None
    reason: str


@frozen
class Undo:
    """A request to take back what a turn taught: made at `at` (UTC), carried out once `done`.

    With `force`, the undo changes what it can and lists the rest in `left`; without, it changes nothing if any fact
    would be left.
    """

    at: datetime
    force: bool = False
    done: bool = False
    changes: tuple[Change, ...] = ()
    left: tuple[Left, ...] = ()

    @property
    def is_done(self) -> bool:
        """Tell whether it was carried out: without `force`, facts that changed in between may have prevented it."""
        return self.done and (self.force or bool(self.changes) or not self.left)

    def as_json(self) -> dict[str, Any]:
        """Return when it was requested, and which facts it left."""
        return {"at": iso(self.at), "left": [asdict(one) for one in self.left]}


@frozen
class PreviousAnswer:
    """The effects of earlier answers to the turn, which the facts step takes back before it learns from the new one.

    `writes` are their planned writes, `fact_ids` the facts that these touched, `at` is when the last of those answers
    was replaced. Once `done`, `writes` is empty.
    """

    at: datetime
    writes: tuple[PlannedWrite, ...] = ()
    fact_ids: tuple[str, ...] = ()
    done: bool = False


@frozen
class Update:
    """The work that a turn owes, step by step, and what the turn has taught.

    `writes` (one for each of `changes`) are recorded, and `planned` set, before the first fact changes, so that a
    replay after a kill repeats the recorded writes and asks no model again. `proposals` are the agent's own
    `remember_fact` calls, until the facts step checks their quotes. `learned` counts how often the turn was learned
    from before (see `relearning`), `wanted_model` is the model requested for the next time. `undo` is a person's
    request to take back what the turn taught, with its outcome. `earlier` is set once the turn was regenerated; `anew`
    says that it is then learned from as for the first time. `preview` is the last difference that a person was shown.
    """

    steps: Mapping[StepName, Step]
    model: str | None = None
    planned: bool = False
    changes: tuple[Change, ...] = ()
    refused: tuple[RefusedProposal, ...] = ()
    proposals: tuple[Proposal, ...] = ()
    writes: tuple[PlannedWrite, ...] = ()
    learned: int = 0
    wanted_model: str | None = None
    undo: Undo | None = None
    earlier: PreviousAnswer | None = None
    anew: bool = False
    preview: Preview | None = None

    @property
    def is_bare(self) -> bool:
        """Whether it holds no fact and no text of one: the turn taught nothing, and nothing was proposed."""
        held = (self.changes, self.refused, self.proposals, self.writes, self.undo, self.earlier, self.preview)
        return not any(held)

    @property
    def voided(self) -> Preview | None:
        """The preview once the turn has changed otherwise: it can no longer be applied."""
        return None if self.preview is None else self.preview.ended("void")

    @property
    def status(self) -> Status:
        """The state of all steps: "pending" while a step is; else "failed" if one failed; else "skipped" or "done".

        It is "skipped" if the facts step was.
        """
        found = {step.status for step in self.steps.values()}
        for status in ("pending", "failed"):
            if status in found:
                return status
        return "skipped" if self._facts.status == "skipped" else "done"

    @property
    def reason(self) -> str | None:
        """The reasons of steps that wait or failed, by name; the facts step's reason if it was skipped; else None."""
        if self.status == "skipped":
            return self._facts.reason
        told = [
            f"{name}: {step.reason}"
            for name, step in self.steps.items()
            if step.status in {"pending", "failed"} and step.reason is not None
        ]
        return "; ".join(told) or None

    @property
    def _facts(self) -> Step:
        return self.steps.get("facts", Step(status="done"))

    @property
    def is_tried(self) -> bool:
        """Tell whether every step has ended or was tried at least once."""
        return all(step.status != "pending" or step.tries for step in self.steps.values())

    def deferred(self, until: Mapping[StepName, datetime | None]) -> "Update":
        """Return the update as it is shown while steps wait for other turns.

        `until` maps each such step to the time at which it runs at the latest, or None.
        """
        steps = {
            name: replace(step, reason=DEFERRED, due_at=until[name]) if name in until and not step.tries else step
            for name, step in self.steps.items()
        }
        return replace(self, steps=steps)

    def as_json(self) -> dict[str, Any]:
        """Return the update as the HTTP contract shows it; with `undone` if an undo changed anything."""
        shown: dict[str, Any] = {
            "status": self.status,
            "reason": self.reason,
            "model": self.model,
            "changes": [change.as_json() for change in self.changes],
            "refused": [asdict(refused) for refused in self.refused],
        }
        if self.undo is not None and self.undo.is_done:
            shown["undone"] = self.undo.as_json()
        return shown


def owed(*, proposals: tuple[Proposal, ...] = (), trivial: bool = False, summary: bool = False) -> Update:
    """Return the update of a turn that has to be learned from and indexed.

    The facts step of a `trivial` message is skipped, unless the agent itself proposed something. `summary` adds the
    step that updates the thread's summary.
    """
    facts = Step(status="skipped", reason="trivial") if trivial and not proposals else Step()
    steps: dict[StepName, Step] = {"facts": facts, "index": Step()}
    if summary:
        steps["summary"] = Step()
    return Update(steps=steps, proposals=proposals)


def not_owed(reason: str) -> Update:
    """Return the update of a turn that is only stored: every step is skipped for `reason`."""
    skipped = Step(status="skipped", reason=reason)
    return Update(steps={"facts": skipped, "index": skipped})


def backoff(tries: int, jitter: float) -> timedelta:
    """Return the delay after the `tries`-th failed try: 0.25 s, doubled each time, at most 30 s, times 0.5 + jitter/2.

    `jitter` is in [0, 1] ("equal jitter", Brooker, AWS Architecture Blog 2015).
    """
    seconds = min(MAX_BACKOFF_SECONDS, 0.25 * 2 ** min(tries - 1, 16))
    return timedelta(seconds=seconds * (0.5 + jitter / 2))


def after_failure(step: Step, *, reason: str, outage: bool, now: datetime, jitter: float) -> Step:
    """Return the step after a failed try: pending with a back-off, or failed after MAX_ATTEMPTS attempts.

    An `outage` is no attempt. `jitter` is in [0, 1].
    """
    tries = step.tries + 1
    attempts = step.attempts if outage else step.attempts + 1
    if attempts >= MAX_ATTEMPTS:
        return Step(status="failed", reason=reason, tries=tries, attempts=attempts)
    return Step(reason=reason, tries=tries, attempts=attempts, due_at=now + backoff(tries, jitter))
