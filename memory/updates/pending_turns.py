"""The pending turns of one user, as the process holds them that works on their updates: which step is due, and when.

Within a kind of step turns come in the order of their times; a turn whose step is deferred holds up no later one.
"""

from collections.abc import Collection, Container, Mapping
from datetime import datetime, timedelta

from recollect.memory.ports.updates import Updates
from recollect.memory.updates.step_work import Deferred, StepWork
from recollect.memory.updates.work_claim import WorkClaim
from recollect.memory.values.times import Clock
from recollect.memory.values.turn import Turn
from recollect.memory.values.update import Step, StepName, Update

BATCH = 100
LATEST = timedelta(hours=1)
"""How long to wait before deferred turns are looked at again; a new turn of the user ends the wait."""


class PendingTurns:
    """Holds turns with their updates as last recorded, those that were announced, and which steps are deferred."""

    def __init__(self, user_id: str, *, steps: Mapping[StepName, StepWork], clock: Clock) -> None:
        self.turns: dict[str, Turn] = {}
        self.updates: dict[str, Update] = {}
        self._user_id = user_id
        self._steps = steps
        self._clock = clock
        self._announced: dict[str, Turn] = {}
        self._deferred: dict[StepName, Deferred] = {}
        self._more = True

    @property
    def are_all_ended(self) -> bool:
        """Whether none is held, and the last query returned all that were pending."""
        return not self.updates and not self._more

    @property
    def announced(self) -> Collection[str]:
        """The ids of the turns that were announced and not read yet."""
        return self._announced.keys()

    def held(self, turn_id: str) -> Update | None:
        """Return the turn's update as last recorded, or announced; None where no such turn is known."""
        announced = self._announced.get(turn_id)
        return self.updates.get(turn_id) or (announced.update if announced is not None else None)

    def announce(self, committed: Turn) -> None:
        """Hand over a turn that this process has just committed: its message need not be read again."""
        self._announced[committed.message.turn_id] = committed

    def deferred_steps(self, turn_id: str) -> dict[StepName, datetime | None]:
        """Return the turn's steps that wait for other turns, and when each starts at the latest."""
        return {name: deferred[turn_id] for name, deferred in self._deferred.items() if turn_id in deferred}

    def end(self, turn_id: str) -> None:
        """Forget a turn whose update has ended."""
        del self.updates[turn_id], self.turns[turn_id]

    def are_short(self) -> bool:
        """Tell whether a queue is empty while the last query did not return all pending turns."""
        return self._more and any(self.first(name) is None for name in self._steps)

    async def read(self, updates: Updates, claim: WorkClaim) -> bool:
        """Read the pending turns that are not held yet; return False, without them, where `claim` was lost."""
        limit = len(self.updates) + BATCH
        known = [turn.message for turn in self._announced.values()]
        found = await updates.pending(self._user_id, limit=limit, by_time=True, known=known)
        self._more = len(found) == limit
        if not await claim.covers([turn.message.turn_id for turn in found]):
            return False
        for turn in found:
            turn_id = turn.message.turn_id
            if turn.update is not None and turn_id not in self.updates:
                self.turns[turn_id], self.updates[turn_id] = turn, turn.update
        for message in known:
            del self._announced[message.turn_id]
        # An import goes on while its turns are worked on: older turns that arrive later still run first.
        self.updates = dict(sorted(self.updates.items(), key=lambda item: self._time(item[0])))
        return True

    def _time(self, turn_id: str) -> datetime:
        """Return when the turn was answered, which orders the work."""
        turn = self.turns[turn_id]
        return (turn.reply or turn.message).created_at

    async def defer(self) -> list[str]:
        """Ask each kind of step which turns it defers; return the ids of the newly deferred ones."""
        anew = list[str]()
        for name, step in self._steps.items():
            pending = [
                (self.turns[turn_id], update)
                for turn_id, update in self.updates.items()
                if name in update.steps and update.steps[name].status == "pending"
            ]
            known = self._deferred.get(name, {})
            self._deferred[name] = await step.deferred(pending)
            anew += self._deferred[name].keys() - known.keys()
        return anew

    def first(self, name: StepName) -> tuple[str, Step] | None:
        """Return the oldest turn whose step of this kind is pending and not deferred; later turns wait for it."""
        deferred = self._deferred.get(name, {})
        for turn_id, update in self.updates.items():
            step = update.steps.get(name)
            if step is not None and step.status == "pending" and turn_id not in deferred:
                return turn_id, step
        return None

    def due(self, name: StepName) -> Turn | None:
        """Return the turn whose step of this kind is to run now, if any."""
        first = self.first(name)
        if first is None or not first[1].is_due(self._clock()):
            return None
        return self.turns[first[0]]

    def next_due(self, *, besides: Container[StepName] = ()) -> datetime | None:
        """Return when the next step comes due: at the end of a back-off or of a deferral."""
        names: list[StepName] = [name for name in self._steps if name not in besides]
        first = [self.first(name) for name in names]
        due = [found[1].due_at for found in first if found and found[1].due_at]
        latest = self._clock() + LATEST
        for name in names:
            deferred: Deferred = self._deferred.get(name, {})
            due += [until or latest for until in deferred.values()]
        return min(due, default=None)
