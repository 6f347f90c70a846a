"""Collects the reasons for which updates are not done, from steps that wait for a retry or were given up."""

from collections.abc import Iterable
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from recollect.memory.ports.updates import Updates
from recollect.memory.values.frozen import frozen
from recollect.memory.values.times import iso
from recollect.memory.values.turn import Turn
from recollect.memory.values.update import Status, StepName

LOOKED_AT = 100
"""How many of a user's longest waiting turns are read: the first waiting step of a kind holds up the later ones."""
MOST_TOLD = 10


@frozen
class Delay:
    """One reason for which steps of a kind wait or were given up, and the number of updates that it concerns.

    `next_try_at` is the earliest of their next tries (UTC); None for those that were given up.
    """

    step: StepName
    status: Status
    reason: str
    updates: int = 1
    next_try_at: datetime | None = None

    @property
    def sentence(self) -> str:
        """Return a sentence for people that names the step, the number of updates and the reason."""
        updates = "1 update" if self.updates == 1 else f"{self.updates} updates"
        became = "was given up" if self.status == "failed" else "waits for another try"
        return f"The step {self.step} of {updates} {became}: {self.reason}"

    def as_json(self) -> dict[str, Any]:
        """Return the JSON of the HTTP contract."""
        return {**asdict(self), "next_try_at": None if self.next_try_at is None else iso(self.next_try_at)}


async def delays_of(updates: Updates, user_id: str) -> list[Delay]:
    """Return the delays of one user's updates, each reason once."""
    turns = await updates.pending(user_id, limit=LOOKED_AT, by_time=True)
    async for batch in updates.failed(user_id=user_id):
        turns += batch
        break
    return summed(delay for turn in turns for delay in _of_turn(turn))


def summed(delays: Iterable[Delay]) -> list[Delay]:
    """Merge equal reasons and sum their updates; the most frequent first, at most `MOST_TOLD`."""
    found: dict[tuple[StepName, Status, str], Delay] = {}
    for delay in delays:
        key = (delay.step, delay.status, delay.reason)
        other = found.get(key)
        if other is None:
            found[key] = delay
            continue
        tries = [at for at in (other.next_try_at, delay.next_try_at) if at is not None]
        found[key] = replace(other, updates=other.updates + delay.updates, next_try_at=min(tries, default=None))
    return sorted(found.values(), key=lambda delay: -delay.updates)[:MOST_TOLD]


def _of_turn(turn: Turn) -> list[Delay]:
    if turn.update is None:
        return []
    return [
        Delay(name, step.status, step.reason, next_try_at=step.next_try_at)
        for name, step in turn.update.steps.items()
        if step.status in {"pending", "failed"} and step.reason is not None
    ]
